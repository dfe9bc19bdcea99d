"""Baselines: what one model's counters and tracers said, raw, as a file that later runs are held against.

One JSON file per model and environment, ``<folder>/<model>/<environment>.json``; of a training step,
``<folder>/<model>-training-<optimizer>/<environment>.json``.  It holds the records as the workers left
them, and nothing that tells where or when: taken twice on the same versions it is the same file.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..core.atomic import safe
from ..core.causes import State
from ..core.errors import UsageError
from ..core.records import SCHEMA as RECORDS
from ..core.records import Ledger, Trace, from_json, to_json
from ..core.user_files import read_json
from ..engine.reconcile import Missing
from ..engine.settle import Collected
from .baseline_file import Malformed, check_baseline, check_record

KIND = "reconcile-baseline"
SCHEMA = 1
FOLDER = Path("reports/baselines")
CURRENT = "current"

AGAIN = "Restore it from version control, or move it away and take a new one with: reconcile check --model {} --update"


@dataclass(frozen=True, slots=True)
class Baseline:
    """One take of a model: ``found`` is what the runner collected, ``tool`` the version of reconcile that wrote it."""

    model: str
    environment: str
    tool: str
    found: Collected

    @property
    def counters(self) -> tuple[str, ...]:
        """The counters of which it holds a ledger."""
        return tuple(led.counter for led in self.found.ledgers if isinstance(led, Ledger))

    @property
    def versions(self) -> dict[str, str]:
        """Frameworks and counters, by package."""
        return versions(self.found)


def versions(found: Collected) -> dict[str, str]:
    """Versions of the frameworks and counters that were run, by package."""
    held: dict[str, str] = {}
    for record in (*found.traces, *found.ledgers):
        if not isinstance(record, Missing):
            held.update(record.versions)
    return dict(sorted(held.items()))


def file_of(folder: Path, model: str, environment: str = CURRENT, training: str = "") -> Path:
    """Where a model's baseline lies. ``model`` is a zoo name or a pair file, ``training`` the optimiser of a training step."""
    name = Path(model).stem if model.endswith(".py") else model
    return folder / safe(f"{name}-training-{training}" if training else name) / f"{safe(environment)}.json"


def pass_of(found: Collected) -> str:
    """What was counted, in words."""
    training = found.meta.get("training", "")
    return f"a training step with {training}" if training else "a call of the model"


def dumps(found: Collected, environment: str = CURRENT) -> str:
    """A take as text, one op or entry per line; the same take gives the same text."""
    meta = found.meta
    records = [*found.traces, *found.ledgers]
    data = {
        "kind": KIND,
        "schema": SCHEMA,
        "tool": __version__,
        "model": meta["name"],
        "environment": environment,
        **({"training": meta["training"]} if meta.get("training") else {}),
        "params": meta["params"],
        "layers": meta["layers"],
        "frameworks": meta["frameworks"],
        "source": meta["source"],
        "versions": versions(found),
        "missing": [_missing(r) for r in records if isinstance(r, Missing)],
        "traces": [_record(t) for t in found.traces if not isinstance(t, Missing)],
        "ledgers": [_record(led) for led in found.ledgers if not isinstance(led, Missing)],
    }
    return _write(data, 0) + "\n"


def _record(record: Trace | Ledger) -> Any:
    """A record as JSON data; attributes and tables, which come in any order, by name."""
    return json.loads(to_json(record), object_pairs_hook=_by_name)


def _by_name(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    for name in ("attrs", "versions", "unsupported"):
        if isinstance(table.get(name), dict):
            table[name] = dict(sorted(table[name].items()))
    return table


def _missing(missing: Missing) -> dict[str, str]:
    """Without the reason, which may name a place."""
    return {"name": missing.name, "framework": missing.framework, "state": missing.state.value}


def _write(value: Any, depth: int) -> str:
    """Lists and tables that hold lists of tables are laid out, one member per line; all else stays on its line."""
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, Mapping) and depth < 3:
        items = [f"{json.dumps(str(k))}: {_write(v, depth + 1)}" for k, v in value.items()]
    elif isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
        items = [_write(v, depth + 1) for v in value]
    else:
        return json.dumps(value)
    opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    return f"{opening}{pad}{f',{pad}'.join(items)}\n{' ' * depth}{closing}" if items else opening + closing


def load(path: Path) -> Baseline:
    """Read a baseline. Raises UsageError, with what to do, for a file that is missing, damaged, newer or something else."""
    data = _json(path)
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise UsageError(f"{path} is not a baseline: it {_nature(data)}. Give a file that `reconcile check` wrote.")
    model = data["model"] if isinstance(data.get("model"), str) else "NAME"
    _of_this_time(data, path, model)
    try:
        check_baseline(data, SCHEMA, RECORDS)
    except Malformed as error:
        raise UsageError(f"the baseline {path} is damaged: {error}. {AGAIN.format(model)}") from error
    missing = [
        Missing(m["name"], m["framework"], State(m["state"]), "it was not there when the baseline was taken")
        for m in data["missing"]
    ]
    traces = [from_json(json.dumps(t)) for t in data["traces"]]
    ledgers = [from_json(json.dumps(led)) for led in data["ledgers"]]
    meta = {name: data[name] for name in ("params", "layers", "frameworks", "source")}
    meta.update(name=model, doc="", notes=[], published=[], training=data.get("training", ""))
    found = Collected(
        meta,
        (*traces, *(m for m in missing if m.name == "trace")),
        (*ledgers, *(m for m in missing if m.name != "trace")),
    )
    return Baseline(model, data["environment"], data["tool"], found)


def _of_this_time(data: Mapping[str, Any], path: Path, model: str) -> None:
    """Raises UsageError for a file, or a record in it, of a format that this reconcile does not read."""
    records = [r for kind in ("traces", "ledgers") if isinstance(data.get(kind), list) for r in data[kind]]
    formats = [("format", data.get("schema"), SCHEMA)]
    formats += [("record format", r.get("schema"), RECORDS) for r in records if isinstance(r, dict)]
    for what, found, read in formats:
        if type(found) is int and found > read:
            raise UsageError(
                f"{path} was written by a newer reconcile ({what} {found}; this one reads {read}). "
                f"Upgrade reconcile, or take a new baseline elsewhere with --baselines and --update."
            )
        if type(found) is int and 0 < found < read:
            raise UsageError(
                f"{path} was written by an older reconcile ({what} {found}; this one reads {read}). "
                f"Move it away and take a new one with: reconcile check --model {model} --update"
            )


def load_any(path: Path) -> Baseline:
    """Read a baseline, or one ledger by itself as a worker writes it. Raises UsageError as ``load`` does."""
    data = _json(path)
    if not isinstance(data, dict) or data.get("kind") != "ledger":
        return load(path)
    try:
        check_record(data, "ledger", RECORDS)
    except Malformed as error:
        raise UsageError(f"the ledger {path} is damaged: {error}. Make it again.") from error
    ledger: Ledger = from_json(json.dumps(data))
    meta = {"name": "", "params": {}, "layers": [], "frameworks": [ledger.framework], "source": ""}
    return Baseline("", "", "", Collected(meta, (), (ledger,)))


def _json(path: Path) -> Any:
    return read_json(path, "the file", AGAIN.format("NAME"))


def _nature(data: Any) -> str:
    if isinstance(data, dict) and "statements" in data:
        return "is a report"
    if isinstance(data, dict) and data.get("kind") in ("trace", "ledger"):
        return f"is a {data['kind']} by itself"
    return "is some other JSON"


def held_against(baseline: Baseline, path: Path, found: Collected, *, params: bool = True) -> None:
    """Raises UsageError where a baseline is another model's, or (``params``) was taken with other parameters."""
    name = found.meta["name"]
    if baseline.model != name:
        raise UsageError(f"{path} is a baseline of {baseline.model}, not of {name}. Give the one of {name}.")
    if pass_of(baseline.found) != pass_of(found):
        raise UsageError(
            f"{path} is a baseline of {pass_of(baseline.found)}, this run is {pass_of(found)}. "
            f"Give the one of the same pass and optimizer (--pass, --optimizer, --against)."
        )
    before, now = baseline.found.meta["params"], found.meta["params"]
    if not params:
        return
    other = [k for k in sorted({*before, *now}) if k not in before or k not in now or before[k] != now[k]]
    if other:
        taken = ", ".join(f"{k}={before.get(k, '(not there)')}" for k in other)
        run = ", ".join(f"{k}={now.get(k, '(not there)')}" for k in other)
        raise UsageError(
            f"{path} was taken with {taken}, this run has {run}. "
            f"Run with the same (--set), accept the new ones with --update, or keep them apart (--baselines DIR)."
        )


def save(path: Path, found: Collected, environment: str = CURRENT) -> Path | None:
    """Write a baseline; one that other versions left there is kept beside it, and its new path returned.

    Raises UsageError where the folder cannot be written to.
    """
    text = dumps(found, environment)
    kept = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        waiting = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            waiting.write_text(text, encoding="utf-8", newline="\n")
            if path.exists():
                kept = _keep(path, versions(found))
            waiting.replace(path)
        finally:
            waiting.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise UsageError(f"the baseline {path} cannot be written: {why}. Choose another folder.") from error
    return kept


def _keep(path: Path, now: Mapping[str, str]) -> Path | None:
    """Copy the file there to a name with its versions, if it is of other versions than ``now``."""
    old = load(path)
    if old.versions == dict(now):
        return None
    spelled = "+".join(f"{name}-{version}" for name, version in old.versions.items())
    kept = path.with_name(f"{path.stem}@{safe(spelled.replace('@', '-'))}.json")
    kept.write_bytes(path.read_bytes())
    return kept
