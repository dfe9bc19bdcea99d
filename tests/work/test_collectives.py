"""Collectives: what each process of a ring adds and sends, against a ring in which parts are passed from process to process."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.records import GROUP, Op, Tensor
from reconcile.core.work import UnknownWork, Work
from reconcile.work import work_of
from reconcile.work.collectives import sent_bytes


def chunks(count: int, processes: int) -> list[list[int]]:
    """Elements by chunk: the first chunks have one more where they do not divide."""
    return [list(range(count))[place::processes] for place in range(processes)]


class Ring:
    """Each process has a tensor of ones. Chunk by chunk they pass what they have to the next, which adds its own."""

    def __init__(self, count: int, processes: int) -> None:
        self.processes, self.parts = processes, chunks(count, processes)
        self.adds, self.sends = [0] * processes, [0] * processes
        self.have = [[[1] * len(part) for part in self.parts] for _ in range(processes)]

    def reduce_scatter(self) -> None:
        """Process p passes its own chunk p first, so that it adds all but that one."""
        for step in range(self.processes - 1):
            passed = {p: (p - step) % self.processes for p in range(self.processes)}
            for p, chunk in passed.items():
                after = (p + 1) % self.processes
                self.sends[p] += len(self.parts[chunk])
                for i, value in enumerate(list(self.have[p][chunk])):
                    self.have[after][chunk][i] += value
                    self.adds[after] += 1

    def all_gather(self) -> None:
        for step in range(self.processes - 1):
            for p in range(self.processes):
                chunk = (p + 1 - step) % self.processes
                self.sends[p] += len(self.parts[chunk])
                self.have[(p + 1) % self.processes][chunk] = list(self.have[p][chunk])


def call(name: str, count: int, processes: int, place: int, reduce: str = "sum", out: int | None = None) -> Op:
    given, made = Tensor((count,), "float32"), Tensor((count if out is None else out,), "float32")
    group = {"ranks": list(range(processes)), "place": place, "reduce": reduce}
    return Op("1", name, "", (given,), (made,), {GROUP: group}, 1, "forward")


SIZES = st.tuples(st.integers(0, 30), st.integers(2, 7))


@settings(max_examples=25)
@given(SIZES)
def test_each_process_adds_all_but_its_first_chunk(size: tuple[int, int]) -> None:
    count, processes = size
    ring = Ring(count, processes)
    ring.reduce_scatter()
    ring.all_gather()
    assert {value for have in ring.have for part in have for value in part} <= {processes}
    found = [work_of(call("_c10d_functional.all_reduce", count, processes, place)) for place in range(processes)]
    assert found == [Work(add=adds) for adds in ring.adds]
    assert sum(work.add for work in found) == count * (processes - 1)


@pytest.mark.parametrize("kind", ["max", "product", "avg", "sum"])
def test_what_a_reduction_does_with_two_elements(kind: str) -> None:
    names = {"max": {"cmp": 6}, "product": {"mul": 6}, "sum": {"add": 6}, "avg": {"add": 6, "div": 2}}
    assert work_of(call("c10d.allreduce", 8, 4, 1, kind)) == Work(**names[kind])


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


def test_what_is_not_said_is_unknown() -> None:
    alone = call("c10d.allreduce", 8, 4, 0)._replace(attrs={})
    assert sent_bytes(alone) == ("all_reduce", None)
    for op in (alone, call("c10d.allreduce", 8, 4, 0, "bxor"), call("c10d.reduce", 8, 4, 0)):
        with pytest.raises(UnknownWork):
            work_of(op)


def test_what_waits_for_a_result_sends_nothing() -> None:
    assert sent_bytes(call("_c10d_functional.wait_tensor", 8, 4, 0)) is None
