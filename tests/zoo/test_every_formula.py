"""The committed polynomials of the pairs: each count of the gallery has one or a reason, and some are made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconcile.model_zoo.loading import zoo_names

from . import every_formula as table

GALLERY = json.loads((Path(__file__).resolve().parents[2] / "model_zoo/gallery.json").read_text())["rows"]


def gallery(pair: str) -> dict[str, int]:
    """What ran and what each counter reported at the pair's own sizes, by the gallery."""
    row = GALLERY[pair]
    ran = {f"trace@{name}": work for name, work in row["work"].items()}
    return ran | {name: cell["total"] for name, cell in row["cells"].items() if cell["total"] is not None}


def test_every_count_has_a_polynomial_or_a_reason() -> None:
    rows = table.read()
    assert [row for row in rows if bool(row.polynomial) == bool(row.reason)] == []
    assert [row for row in rows if int(row.checked) < 3] == []
    counted = {(row.pair, row.count) for row in rows}
    assert [(row.pair, name) for row in rows for name in gallery(row.pair) if (row.pair, name) not in counted] == []


@pytest.mark.heavy
@pytest.mark.parametrize("pair", zoo_names())
def test_a_pair_has_polynomials_or_reasons(pair: str) -> None:
    """Each polynomial is exact at three points or more that it was not fitted to; a pair of the page has the committed ones."""
    rows = list(table.rows_of(pair))
    committed = [row for row in table.read() if row.pair == pair]
    counted = {row.count for row in rows}
    assert [name for name in gallery(pair) if name not in counted] == []
    assert [row for row in rows if bool(row.polynomial) == bool(row.reason) or int(row.checked) < 3] == []
    assert rows == (committed or rows), f"run `python -m tests.zoo.every_formula {pair}` and commit what changed"
