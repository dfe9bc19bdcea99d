"""The matrix' reports: what is in them, that they foot when read back, and that they name no machine."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from functools import cache

import jsonschema
import pytest
from rich.console import Console

from reconcile.matrix import report as matrix
from reconcile.matrix.run import MatrixResult
from reconcile.report.csv import COLUMNS
from reconcile.report.document.markdown import to_markdown
from reconcile.report.document.terminal import show
from reconcile.report.schema import schema
from tests.matrix import matrices as hand
from tests.report.tables import read
from tests.report.test_footing import add_counters, add_statement

each = pytest.mark.parametrize("made", hand.HAND)
FORMATS = ("md", "csv", "json")


def shown(result: MatrixResult, width: int = 120, *, quiet: bool = False) -> str:
    out = io.StringIO()
    show(matrix.describe_matrix(result), Console(file=out, width=width), quiet=quiet)
    return out.getvalue()


def page(result: MatrixResult) -> str:
    return to_markdown(matrix.describe_matrix(result))


@each
def test_markdown_foots(made: Callable[[], MatrixResult]) -> None:
    result = made()
    text = read(matrix.render(result, ("md",))["md"])
    counters = 0
    statements = []
    for table in text.tables:
        if table.heading == "Totals":
            add_counters(table)
            counters += len(table.rows)
        elif "of which" in table.header:
            add_statement(table)
            statements.append(table.heading)
    assert counters == len(matrix.rows(result))
    closed = [s for s in _statements(result) if s.from_total is not None and s.residual is not None]
    equal = re.findall(r"^Equal: [\d,]+ FLOP, residual 0\.$", text.text, re.M)
    assert len(statements) + len(equal) == len(closed)


def _statements(result: MatrixResult) -> list[matrix.Statement]:
    return [*result.neighbours, *(s for cell in result.cells for s in matrix.to_the_work(cell))]


@each
def test_csv_foots(made: Callable[[], MatrixResult]) -> None:
    result = made()
    rows = list(csv.DictReader(io.StringIO(matrix.to_csv(result))))
    by_ends: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        assert tuple(row) == COLUMNS
        by_ends.setdefault((row["from"], row["to"]), []).append(row)
    assert list(by_ends) == [(s.from_, s.to) for s in _statements(result)]
    for s in _statements(result):
        amounts = [x["amount"] for x in by_ends[s.from_, s.to]]
        assert amounts == [""] if s.from_total is None or s.residual is None else sum(map(int, amounts)) == s.to_total


@cache
def record_validator(kind: str) -> jsonschema.Draft202012Validator:
    """Of one kind of record in a run's JSON."""
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema()["$defs"]})


@each
def test_json_foots_and_its_records_meet_the_schema_of_a_run(made: Callable[[], MatrixResult]) -> None:
    data = json.loads(matrix.to_json(made()))
    assert (data["schema"], data["kind"], data["exit_code"]) == (1, "matrix", made().exit_code)
    for env in data["environments"]:
        for kind, records in (("ledger", env["ledgers"]), ("statement", env["statements"]), ("trace", env["traces"])):
            for record in records:
                record_validator(kind).validate({**record, "phases": [], "rows": []} if kind == "trace" else record)
    for s in [*data["neighbours"], *(s for env in data["environments"] for s in env["statements"])]:
        if s["from_total"] is not None and s["residual"] is not None:
            assert s["from_total"] + sum(a["amount"] for a in s["adjustments"]) + s["residual"] == s["to_total"]


@each
def test_no_counter_is_without_its_statement_to_the_work(made: Callable[[], MatrixResult]) -> None:
    for cell, env in zip(made().cells, json.loads(matrix.to_json(made()))["environments"], strict=True):
        wanted = [f"{env['name']}: {x.counter}" for x in cell.result.ledgers] if cell.result else []
        assert [s["from"] for s in env["statements"] if "trace@" not in s["from"]] == wanted


@each
def test_files_name_no_path(made: Callable[[], MatrixResult]) -> None:
    result = made()
    for text in matrix.render(result, FORMATS).values():
        assert "/opt" not in text
        assert "secret" not in text


def test_a_failed_environment_has_its_reason_the_others_totals() -> None:
    for text in (shown(hand.failed()), read(page(hand.failed())).text):
        assert "there is no Python 3.5 under" in text
        assert "the worker was killed after 600 s" in text
    assert re.search(r"^  tf\.profiler@frozen +120 +FLOP +120 ", shown(hand.failed()), re.M)
    (totals,) = [t for t in read(page(hand.failed())).tables if t.heading == "Totals"]
    assert totals.rows[0][0] == "gone"
    assert totals.rows[0][-2:] == ["failed", hand.WHY]


@each
def test_an_open_statement_is_never_called_reconciled(made: Callable[[], MatrixResult]) -> None:
    """All that are not closed, but for those of a counter that has no count where others have one."""
    states = ("unexplained", "not_comparable")
    open_ = [s for s in _statements(made()) if s.state.value in states and made is not hand.unseeing]
    assert matrix.summary(made()).startswith("Not reconciled") == bool(open_)
