"""Tables whose rows are made by a known convention: it is inferred, and a row that does not follow it is contradicted."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from reconcile.products.mfu import table_verdicts
from reconcile.products.mfu.claims import read_claims
from reconcile.products.mfu.closed_forms import FORMS, Shape
from reconcile.products.mfu.table_report import are_all_explained, describe_table
from reconcile.products.mfu.table_verdicts import State, Verdict, verdicts
from reconcile.report.document.markdown import to_markdown
from tests.products.mfu.setups import LLAMA

A100 = 312 * 10**12
SHAPES = [
    LLAMA,
    Shape(13015864320, 40, 5120, 32000, 2048, 40),
    Shape(1300000000, 24, 2048, 50432, 8192, 16),
    Shape(6658859008, 32, 4096, 50432, 16384, 32),
]
HEAD = "id,params,layers,hidden,heads,vocab,seq,tokens_per_second,devices,device,dtype,claimed,claimed_kind,source,recompute"


def made(form: str, factor: Fraction = Fraction(1), kind: str = "MFU", recompute: str = "none") -> list[str]:
    """Rows of one source that counts by this formula: each shape at some rate."""
    (one,) = (f for f in FORMS if f.name == form)
    rows = []
    for number, shape in enumerate(SHAPES):
        work, tokens = one.of(shape), 123457 + 1000 * number
        assert work is not None
        share = float(100 * tokens * work.total * factor / (64 * A100))
        sizes = f"{shape.params},{shape.layers},{shape.hidden},{shape.heads},{shape.vocab},{shape.seq}"
        rows.append(f"{form}{number},{sizes},{tokens},64,A100 SXM4 80GB,bf16,{share:.2f}%,{kind},{form},{recompute}")
    return rows


def of(folder: Path, rows: list[str]) -> list[Verdict]:
    path = folder / "claims.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return verdicts(read_claims(path))


@pytest.mark.parametrize("form", ["palm", "6n", "palm-causal", "torchtitan", "megatron-causal", "kaplan-causal"])
def test_the_convention_of_a_source_is_inferred(form: str, tmp_path: Path) -> None:
    found = of(tmp_path, made(form))
    (title,) = (f.title for f in FORMS if f.name == form)
    assert [(v.state, v.convention) for v in found] == [(State.EXPLAINED, title)] * len(SHAPES)
    assert are_all_explained(found)


def test_recomputation_is_a_convention_of_the_source(tmp_path: Path) -> None:
    rows = made("palm") + [row.replace("palm", "again", 1) for row in made("palm", Fraction(4, 3), "HFU", "full")]
    found = of(tmp_path, rows)
    assert {v.state for v in found} == {State.EXPLAINED}
    assert {v.convention for v in found if v.row.hardware} == {"6N + 12LhT, recomputation in HFU alone"}


def test_a_row_that_does_not_follow_its_source_is_contradicted(tmp_path: Path) -> None:
    rows = made("palm")
    cells = rows[2].split(",")
    cells[11] = f"{1.237 * float(cells[11].rstrip('%')):.2f}%"
    found = of(tmp_path, [*rows[:2], ",".join(cells), *rows[3:]])
    assert [v.state is State.EXPLAINED for v in found] == [True, True, False, True]
    wrong = found[2]
    assert wrong.state is State.CONTRADICTED
    assert wrong.factor == pytest.approx(Fraction(1237, 1000), rel=1e-3)
    assert not are_all_explained(found)
    assert "times that" in to_markdown(describe_table(found))


def test_rows_that_mean_nothing_have_no_convention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares that follow no formula. With two digits, every convention gives some of them: taken each, it would be 8 of 36.

    How few of them are a product of readings, test_search.py proves.
    """
    monkeypatch.setattr(table_verdicts, "_product", lambda *_: None)
    noise = []
    for number, row in enumerate((made("palm") * 9)[:36]):
        cells = row.split(",")
        cells[7], cells[13] = str(100003 + 7919 * number), "noise"
        cells[11] = f"{(11, 17, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)[(5 * number + number // 12) % 12]}%"
        noise.append(",".join(cells))
    found = of(tmp_path, noise)
    assert sum(v.state is State.EXPLAINED for v in found) <= 2
