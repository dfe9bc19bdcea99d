"""Rows of the gallery, one per pair of the zoo: measured in parallel, kept in a JSON file with the hash of the pair's source.

The gallery's two pages use it, and the scorecard uses its parallel runs (``at_once``) and its file format.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ...core.causes import State
from ...core.conventions import BUILT_IN, MATMUL, Conventions
from ...engine.answer import Answer
from ...engine.settle import Collected, settle
from ...launch.workers.supervisor import abandon
from ...model_zoo import loading
from ...work import load
from ..shapes import Shape, make, record, schema_of, table

SCHEMA = 1
MAKE_GALLERY_AGAIN = "Make it again with `reconcile zoo gallery`."
CLEAN = (State.EQUAL, State.EXPLAINED)


@dataclass(frozen=True, slots=True)
class CounterCell:
    """One counter on one model: its normalised total and the work that ran there, in FLOPs under ``matmul``.

    ``cause`` is the largest cause of their difference; ``reason`` says why there is no number, or describes what is unexplained.
    """

    state: str
    total: int | None
    work: int | None
    cause: str
    reason: str


class ZooRow(Protocol):
    """The fields of every row: the model, the hash of its source, the exit code by convention, a sentence on each open point."""

    @property
    def model(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def states(self) -> Mapping[str, int]: ...
    @property
    def open(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=ZooRow)
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def is_reconciled(row: ZooRow) -> bool:
    """Whether every statement under every built-in convention has residual 0, and nothing failed."""
    return not any(row.states.values())


def source_of(model: str) -> str:
    """SHA-256 over the pair's file and the files of the zoo that it imports."""
    files, waiting = set[Path](), [Path(loading.pair_path(model))]
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        files.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reconcile.model_zoo"):
                base = Path(loading.HERE).joinpath(*(node.module or "").split(".")[2:])
                names = [base.with_suffix(".py"), *((base / alias.name).with_suffix(".py") for alias in node.names)]
                names += [base / "__init__.py"] * (base != Path(loading.HERE))
                waiting += [name for name in names if name.is_file() and name.name != "pair.py"]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def cell(result: Answer, counter: str, framework: str) -> CounterCell:
    """A counter beside the work that ran in its framework."""
    ledger = next(x for x in result.ledgers if x.counter == counter)
    statement = next((s for s in result.statements if (s.from_, s.to) == (counter, f"trace@{framework}")), None)
    if statement is None:
        return CounterCell(ledger.state.value, ledger.normalised_total, None, "", ledger.reason)
    causes = statement.by_cause()
    largest = max(causes, key=lambda cause: abs(causes[cause]), default=None)
    total, work = statement.from_total, statement.to_total
    why = "" if statement.state in CLEAN else statement.reason
    return CounterCell(statement.state.value, total, work, largest.value if largest else "", why)


def settle_all(collected: Collected) -> dict[str, Answer]:
    """The results under every built-in convention, by its name; that under ``matmul`` has the others with it."""
    results = {name: settle(collected, Conventions(convention)) for name, convention in BUILT_IN.items()}
    others = tuple(result for name, result in results.items() if name != MATMUL.name)
    return {**results, MATMUL.name: replace(results[MATMUL.name], others=others)}


def at_once(
    names: Sequence[K],
    jobs: int,
    work: Callable[[K], T],
    each: Callable[[K, T], None],
    begun: Callable[[K], None] = lambda name: None,
) -> dict[K, T]:
    """The result of each name, ``jobs`` at a time. ``begun`` is called when one starts, ``each`` when it is done.

    If anything fails, the workers of those that have started are ended.
    """
    load()
    done: dict[K, T] = {}

    def run_one(name: K) -> T:
        begun(name)
        return work(name)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = {pool.submit(run_one, name): name for name in names}
        try:
            for future in as_completed(futures):
                name = futures[future]
                done[name] = future.result()
                each(name, done[name])
        except BaseException:
            abandon(pool, futures)
            raise
    return done


def dump(rows: Iterable[Any]) -> str:
    """The text of ``gallery.json`` or ``steps.json``: rows by name, a line each."""
    return write_lines(SCHEMA, {row.model: asdict(row) for row in rows})


def write_lines(schema: int, rows: Mapping[str, Any]) -> str:
    """The text of a file that ``read_rows`` reads: rows by name, a line each, so that a row that moves is one line of a diff."""
    lines = [f"  {json.dumps(name)}: {json.dumps(rows[name])}" for name in sorted(rows)]
    return f'{{"schema": {schema}, "rows": {{\n' + ",\n".join(lines) + "\n}}\n"


def read_rows(path: Path, kind: type[T], again: str = MAKE_GALLERY_AGAIN) -> dict[str, T]:
    """The rows in this file, each of that dataclass; none if there is no such file. Raises UsageError if it cannot be read."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):  # reading it says why
        pass
    shape = Shape(record({"schema": {"const": SCHEMA}, "rows": table(schema_of(kind))}))
    return {name: make(kind, fields) for name, fields in shape.read(path, "the file", again)["rows"].items()}
