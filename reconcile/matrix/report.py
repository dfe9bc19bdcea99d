"""The reports of ``reconcile matrix``, of one model in several environments: a page, CSV and JSON.

A counter is named with its environment, ``tf-1.12: tf.profiler@session``. Per environment the statements are those to
the work that ran; between neighbours they go from counter to counter. The files name no host, no path and no date.
Pure functions of a MatrixResult.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..core.causes import State
from ..core.number_format import format_count, number
from ..core.results import LedgerResult, Statement, TraceResult
from ..engine.answer import Answer
from ..engine.settle import counters_that_cannot_see
from ..engine.verdict import CounterVerdict
from ..report import document, foot, json, view
from ..report.csv import to_csv as run_csv
from ..report.document import (
    Block,
    Code,
    Column,
    Document,
    Heading,
    Inline,
    Items,
    Span,
    Table,
    Text,
    mark_code,
    section,
    spans_of,
)
from ..report.document.markdown import to_markdown
from ..report.json_statements import statement_data
from ..report.json_text import fields_of, layout, plain
from .run import EnvironmentResult, MatrixResult

SCHEMA = 1
STEM = "{}_matrix"
LAYERS = 6
"""Lines of one cause on a terminal, without ``verbose``; the files hold all of them."""
TOTALS = (
    Column("environment", "group"), Column("counter", "whole"), Column("as reported", "right", "some"),
    Column("unit", room="some"), Column("normalised FLOP", "right"), Column("to the work", "right", "page"),
    Column("work that ran", "right", "page"), Column("off by", "whole"), Column("state"),
    Column("largest cause or reason", room="page"),
)  # fmt: skip
ENVIRONMENTS = (
    Column("environment"), Column("what it is", room="page"), Column("Python", room="page"), Column("versions found"),
    Column("state", room="page"),
)  # fmt: skip
_ABSOLUTE = re.compile(r"(?<![\w.:/~])~?/[^\s,;:()'\"]+")


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One counter in one environment; ``verdict`` is None if nothing ran in the environment (see the cell)."""

    cell: EnvironmentResult
    verdict: CounterVerdict | None

    @property
    def state(self) -> State:
        """The counter's own state, else the cell's."""
        return self.cell.state if self.verdict is None else self.verdict.state

    @property
    def reason(self) -> str:
        """Why there is no number; '' if there is one."""
        if self.verdict is None:
            return self.cell.reason or "no counter of this environment runs on this model"
        return "" if self.verdict.off is not None else view.describe_reason(self.verdict)


def rows(result: MatrixResult) -> list[CounterRow]:
    """One row per environment and counter, in the order of the environments; at least one for each environment."""
    counter_rows = []
    for cell in result.cells:
        verdicts = cell.result.verdict.counters if cell.result is not None else ()
        counter_rows += [CounterRow(cell, v) for v in verdicts] or [CounterRow(cell, None)]
    return counter_rows


def versions(cell: EnvironmentResult) -> dict[str, str]:
    """The package versions of an environment, without this tool; empty if nothing ran there."""
    if cell.result is None:
        return {}
    return {name: v for name, v in sorted(cell.result.environment.items()) if name != "reconcile"}


def work(result: MatrixResult) -> list[str]:
    """``trace@tf 249,809,920 FLOP in tf-1.12, current``: the work that ran, by trace and total."""
    environments: dict[tuple[str, str], list[str]] = {}
    for cell in result.cells:
        for trace in cell.result.traces if cell.result is not None else ():
            total = trace.totals.get(result.convention.name)
            shown = view.trace_label(trace) if total is None else f"{number(total)} FLOP"
            environments.setdefault((trace.name, shown), []).append(cell.environment.name)
    return [f"{name} {shown} in {', '.join(names)}" for (name, shown), names in environments.items()]


def list_borrowed(result: MatrixResult) -> list[str]:
    """The environments that borrow a trace, and why; those with the same reason are together."""
    environments: dict[str, list[str]] = {}
    for cell in result.cells:
        if cell.borrowed:
            environments.setdefault(cell.borrowed, []).append(cell.environment.name)
    return [f"{', '.join(names)}: {words}" for words, names in environments.items()]


def to_the_work(cell: EnvironmentResult) -> tuple[Statement, ...]:
    """One environment's statements: each counter to the work that ran, then trace to trace; the names carry the environment."""
    if cell.result is None:
        return ()
    traces = {t.name for t in cell.result.traces}
    return tuple(_place_statement(s, cell.environment.name) for s in cell.result.statements if s.to in traces)


def _place_statement(s: Statement, environment: str) -> Statement:
    lines = tuple(replace(a, counter=f"{environment}: {a.counter}" if a.counter else "") for a in s.adjustments)
    return replace(s, from_=f"{environment}: {s.from_}", to=f"{environment}: {s.to}", adjustments=lines)


def origin(result: MatrixResult, name: str, total: int | None) -> str:
    """As ``describe_origin`` in report/view.py, for a name that carries its environment."""
    environment, _, counter = name.partition(": ")
    run = next((c.result for c in result.cells if c.environment.name == environment), None)
    return f"{environment}: {view.describe_origin(run, counter, total)}" if run is not None else name


def summary(result: MatrixResult) -> str:
    """The whole matrix in one sentence."""
    ran = [row for row in rows(result) if row.verdict is not None and row.verdict.off is not None]
    statements = [*(s for c in result.cells for s in to_the_work(c)), *result.neighbours]
    unseeing = _find_unseeing(result)
    counted = [s for s in statements if not unseeing & {s.from_, s.to}]
    open_ = sum(1 for s in counted if s.state in (State.UNEXPLAINED, State.NOT_COMPARABLE))
    lost = sum(1 for row in rows(result) if row.state in (State.FAILED, State.SKIPPED))
    parts = [format_count(len(result.cells), "environment"), format_count(len(ran), "total"), _neighbours(result)]
    parts += [f"{lost} failed"] if lost else []
    parts += [f"{len(unseeing)} not comparable"] if unseeing else []
    parts.append(f"{format_count(open_, 'statement')} open" if open_ else "every residual 0")
    verb = "Not reconciled" if open_ else "Not everything could run" if result.exit_code else "Reconciled"
    verb = verb if ran or open_ or lost else "Nothing was counted"
    return f"{verb}: {', '.join(parts)}."


def _find_unseeing(result: MatrixResult) -> set[str]:
    """The counters that cannot see this pass or cannot count this model, with their environments: they leave nothing open."""
    cells = [(cell.environment.name, cell.result.ledgers) for cell in result.cells if cell.result is not None]
    return {
        f"{environment}: {counter}" for environment, ledgers in cells for counter in counters_that_cannot_see(ledgers)
    }


def _neighbours(result: MatrixResult) -> str:
    changed = sum(1 for s in result.neighbours if s.state is not State.EQUAL)
    return f"{format_count(len(result.neighbours), 'pair')} of neighbours, {changed} of them different"


def check(result: MatrixResult) -> None:
    """Raise ValueError, which names every sum that is wrong in the books of the cells and in the statements between them."""
    for cell in result.cells:
        if cell.result is not None:
            foot.check(cell.result)
    foot.check(_books(result))


def render(result: MatrixResult, formats: tuple[str, ...], command: str = "") -> dict[str, str]:
    """The texts of the reports in those of these formats that a matrix has: md, csv, json. Raises ValueError as ``check``."""
    check(result)
    result = _scrub_paths(result)
    makers: dict[str, Callable[[], str]] = {
        "md": lambda: to_markdown(describe_matrix(result, command)),
        "csv": lambda: to_csv(result),
        "json": lambda: to_json(result),
    }
    return {name: make() for name, make in makers.items() if name in formats}


def to_csv(result: MatrixResult) -> str:
    """Tidy, with the columns of a run's CSV: neighbours first, then each environment's statements to the work that ran."""
    return run_csv(_books(result))


def _books(result: MatrixResult) -> Answer:
    """All statements as if of one run."""
    own = [s for cell in result.cells for s in to_the_work(cell)]
    books = (*result.neighbours, *own)
    return Answer(result.model, "forward", result.convention, {}, {}, "", (), (), (), books, result.exit_code)


def describe_matrix(result: MatrixResult, command: str = "", *, verbose: bool = True) -> Document:
    """The page: every counter's total in each environment, the statements between neighbours and, with ``verbose``, those to
    the work that ran. Without ``verbose`` a terminal shows the largest layers of each cause."""
    limit = None if verbose else LAYERS
    own = [s for cell in result.cells for s in to_the_work(cell)] if verbose else []
    neighbours: list[Block] = [x for s in result.neighbours for x in _describe_statement(result, s, limit)]
    ran: tuple[Block, ...] = (Text("The work that ran:"), Items(tuple(work(result)))) if work(result) else ()
    return Document(
        f"{result.model}: FLOP counters, environment by environment",
        summary(result),
        (
            Text(("Convention: ", result.convention.name, ". ", *spans_of(mark_code(result.convention.meaning)))),
            Heading("Totals"),
            Table(TOTALS, tuple(map(_total_cells, rows(result)))),
            *ran,
            Heading("Environments"),
            Table(ENVIRONMENTS, tuple(map(_environment_cells, result.cells))),
            Items(tuple(list_borrowed(result))),
            Heading("Between neighbours"),
            Text("From each counter to the next one of the same family, in the order of the environments."),
            *(neighbours or [Text("No counter has a neighbour here.")]),
            *([Heading("Each counter and the work that ran")] if verbose else []),
            *(x for s in own for x in _describe_statement(result, s, limit)),
            *section("Notes", Items(tuple(map(mark_code, _notes(result) if verbose else ())))),
            *section("Reproduce", Code(command, "sh") if command else None),
        ),
        result.exit_code == 0,
        tuple(list_problems(result)),
    )


def _total_cells(row: CounterRow) -> tuple[Inline, ...]:
    name = row.cell.environment.name
    if row.verdict is None:
        return (name, *[""] * 7, Span(view.state_word(row.state.value), row.state.value), row.reason)
    return (name, *view.counter_cells(row.verdict))


def _environment_cells(cell: EnvironmentResult) -> tuple[str, ...]:
    state = view.state_word(cell.state.value) + (f": {cell.reason}" if cell.result is None else "")
    found = ", ".join(f"{name} {version}" for name, version in versions(cell).items())
    return cell.environment.name, cell.environment.title, cell.environment.python, found, state


def _describe_statement(result: MatrixResult, s: Statement, limit: int | None) -> Iterator[Block]:
    yield Heading(f"{s.from_} → {s.to}", 3)
    if s.state is State.EQUAL and s.to_total is not None:
        yield Text(f"Equal: {number(s.to_total)} FLOP, residual {number(s.residual or 0)}.")
        return
    ends = (origin(result, s.from_, s.from_total), origin(result, s.to, s.to_total))
    yield document.Statement(s, tuple(layers(result)), limit, f"Normalised totals: {' → '.join(ends)}")


def list_problems(result: MatrixResult) -> Iterator[str]:
    """What could not run or is not explained, in each environment and between them."""
    for cell in result.cells:
        run, problems = cell.result, [f"{cell.state.value}: {cell.reason}"]
        if run is not None:
            finders = (
                view.broken_sentences,
                view.unknown_sentences,
                view.list_missing_traces,
                view.list_failed_counters,
            )
            problems = [sentence for find in finders for sentence in find(run)]
        yield from (f"{cell.environment.name}: {problem}" for problem in problems)
    for s in result.neighbours:
        if s.state is State.UNEXPLAINED:
            yield f"{s.from_} → {s.to}: {number(s.residual or 0)} FLOP unexplained: {s.reason}"


def layers(result: MatrixResult) -> list[str]:
    """The model's layers in their order, over all environments."""
    return list(dict.fromkeys(r.layer for c in result.cells if c.result is not None for r in c.result.layers))


def _notes(result: MatrixResult) -> Iterator[str]:
    for cell in result.cells:
        for x in cell.result.ledgers if cell.result is not None else ():
            yield from (f"{cell.environment.name}: {x.counter}: {note}" for note in x.notes)


def to_json(result: MatrixResult) -> str:
    """The report as JSON text; ledgers and statements are those of a run's JSON."""
    return layout(to_dict(result))


def to_dict(result: MatrixResult) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and ints."""
    convention = result.convention
    params = next((c.result.params for c in result.cells if c.result is not None), {})
    return {
        "schema": SCHEMA,
        "kind": "matrix",
        "model": result.model,
        "params": {k: plain(v) for k, v in params.items()},
        "convention": convention.name,
        "convention_weights": convention.weights,
        "exit_code": result.exit_code,
        "environments": [_environment(cell) for cell in result.cells],
        "neighbours": [statement_data(s) for s in result.neighbours],
    }


def _environment(cell: EnvironmentResult) -> dict[str, Any]:
    env, run = cell.environment, cell.result
    return {
        **fields_of(env, "name title python requirements"),
        "versions": versions(cell),
        **fields_of(cell, "state reason borrowed"),
        "ledgers": [json.ledger_data(x) for x in run.ledgers] if run is not None else [],
        "traces": [_trace(t, run) for t in run.traces] if run else [],
        "statements": [statement_data(s) for s in to_the_work(cell)],
    }


def _trace(trace: TraceResult, run: Answer) -> dict[str, Any]:
    return {k: v for k, v in json.trace_data(run, trace).items() if k not in ("phases", "rows")}


def _scrub_paths(result: MatrixResult) -> MatrixResult:
    """The result without the absolute paths that messages of other programs may hold."""
    cells = tuple(
        replace(c, reason=_pathless(c.reason), borrowed=_pathless(c.borrowed), result=c.result and _scrub_run(c.result))
        for c in result.cells
    )
    return replace(result, cells=cells, neighbours=tuple(_without_paths(s) for s in result.neighbours))


def _scrub_run(run: Answer) -> Answer:
    ledgers: tuple[LedgerResult, ...] = tuple(replace(x, reason=_pathless(x.reason)) for x in run.ledgers)
    traces: tuple[TraceResult, ...] = tuple(
        replace(t, reason=_pathless(t.reason), notes=tuple(map(_pathless, t.notes))) for t in run.traces
    )
    return replace(run, ledgers=ledgers, traces=traces, statements=tuple(_without_paths(s) for s in run.statements))


def _without_paths(s: Statement) -> Statement:
    return replace(s, reason=_pathless(s.reason))


def _pathless(text: str) -> str:
    return _ABSOLUTE.sub("(path)", text)
