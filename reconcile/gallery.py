"""The gallery: every pair of the zoo at its own size, every counter as a ratio to the work that ran.

A row is measured once and kept in ``model_zoo/gallery.json``, beside the hash of the pair's source; ``reports/README.md``
and ``reconcile list models`` are made from there.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .causes import State
from .conventions import BUILT_IN, MATMUL
from .decode import figure, saved, search
from .errors import UsageError
from .grammar import Source
from .interpreters import clean_environ
from .model_zoo import pair as pairs
from .results import RunResult, Statement
from .runner import RunRequest, collect
from .settling import Collected, settle
from .work import load

FILE = Path(pairs.HERE) / "gallery.json"
BASELINES = Path("reports/baselines")
PROVE = (
    "import sys; sys.path[:] = [sys.argv[1]] + [p for p in sys.path if p]; "
    "from reconcile.proof import main; main(sys.argv[2])"
)
"""Takes this very package, and nothing from the working directory."""
SCHEMA = 1
APART = 1e-4
"""Difference, relative to the largest output, from which on two outputs are not the same."""
PROOF_LIMIT = 1800.0
"""Seconds that both models may take to compute one output each."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One counter on one model: its normalised total and the work that ran there, in FLOPs under ``matmul``.

    ``cause`` is the largest of what separates them; ``reason`` says why there is no number, or what is unexplained.
    """

    state: str
    total: int | None
    work: int | None
    cause: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A published figure and what it is for this pair: ``numbers`` distinct numbers have its digits, 0 is unexplained."""

    figure: str
    claim: str
    source: str
    what: str
    numbers: int


@dataclass(frozen=True, slots=True)
class Row:
    """One model. ``error`` is the largest difference of the two outputs relative to the largest output, None if unknown;
    ``proven_at`` are the settings it was measured at where these are not its own.
    ``states`` maps a convention to the exit code of its reconciliation; ``declared`` says why the two are not equal.
    """

    model: str
    about: str
    source: str
    settings: Mapping[str, Any]
    weights: int | None
    error: float | None
    proven_at: Mapping[str, str]
    declared: str
    work: Mapping[str, int]
    cells: Mapping[str, Cell]
    states: Mapping[str, int]
    open: tuple[str, ...] = ()
    published: tuple[Reading, ...] = field(default=())

    @property
    def reconciled(self) -> bool:
        """Whether every statement under every built-in convention has residual 0, and nothing failed."""
        return not any(self.states.values())


def source_of(model: str) -> str:
    """SHA-256 over the pair's file and the files of the zoo that it imports."""
    files, waiting = set[Path](), [Path(pairs.pair_path(model))]
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        files.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reconcile.model_zoo"):
                base = Path(pairs.HERE).joinpath(*(node.module or "").split(".")[2:])
                names = [base.with_suffix(".py"), *((base / alias.name).with_suffix(".py") for alias in node.names)]
                names += [base / "__init__.py"] * (base != Path(pairs.HERE))
                waiting += [name for name in names if name.is_file() and name.name != "pair.py"]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def measure(model: str, baselines: Path = BASELINES) -> tuple[Row, RunResult | None]:
    """Run a pair of the zoo with every counter and both its models on one input; the result under ``matmul`` goes along,
    with the other conventions' as its ``others``.

    What cannot be run is a row that says so. Raises UsageError for a model that is not there.
    """
    module = pairs.load_pair(pairs.pair_path(model))
    about = (module.__doc__ or "").partition("\n")[0]
    declared = getattr(module, "NOT_EQUIVALENT", "")
    both = _proof(model)
    try:
        found = collect(RunRequest(model, {}))
    except UsageError as error:
        row = Row(model, about, source_of(model), {}, None, None, {}, declared, {}, {}, {MATMUL.name: 3}, (str(error),))
        return row, None
    results = {name: settle(found, convention, BUILT_IN) for name, convention in BUILT_IN.items()}
    others = tuple(result for name, result in results.items() if name != MATMUL.name)
    shown = replace(results[MATMUL.name], others=others)
    row = Row(
        model=model,
        about=about,
        source=source_of(model),
        settings=shown.params,
        weights=both.get("weights"),
        error=both.get("error"),
        proven_at=both.get("at", {}),
        declared=declared,
        work={t.framework: t.totals[MATMUL.name] for t in shown.traces if t.complete},
        cells={x.counter: _cell(shown, x.counter, x.framework) for x in shown.ledgers},
        states={name: result.exit_code for name, result in results.items()},
        open=(*_doubts(both, declared), *_open(results)),
        published=tuple(_readings(model, found, baselines)),
    )
    return row, shown


def _cell(result: RunResult, counter: str, framework: str) -> Cell:
    ledger = next(x for x in result.ledgers if x.counter == counter)
    statement = next((s for s in result.statements if (s.from_, s.to) == (counter, f"trace@{framework}")), None)
    if statement is None:
        return Cell(ledger.state.value, ledger.normalised_total, None, "", ledger.reason)
    causes = statement.by_cause()
    largest = max(causes, key=lambda cause: abs(causes[cause]), default=None)
    total, work = statement.from_total, statement.to_total
    return Cell(statement.state.value, total, work, largest.value if largest else "", _why(statement))


def _why(statement: Statement) -> str:
    return "" if statement.state in (State.EQUAL, State.EXPLAINED) else statement.reason


def _doubts(both: Mapping[str, Any], declared: str) -> Iterable[str]:
    """Why the two models may not be the same one, in a sentence."""
    if "reason" in both:
        yield f"the outputs could not be compared: {both['reason']}"
    elif not both["varies"]:
        yield "the outputs are constant, so that their equality says nothing"
    elif not declared and not both["error"] < APART:
        yield f"the outputs differ by {both['error']:g} of the largest one, and the pair does not say that they should"


def _open(results: Mapping[str, RunResult]) -> Iterable[str]:
    """What stands in the way of a clean reconciliation, a sentence each."""
    for name, result in results.items():
        for trace in result.traces:
            if not trace.complete:
                yield f"{name}: {trace.name}: {trace.reason}"
        for statement in result.statements:
            if statement.residual or statement.state not in (State.EQUAL, State.EXPLAINED):
                yield f"{name}: {statement.from_} to {statement.to}: {statement.state.value}: {statement.reason}"
        for ledger in result.ledgers:
            if ledger.unchecked or ledger.mismatches:
                broken = len(ledger.mismatches)
                yield f"{name}: {ledger.counter}: {ledger.unchecked} entries unchecked, {broken} rules broken"


def _readings(model: str, found: Collected, baselines: Path) -> Iterable[Reading]:
    sources = [Source("current", found), *saved(RunRequest(model, {}), baselines)]
    for text, claim, where in found.meta["published"]:
        try:
            wanted = figure(text)
        except UsageError:
            yield Reading(text, claim, where, "", 0)
            continue
        decoded = search(model, wanted, sources)
        yield Reading(text, claim, where, decoded.matches[0].what if decoded.matches else "", len(decoded.values))


def _proof(model: str) -> dict[str, Any]:
    """What proof.py says of both models, run in a process of its own."""
    command = [sys.executable, "-c", PROVE, str(Path(__file__).parents[1]), model]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=clean_environ(), timeout=PROOF_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"reason": f"not within {PROOF_LIMIT:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"reason": lines[-1][:300] if lines else f"the process ended with {done.returncode}"}
    data: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return data


def build(
    models: Sequence[str],
    jobs: int,
    each: Callable[[str, Row, RunResult | None], None],
    baselines: Path = BASELINES,
    begun: Callable[[str], None] = lambda model: None,
) -> list[Row]:
    """Measure these models, ``jobs`` at a time; ``begun`` hears of every one as it starts, ``each`` as it is done.

    Rows come in the order given.
    """
    load()
    rows: dict[str, Row] = {}

    def run(model: str) -> tuple[Row, RunResult | None]:
        begun(model)
        return measure(model, baselines)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = {pool.submit(run, model): model for model in models}
        try:
            for future in as_completed(futures):
                row, result = future.result()
                rows[row.model] = row
                each(row.model, row, result)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [rows[model] for model in models]


def dump(rows: Iterable[Row]) -> str:
    """Rows as JSON, by name."""
    data = {row.model: asdict(row) for row in sorted(rows, key=lambda row: row.model)}
    return json.dumps({"schema": SCHEMA, "rows": data}, indent=1) + "\n"


def read(path: Path = FILE) -> dict[str, Row]:
    """The rows kept there; none where there is no such file. Raises UsageError for one that cannot be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ValueError(f"its schema is {data['schema']}, this version reads {SCHEMA}")
        return {name: _row(fields) for name, fields in data["rows"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path.name} cannot be read: {error}. Make it again with `reconcile gallery`.") from error


def _row(fields: dict[str, Any]) -> Row:
    cells = {name: Cell(**cell) for name, cell in fields["cells"].items()}
    published = tuple(Reading(**reading) for reading in fields["published"])
    return Row(**{**fields, "cells": cells, "open": tuple(fields["open"]), "published": published})
