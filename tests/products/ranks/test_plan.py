"""Which ranks run, and which are known to be like them: checked against a world in which all of them ran."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.products.ranks.plan import Plan


class World:
    """A mesh in which the program asks for its place along some dimensions, and some sizes do not divide."""

    def __init__(self, sizes: list[int], asked: set[int], elements: list[int], where: str = "") -> None:
        self.sizes, self.asked, self.elements, self.where = sizes, asked, elements, where
        self.places = list(product(*map(range, sizes)))

    def line(self, rank: int, dim: int) -> list[int]:
        place = self.places[rank]
        return [self.places.index((*place[:dim], at, *place[dim + 1 :])) for at in range(self.sizes[dim])]

    def work(self, rank: int) -> list[int]:
        """Its part of each dimension's elements, as torch.chunk gives it; and its place where the program asks for that."""
        found = []
        for dim, at in enumerate(self.places[rank]):
            part = -(-self.elements[dim] // self.sizes[dim])
            found.append(max(0, min(part, self.elements[dim] - at * part)))
            found.append(at if dim in self.asked else 0)
        return found

    def told(self, rank: int) -> dict[str, Any]:
        mesh = {
            "names": [str(i) for i in range(len(self.sizes))],
            "sizes": self.sizes,
            "ranks": list(range(len(self.places))),
        }
        lines = [self.line(rank, dim) for dim in self.asked if self.sizes[dim] > 1]
        return {"mesh": mesh, "asked": lines, "where": self.where, "digest": repr(self.work(rank))}

    def run(self) -> Plan:
        ran = {0: self.told(0)}
        while missing := Plan(ran).list_ranks_to_run():
            assert not set(missing) & set(ran)
            ran |= {rank: self.told(rank) for rank in missing}
        return Plan(ran)


worlds = st.integers(1, 3).flatmap(
    lambda dims: st.builds(
        World,
        st.lists(st.integers(1, 5), min_size=dims, max_size=dims),
        st.sets(st.integers(0, dims - 1)),
        st.lists(st.integers(0, 12), min_size=dims, max_size=dims),
    )
)


@settings(deadline=None)
@given(worlds)
def test_ranks_of_a_fold_do_equal_work(world: World) -> None:
    plan = world.run()
    folded = plan.fold_ranks()
    assert sorted(rank for _, ranks in folded for rank in ranks) == list(range(prod(world.sizes)))
    for first, ranks in folded:
        assert first in plan.ran
        assert {repr(world.work(rank)) for rank in ranks} == {repr(world.work(first))}


@settings(deadline=None)
@given(worlds)
def test_ranks_of_two_folds_do_other_work(world: World) -> None:
    firsts = [repr(world.work(first)) for first, _ in world.run().fold_ranks()]
    assert len(set(firsts)) == len(firsts)


def test_two_ranks_of_a_line_run() -> None:
    assert sorted(World([1000], set(), [0]).run().ran) == [0, 999]


def test_a_mesh_of_a_thousand_runs_a_stage_at_a_time() -> None:
    """TP 8 x PP 16 x DP 8: each stage, and the rank at the end of its two other lines."""
    plan = World([16, 8, 8], {0}, [16, 8, 8]).run()
    assert len(plan.ran) == 16 * 2
    assert [len(ranks) for _, ranks in plan.fold_ranks()] == [64] * 16


def test_a_program_that_asks_for_its_number_runs_as_each_rank() -> None:
    plan = World([2, 3], set(), [0, 0], where="train.py:3").run()
    assert (sorted(plan.ran), plan.all_run()) == (list(range(6)), "train.py:3")
