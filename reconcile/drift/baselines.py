"""Baseline files: reads and writes one model's traces and ledgers, which later runs are compared with.

There is one JSON file per model and environment, ``<folder>/<model>/<environment>.json``; a training step has
``<folder>/<model>-training-<optimizer>/<environment>.json``.  The file holds the records as the workers wrote
them, without paths and dates: two baselines of the same versions are the same file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from .. import __version__
from ..core import atomic
from ..core.atomic import safe
from ..core.causes import State
from ..core.errors import UsageError, brief, reason
from ..core.records import SCHEMA as RECORDS
from ..core.records import Ledger, Trace, from_json, to_json
from ..core.user_files import Unsound, parse_json, read_json
from ..engine.reconcile import Missing
from ..engine.settle import Collected
from ..launch.environments import CURRENT as CURRENT
from .baseline_file import Malformed, check_baseline, check_record

KIND = "reconcile-baseline"
SCHEMA = 1
FOLDER = Path("reports/baselines")
SHARED = 8
"""Ops or entries of a layer on one line, at most, where the versions are pinned."""

MAKE_AGAIN_WITH_UPDATE = (
    "Restore it from version control, or move it away and take a new one: the same command with --update."
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The records of one run of a model, as the runner ``collected`` them, and the version of reconcile (``tool``)."""

    model: str
    environment: str
    tool: str
    collected: Collected

    @property
    def counters(self) -> tuple[str, ...]:
        """The counters whose ledgers it holds."""
        return tuple(led.counter for led in self.collected.ledgers if isinstance(led, Ledger))

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the frameworks and counters, by package."""
        return versions(self.collected)


def versions(collected: Collected) -> dict[str, str]:
    """Versions of the frameworks and counters that ran, by package."""
    by_package: dict[str, str] = {}
    for record in (*collected.traces, *collected.ledgers):
        if not isinstance(record, Missing):
            by_package.update(record.versions)
    return dict(sorted(by_package.items()))


def baseline_path(folder: Path, model: str, environment: str = CURRENT, training: str = "") -> Path:
    """The path of a model's baseline. ``model`` is a zoo name or a pair file, ``training`` the optimiser of a training step."""
    name = Path(model).stem if model.endswith(".py") else model
    return folder / safe(f"{name}-training-{training}" if training else name) / f"{safe(environment)}.json"


def describe_pass(collected: Collected) -> str:
    """The pass that was counted, in words."""
    training = collected.meta.get("training", "")
    return f"a training step with {training}" if training else "a call of the model"


def dumps(collected: Collected, environment: str = CURRENT) -> str:
    """The records of a run as a JSON string; the same records give the same string. An op or entry has a line of its own. In an
    environment of pinned versions, where only a change of the model moves them, those of one layer share lines."""
    meta = collected.meta
    records = [*collected.traces, *collected.ledgers]
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
        "versions": versions(collected),
        "missing": [_drop_reason(r) for r in records if isinstance(r, Missing)],
        "traces": [_record(t) for t in collected.traces if not isinstance(t, Missing)],
        "ledgers": [_record(led) for led in collected.ledgers if not isinstance(led, Missing)],
    }
    return _write(data, 0, by_layer=environment != CURRENT) + "\n"


def _record(record: Trace | Ledger) -> Any:
    """A record as JSON data, without the parameters of layers, which no count depends on. Attributes and tables come in any
    order, so they are sorted by name."""
    data = json.loads(to_json(record), object_pairs_hook=_by_name)
    data.pop("parameters", None)
    return data


def _by_name(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    for name in ("attrs", "versions", "unsupported"):
        if isinstance(table.get(name), dict):
            table[name] = dict(sorted(table[name].items()))
    return table


def _drop_reason(missing: Missing) -> dict[str, str]:
    """A missing record without its reason, which may name a path."""
    return {"name": missing.name, "framework": missing.framework, "state": missing.state.value}


def _write(value: Any, depth: int, by_layer: bool = False) -> str:
    """JSON text: a list or table that contains lists of tables has one member per line, or (``by_layer``) ``SHARED`` members of
    one layer that follow each other; everything else stays on one line."""
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, Mapping) and depth < 3:
        items = [f"{json.dumps(str(k))}: {_write(v, depth + 1, by_layer)}" for k, v in value.items()]
    elif isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
        items = [_write(v, depth + 1, by_layer) for v in value]
        if by_layer and all(_layer(v) is not None for v in value):
            layers = groupby(zip(value, items, strict=True), key=lambda pair: _layer(pair[0]))
            texts = ([text for _, text in members] for _, members in layers)
            items = [", ".join(own[n : n + SHARED]) for own in texts for n in range(0, len(own), SHARED)]
    else:
        return json.dumps(value)
    opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    return f"{opening}{pad}{f',{pad}'.join(items)}\n{' ' * depth}{closing}" if items else opening + closing


def _layer(member: Mapping[str, Any]) -> str | None:
    """The layer of an op, an entry or a sighting, None for any other table."""
    op = member.get("op")
    layer: str | None = (op if isinstance(op, Mapping) else member).get("layer")
    return layer


def load(path: Path) -> Baseline:
    """Read a baseline. Raises UsageError, which says what to do, if the file is missing, damaged, newer or something else."""
    return _read_baseline(_read_file(path), path)


def _read_baseline(data: Any, path: Path) -> Baseline:
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise UsageError(
            f"{path} is not a baseline: it {_describe_kind(data)}. Give a file that `reconcile check` wrote."
        )
    _check_format(data, path)
    try:
        check_baseline(data, SCHEMA, RECORDS)
    except Malformed as error:
        raise UsageError(f"the baseline {path} is damaged: {error}. {MAKE_AGAIN_WITH_UPDATE}") from error
    missing = [
        Missing(m["name"], m["framework"], State(m["state"]), "it was missing when the baseline was taken")
        for m in data["missing"]
    ]
    traces = [from_json(json.dumps(t)) for t in data["traces"]]
    ledgers = [from_json(json.dumps(led)) for led in data["ledgers"]]
    meta = {name: data[name] for name in ("params", "layers", "frameworks", "source")}
    model = data["model"]
    meta.update(name=model, doc="", notes=[], published=[], training=data.get("training", ""))
    collected = Collected(
        meta,
        (*traces, *(m for m in missing if m.name == "trace")),
        (*ledgers, *(m for m in missing if m.name != "trace")),
    )
    return Baseline(model, data["environment"], data["tool"], collected)


def _check_format(data: Mapping[str, Any], path: Path) -> None:
    """Raise UsageError for a file, or a record in it, whose format this reconcile does not read."""
    records = [r for kind in ("traces", "ledgers") if isinstance(data.get(kind), list) for r in data[kind]]
    formats = [("format", data.get("schema"), SCHEMA)]
    formats += [("record format", r.get("schema"), RECORDS) for r in records if isinstance(r, dict)]
    for noun, written, read in formats:
        if type(written) is int and written > read:
            raise UsageError(
                f"{path} was written by a newer reconcile ({noun} {written}; this one reads {read}). "
                f"Upgrade reconcile, or take a new baseline elsewhere with --baselines and --update."
            )
        if type(written) is int and 0 < written < read:
            raise UsageError(
                f"{path} was written by an older reconcile ({noun} {written}; this one reads {read}). "
                "Move it away and take a new one: the same command with --update."
            )


def path_of_framework(path: Path, framework: str) -> Path:
    """The baseline at ``path``; if that is of a model in another framework, the one with this framework in its name. Raises
    UsageError for a file that is no baseline."""
    apart = path.with_name(f"{path.stem}-{framework}{path.suffix}")
    if not path.is_file():
        return apart if apart.is_file() else path
    return path if framework in load(path).collected.meta["frameworks"] else apart


def load_any(path: Path) -> Baseline:
    """Read a baseline, or a single ledger as a worker writes it. Raises UsageError as ``load`` does."""
    data = _read_file(path)
    if not isinstance(data, dict) or data.get("kind") != "ledger":
        return load(path)
    try:
        check_record(data, "ledger", RECORDS)
    except Malformed as error:
        raise UsageError(f"the ledger {path} is damaged: {error}. Make it again.") from error
    ledger: Ledger = from_json(json.dumps(data))
    meta = {"name": "", "params": {}, "layers": [], "frameworks": [ledger.framework], "source": ""}
    return Baseline("", "", "", Collected(meta, (), (ledger,)))


def _read_file(path: Path) -> Any:
    return read_json(path, "the file", MAKE_AGAIN_WITH_UPDATE)


def _describe_kind(data: Any) -> str:
    if isinstance(data, dict) and "statements" in data:
        return "is a report"
    if isinstance(data, dict) and data.get("kind") in ("trace", "ledger"):
        return f"is a single {data['kind']}"
    return "is another kind of JSON file"


def check_comparable(baseline: Baseline, path: Path, collected: Collected, *, params: bool = True) -> None:
    """Raise UsageError if a baseline is of another model or pass, or (``params``) was taken with other parameters."""
    name = collected.meta["name"]
    if baseline.model != name:
        raise UsageError(f"{path} is a baseline of {baseline.model}, not of {name}. Give the baseline of {name}.")
    if describe_pass(baseline.collected) != describe_pass(collected):
        raise UsageError(
            f"{path} is a baseline of {describe_pass(baseline.collected)}, this run is {describe_pass(collected)}. "
            f"Give the baseline of the same pass and optimizer (--pass, --optimizer, --against)."
        )
    before, now = baseline.collected.meta["params"], collected.meta["params"]
    if not params:
        return
    other = [k for k in sorted({*before, *now}) if k not in before or k not in now or before[k] != now[k]]
    if other:
        taken = ", ".join(f"{k}={before.get(k, '(missing)')}" for k in other)
        run = ", ".join(f"{k}={now.get(k, '(missing)')}" for k in other)
        raise UsageError(
            f"{path} was taken with {taken}, this run has {run}. "
            f"Run with the same model, inputs and parameters, accept the new ones with --update, or use another --baselines."
        )


def save(path: Path, collected: Collected, environment: str = CURRENT) -> Path | None:
    """Write a baseline. A baseline of other versions is kept beside it, and its new path is returned.

    Raises UsageError if the file cannot be written, and for records that could not be read again.
    """
    text = dumps(collected, environment)
    try:
        _read_baseline(parse_json(text), path)
    except Unsound as error:
        raise UsageError(f"{collected.meta['name']} cannot be kept as a baseline: {error}. Rename that.") from error
    kept = _keep(path, versions(collected)) if os.path.exists(path) else None
    _write_file(path, text)
    return kept


def _keep(path: Path, now: Mapping[str, str]) -> Path | None:
    """Copy the baseline to a name with its versions, if these are not the versions ``now``."""
    old = load(path)
    if old.versions == dict(now):
        return None
    spelled = "+".join(f"{name}-{version}" for name, version in old.versions.items())
    kept = path.with_name(f"{path.stem}@{safe(spelled.replace('@', '-'))}.json")
    _write_file(kept, path.read_bytes().decode())
    return kept


def _write_file(path: Path, text: str) -> None:
    """Write a file completely or not at all. Raises UsageError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_file(path, text)
    except OSError as error:
        raise UsageError(f"cannot write {brief(path)}: {reason(error)}. Choose another folder.") from error
    except UsageError as error:
        raise UsageError(f"{error} Choose another folder.") from error
