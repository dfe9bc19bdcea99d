"""Every rendered file is read back and every table in it is added up again."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest

from reconcile.engine.answer import Answer
from reconcile.report.csv import to_csv
from reconcile.report.json import to_json
from reconcile.report.markdown import to_markdown
from tests.report import samples
from tests.report.tables import Table, amount, read

SAMPLES = samples.SAMPLES
each = pytest.mark.parametrize("sample", SAMPLES)


def add_statement(table: Table) -> None:
    """from + causes + residual = to, and the layers of each cause add up to it."""
    outer = table.column("FLOP")
    opening, *causes, end = [amount(cell) for cell in outer if cell]
    assert opening + sum(causes) == end
    inner: list[int] = []
    expected: int | None = None
    for of_which, flop in zip(table.column("of which"), outer, strict=True):
        if flop:
            assert not inner or sum(inner) == expected
            inner, expected = [], amount(flop)
        else:
            inner.append(amount(of_which))


def add_counters(table: Table) -> None:
    """normalised + to the work = work that ran; a MAC is two FLOP."""
    for row in table.rows:
        cells = dict(zip(table.header, row, strict=True))
        if cells["as reported"]:
            times = {"MAC": 2, "FLOP": 1}[cells["unit"]]
            assert times * amount(cells["as reported"]) == amount(cells["normalised FLOP"])
        if cells["work that ran"]:
            assert amount(cells["normalised FLOP"]) + amount(cells["to the work"]) == amount(cells["work that ran"])


def add_layers(table: Table, homes: dict[str, str]) -> None:
    """Columns add up to their totals; a cell and its causes add up to the work of its framework in that layer."""
    *rows, last = table.rows
    assert last[0] == "total"
    for index, name in enumerate(table.header[1:], 1):
        cells = [row[index].split("\n") for row in rows]
        assert sum(amount(first) for first, *_ in cells if first) == amount(last[index])
        home = f"work ({homes.get(name, '')})"
        if home in table.header:
            for row, (first, *causes) in zip(rows, cells, strict=True):
                if first:
                    work = amount(row[table.header.index(home)])
                    assert amount(first) + sum(amount(c.rpartition(" ")[2]) for c in causes) == work


@each
def test_markdown_foots(sample: Callable[[], Answer]) -> None:
    result = sample()
    page = read(to_markdown(result))
    homes = {x.counter: x.framework for x in result.ledgers}
    seen = set()
    for table in page.tables:
        if "of which" in table.header:
            add_statement(table)
        elif "what differs" in table.header:
            opening, *lines, end = (amount(cell) for cell in table.column("FLOP"))
            assert opening + sum(lines) == end
        elif table.heading == "Counters":
            add_counters(table)
        elif table.heading == "Layers":
            add_layers(table, homes)
        elif "difference" in table.header:
            for row in table.rows:
                first, second, difference = (amount(cell) for cell in row[2:])
                assert first + difference == second
        else:
            continue
        seen.add(table.heading)
    assert seen or not result.statements


def test_the_layer_table_says_why_a_cell_is_off() -> None:
    (table,) = [t for t in read(to_markdown(samples.full())).tables if t.heading == "Layers"]
    cell = table.rows[1][table.header.index(samples.FROZEN)]
    assert cell == f"{samples.MM_STEP}\nloop-counted-once +{(samples.T - 1) * samples.MM_STEP}"


@each
def test_csv_foots(sample: Callable[[], Answer]) -> None:
    result = sample()
    rows = list(csv.DictReader(io.StringIO(to_csv(result))))
    by_ends: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        by_ends.setdefault((row["from"], row["to"]), []).append(row)
    for t in result.traces:
        work = by_ends.pop(("", t.name), [])
        if work and t.complete:
            assert sum(int(x["amount"]) for x in work) == t.totals[result.convention.name]
        assert t.complete or ("" in [x["amount"] for x in work]) == bool(work)
    assert list(by_ends) == [(s.from_, s.to) for s in result.statements]
    for s in result.statements:
        lines = by_ends[s.from_, s.to]
        if s.from_total is None or s.residual is None:
            assert [x["amount"] for x in lines] == [""]
        else:
            assert sum(int(x["amount"]) for x in lines) == s.to_total
            assert sum(int(x["amount"]) for x in lines if x["cause"] == "opening") == s.from_total
            assert sum(int(x["amount"]) for x in lines if x["cause"] == "residual") == s.residual
        assert {x["state"] for x in lines} == {s.state.value}
        assert {x["unit"] for x in lines} == {"FLOP"}


def test_csv_quotes_what_needs_quoting() -> None:
    """Commas and quotes are the reader's affair; a control character is escaped, so that a row is one line."""
    rows = list(csv.DictReader(io.StringIO(to_csv(samples.renamed(samples.clean(), "loop", 'a,"b"\nc')))))
    assert 'a,"b"\\nc' in {row["layer"] for row in rows}


@each
def test_json_foots(sample: Callable[[], Answer]) -> None:
    data = json.loads(to_json(sample()))
    for s in data["statements"]:
        if s["from_total"] is None or s["to_total"] is None:
            assert s["state"] in ("failed", "skipped", "not_comparable")
            continue
        assert s["from_total"] + sum(a["amount"] for a in s["adjustments"]) + s["residual"] == s["to_total"]
        assert sum(r["amount"] for r in s["residuals"]) == s["residual"]
    for ledger in data["ledgers"]:
        if ledger["total"] is not None:
            times = {"MAC": 2, "FLOP": 1}[ledger["unit"]]
            assert sum(e["value"] for e in ledger["entries"]) * times == ledger["normalised_total"]
            assert sum(x["counters"].get(ledger["counter"], 0) for x in data["layers"]) == ledger["normalised_total"]
