"""Collectives: what each process of a ring adds, against a ring in which parts are passed from process to process."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.work import UnknownWork, Work
from reconcile.work import work_of
from tests.work.collective_ring import Ring, call

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


def test_what_is_not_said_is_unknown() -> None:
    alone = call("c10d.allreduce", 8, 4, 0)._replace(attrs={})
    for op in (alone, call("c10d.allreduce", 8, 4, 0, "bxor"), call("c10d.reduce", 8, 4, 0)):
        with pytest.raises(UnknownWork):
            work_of(op)
