"""The picture of the balance: bars as long as the work, the mean, and places along a dimension of the mesh."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.products.ranks.picture import BAR, LABEL, pictures
from reconcile.products.ranks.plan import Mesh
from reconcile.report.document import Picture


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


def bars(picture: Picture) -> list[tuple[str, float]]:
    """Label and width of each bar of the drawing."""
    labels = re.findall(r'text-anchor="end">(.*?)</text>', picture.svg)
    return list(zip(labels, map(float, re.findall(r'class="bar".*?width="([\d.]+)"', picture.svg)), strict=True))


def test_bars_are_as_long_as_the_work() -> None:
    (each,) = pictures(result({(0, 1, 2): 100, (3,): 50}, ["tp"], [4]))
    assert bars(each) == [("0-2  × 3", BAR), ("3", BAR / 2)]
    mean = (3 * 100 + 50) / 4
    (shown,) = re.findall(r'<line class="mean" x1="([\d.]+)"', each.svg)
    assert float(shown) == pytest.approx(LABEL + BAR * mean / 100, abs=0.05)
    assert "100, 14.3 % above the mean" in each.text  # 12.5 of 87.5
    assert "50, 42.9 % below the mean" in each.text  # 37.5 of 87.5


def test_stages_are_added_along_their_dimension() -> None:
    """Ranks 0 to 3 are the first stage; along dp the places do equal work, and have no picture."""
    _, stages = pictures(result({(0, 1, 2, 3): 10, (4, 5, 6, 7): 30}, ["pp", "dp"], [2, 4]))
    assert stages.title == "All ranks at each place of pp"
    assert [label for label, _ in bars(stages)] == ["0", "1"]
    assert [width for _, width in bars(stages)] == pytest.approx([BAR * 10 / 30, BAR], abs=0.05)


def test_work_that_is_unknown_has_no_picture() -> None:
    assert list(pictures(result({(0,): 5, (1,): 5}, ["dp"], [2], known=False))) == []
