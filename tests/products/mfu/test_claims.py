"""A table of claims: what its cells are, and rows that cannot be read."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from reconcile.products.mfu.claims import parse_claim, read_claims
from reconcile.products.mfu.table_verdicts import State, verdicts


def table(folder: Path, text: str) -> Path:
    path = folder / "claims.csv"
    path.write_text(text)
    return path


def test_a_row_is_its_numbers(tmp_path: Path) -> None:
    head = "claimed,claimed_kind,params,seq,tokens_per_second_per_device,devices,note"
    (row,) = read_claims(table(tmp_path, f"{head}\n40%,MFU,7000000000,2048,100,8,printed 400 TFLOP/s\n"))
    assert row.claim is not None
    assert row.tokens is not None
    assert row.rate is not None
    assert (row.claim.figure.value, row.tokens.value, row.rate.value) == (Fraction(2, 5), 800, 400 * 10**12)
    assert (row.shape.params, row.shape.seq, row.devices) == (7 * 10**9, 2048, 8)


def test_a_step_and_its_tokens_are_a_rate(tmp_path: Path) -> None:
    (row,) = read_claims(table(tmp_path, "claimed,claimed_kind,step_seconds,batch_tokens\n40%,MFU,2.0,4096\n"))
    assert row.tokens is not None
    assert row.tokens.low <= 2048 <= row.tokens.high
    assert row.tokens.low == Fraction(4096) / Fraction(205, 100)


@pytest.mark.parametrize(
    ("text", "kind", "low", "high"),
    [
        ("47-48%", "MFU", Fraction(465, 1000), Fraction(485, 1000)),
        ("41%", "MFU", Fraction(405, 1000), Fraction(415, 1000)),
        ("430", "TFLOPs/device", Fraction(4295 * 10**11), Fraction(4305 * 10**11)),
    ],
)
def test_a_claim_is_what_its_kind_says(text: str, kind: str, low: Fraction, high: Fraction) -> None:
    figure = parse_claim(text, kind).figure
    assert (figure.low, figure.high) == (low, high)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("4%,MFU,1,2,3", "this row has 5 cells, and the head has 4"),
        ("4%,speed,1,2", "'speed' is no utilisation"),
    ],
)
def test_a_wrong_row_is_not_read_and_says_why(row: str, said: str, tmp_path: Path) -> None:
    head = "claimed,claimed_kind,params,seq"
    wrong, right = verdicts(read_claims(table(tmp_path, f"{head}\n{row}\n4%,MFU,1,2\n")))
    assert wrong.state is State.NOT_READ
    assert said in wrong.reason
    assert right.state is State.TOO_LITTLE
    assert "no throughput" in right.reason
