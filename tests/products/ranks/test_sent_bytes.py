"""The bytes that a process sends by a collective, against a ring in which parts are passed from process to process."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.products.ranks.sent_bytes import sent_bytes
from tests.work.collective_ring import Ring, call


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(2, 7))
def test_what_a_process_sends_in_a_ring(each: int, processes: int) -> None:
    count = each * processes
    ring = Ring(count, processes)
    ring.reduce_scatter()
    (half,) = {*ring.sends}
    ring.all_gather()
    (whole,) = {*ring.sends}
    assert sent_bytes(call("c10d.allreduce", count, processes, 0)) == ("all_reduce", 4 * whole)
    scattered = call("_c10d_functional.reduce_scatter_tensor", count, processes, 0, out=each)
    assert sent_bytes(scattered) == ("reduce_scatter", 4 * half)
    gathered = call("_c10d_functional.all_gather_into_tensor", each, processes, 0, out=count)
    assert sent_bytes(gathered) == ("all_gather", 4 * (whole - half))
    exchanged = call("_c10d_functional.all_to_all_single", count, processes, 0)
    assert sent_bytes(exchanged) == ("all_to_all", 4 * Fraction(count * (processes - 1), processes))


def test_what_waits_for_a_result_sends_nothing() -> None:
    assert sent_bytes(call("_c10d_functional.wait_tensor", 8, 4, 0)) is None


def test_where_no_processes_are_said_the_bytes_are_unknown() -> None:
    assert sent_bytes(call("c10d.allreduce", 8, 4, 0)._replace(attrs={})) == ("all_reduce", None)
