"""The committed polynomials of the pairs give the counts of the gallery, which other runs made."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from reconcile.model_zoo.loading import zoo_names

from . import every_formula as table

GALLERY = json.loads((Path(__file__).resolve().parents[2] / "model_zoo/gallery.json").read_text())["rows"]


def value(polynomial: str, sizes: dict[str, int]) -> Fraction:
    """The value of a polynomial as it is printed: ``512 B T^2 - 3 T + 1/2``."""
    total = Fraction(0)
    for term in polynomial.replace("- ", "+ -").split(" + "):
        amount = Fraction(1)
        for factor in term.split():
            name, _, exponent = factor.lstrip("-").partition("^")
            known = sizes[name] if name in sizes else Fraction(name.replace(",", ""))
            amount *= -(known ** int(exponent or "1")) if factor.startswith("-") else known ** int(exponent or "1")
        total += amount
    return total


def own_sizes(pair: str) -> dict[str, int]:
    """The pair's own size of each variable."""
    named = {parameter: text.partition("=")[0] for parameter, text in table.sizes_of(pair).items()}
    return {name: GALLERY[pair]["settings"][parameter] for parameter, name in named.items()}


def gallery(pair: str) -> dict[str, int]:
    """What ran and what each counter reported at the pair's own sizes, by the gallery."""
    row = GALLERY[pair]
    ran = {f"trace@{name}": work for name, work in row["work"].items()}
    return ran | {name: cell["total"] for name, cell in row["cells"].items() if cell["total"] is not None}


def test_a_printed_polynomial_is_read() -> None:
    sizes = {"B": 2, "T": 5}
    assert value("512 B T^2 - 3 T + 1/2", sizes) == 512 * 2 * 25 - 3 * 5 + Fraction(1, 2)
    assert value("-1,394 B", sizes) == -2788
    assert value("B T", sizes) == 10
    assert value("0", sizes) == 0


def test_every_polynomial_gives_the_gallerys_count_at_its_sizes() -> None:
    """The gallery ran each pair at these sizes, most of which no polynomial was fitted to or checked at.

    Below the smallest size of the fit a polynomial says nothing: in gru_demo's frozen loop a batch of 1 is a case of its own.
    """
    rows = [row for row in table.read() if row.polynomial and not row.count.startswith("cause:")]
    wrong = [
        (row.pair, row.count)
        for row in rows
        if value(row.polynomial, own_sizes(row.pair)) != gallery(row.pair)[row.count]
    ]
    assert rows
    assert own_sizes("gru_demo")["B"] < min(table.read_variables([table.sizes_of("gru_demo")["batch"]])[0].values)
    assert wrong == [("gru_demo", "tf.profiler@frozen")]


def test_causes_lead_from_each_counter_to_the_work() -> None:
    """The counter and its causes sum to the trace of its framework, at sizes that no test is tuned to."""
    unequal = []
    for pair in {row.pair for row in table.read()}:
        sizes = {name: 11 + 2 * index for index, name in enumerate(own_sizes(pair))}
        mine = {row.count: value(row.polynomial, sizes) for row in table.read() if row.pair == pair and row.polynomial}
        for counter in GALLERY[pair]["cells"].keys() & mine.keys():
            trace = "trace@tf" if counter.startswith("tf.") else "trace@torch"
            causes = sum(
                amount for count, amount in mine.items() if count.startswith("cause:") and count.endswith(f":{counter}")
            )
            if mine[counter] + causes != mine[trace]:
                unequal.append((pair, counter))
    assert unequal == []


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
