"""A real total that float32 rounded: thop of January 2020, on convolutions with more than 2^24 multiply-adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix.reports import report_of

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

NET = """
from torch import nn


def make():
    return nn.Sequential(nn.Conv2d(3, 17, 3, bias=False), nn.Conv2d(17, 19, 3, bias=False), nn.Conv2d(19, 3, 1, bias=False))
"""
FIRST, SECOND, THIRD = 3 * 63 * 63 * 17 * 9 * 3, 3 * 61 * 61 * 19 * 9 * 17, 3 * 61 * 61 * 3 * 19
"""A batch of 3: outputs x kernel x channels."""


def test_a_total_of_january_2020_is_explained(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    (tmp_path / "rounded.py").write_text(NET)
    words = ("--torch", "rounded:make", "--input", "3,3,65,65", "--counter", "thop")
    (ledger,) = report_of(tmp_path, *words, "--environment", "torch-1.10.1-thop-2001")["ledgers"]
    total = numpy.zeros(1, numpy.float32)
    for macs in (FIRST, SECOND, THIRD):
        total += numpy.array([macs], numpy.float32)
    assert int(total[0]) != FIRST + SECOND + THIRD
    assert (ledger["state"], ledger["total"]) == ("explained", int(total[0]))
