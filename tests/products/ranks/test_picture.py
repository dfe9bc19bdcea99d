"""The picture of the balance: bars as long as the work, the mean, and places along a dimension of the mesh."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.products.ranks.picture import BAR, LABEL, pictures
from reconcile.products.ranks.plan import Mesh


def result(folds: dict[tuple[int, ...], int], names: list[str], sizes: list[int], known: bool = True) -> Any:
    size = sum(map(len, folds))
    total = sum(len(ranks) * flops for ranks, flops in folds.items())
    made = [SimpleNamespace(ranks=ranks, trace=SimpleNamespace(totals={"matmul": n})) for ranks, n in folds.items()]
    return SimpleNamespace(
        convention=SimpleNamespace(name="matmul"),
        totals={"matmul": total} if known else {},
        folds=made,
        world=SimpleNamespace(size=size, mesh=Mesh(names, sizes, range(size))),
    )


def test_bars_are_as_long_as_the_work() -> None:
    (each,) = pictures(result({(0, 1, 2): 100, (3,): 50}, ["tp"], [4]))
    assert [(bar.label, bar.total, bar.width) for bar in each.bars] == [("0-2  × 3", 100, BAR), ("3", 50, BAR / 2)]
    mean = (3 * 100 + 50) / 4
    assert each.mean == pytest.approx(LABEL + BAR * mean / 100, abs=0.05)
    assert [bar.off for bar in each.bars] == ["14.3 % above the mean", "42.9 % below the mean"]  # 12.5 and 37.5 of 87.5


def test_stages_are_added_along_their_dimension() -> None:
    """Ranks 0 to 3 are the first stage; along dp the places do equal work, and have no picture."""
    _, stages = pictures(result({(0, 1, 2, 3): 10, (4, 5, 6, 7): 30}, ["pp", "dp"], [2, 4]))
    assert stages.title == "All ranks at each place of pp"
    assert [(bar.label, bar.total) for bar in stages.bars] == [("0", 4 * 10), ("1", 4 * 30)]


def test_work_that_is_unknown_has_no_picture() -> None:
    assert list(pictures(result({(0,): 5, (1,): 5}, ["dp"], [2], known=False))) == []
