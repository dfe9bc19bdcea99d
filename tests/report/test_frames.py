"""Frames of made-up results: they add up, stay exact past 2^53, and leave open what is not known."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import replace

import pytest

import reconcile
from reconcile.core.errors import NotInResult, PackageMissing
from reconcile.engine.answer import Answer
from reconcile.engine.verdict import verdict
from tests.report import samples

pytest.importorskip("pandas")
each = pytest.mark.parametrize("sample", samples.SAMPLES)


@each
def test_what_is_counted_and_what_is_to_be_added_make_the_work(sample: Callable[[], Answer]) -> None:
    result = sample()
    frame = reconcile.Run(result).layers
    assert len(frame) == sum(len(row.counters) for row in result.layers)
    for _, row in frame.iterrows():
        if row["work"] is None:
            assert (row["to the work"], row["cause"]) == (None, "")
        else:
            assert row["FLOP"] + row["to the work"] == row["work"]
            assert bool(row["cause"]) is bool(row["to the work"])


@each
def test_causes_make_every_counter_the_work(sample: Callable[[], Answer]) -> None:
    result = sample()
    frame = reconcile.Run(result).causes
    compared = [c for c in verdict(result).counters if c.off is not None]
    assert list(frame.columns) == [c.ledger.counter for c in compared]
    assert frame.index[-1] == "residual"
    for counter in compared:
        assert counter.ledger.normalised_total is not None
        assert counter.ledger.normalised_total + sum(frame[counter.ledger.counter]) == counter.work


def test_causes_stand_in_booking_order() -> None:
    frame = reconcile.Run(samples.full()).causes
    assert list(frame.index) == ["op-not-counted", "loop-counted-once", "outside-convention", "residual"]
    assert frame.loc["residual"].tolist() == [0, 0, 0, 0]
    assert reconcile.Run(samples.unexplained()).causes.loc["residual", "thop"] == -2 * samples.WRONG


def test_columns_of_the_table_add_up() -> None:
    frame = reconcile.Run(samples.full()).table
    assert frame.sum().tolist()[:2] == [samples.WORK, samples.WORK]
    assert frame["thop"].sum() == samples.MM_DENSE + 2 * samples.T * (samples.STEP.mac + samples.GATES)
    assert frame.loc["loop", samples.FUNCTION] is None


def test_integers_stay_exact_past_2_to_the_53() -> None:
    big = 2**53 + 1
    result = samples.clean()
    row = replace(result.layers[0], work={"tf": big, "torch": big})
    frame = reconcile.Run(replace(result, layers=(row,))).table
    assert frame.loc["dense", "work (tf)"] == big
    assert type(frame.loc["dense", "work (tf)"]) is int


def test_statements() -> None:
    found = reconcile.Run(samples.full())
    assert found.statement["line"].iloc[[0, -1]].tolist() == [samples.FROZEN, "thop"]
    lines = found.between("fvcore", "thop")["FLOP"]
    assert lines.iloc[:-1].sum() == lines.iloc[-1]
    with pytest.raises(NotInResult, match="there is no statement from thop to nothing; there are "):
        found.between("thop", "nothing")
    with pytest.raises(NotInResult, match="there is no statement: no counter ran"):
        _ = reconcile.Run(samples.empty()).statement


def test_without_pandas_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **named: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PackageMissing, match=r"frames need pandas: pip install 'flop-reconcile\[pandas\]'"):
        _ = reconcile.Run(samples.full()).table
