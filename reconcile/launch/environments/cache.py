"""A disk cache of the traces and ledgers that ``reconcile matrix`` collects in environments with pinned packages.

The key is a hash of the tool's source, the pair, its parameters and the environment's packages. Only results of zoo pairs are
cached, because the key contains their whole source. Results of the current environment, whose packages are not pinned, are
never cached.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path

from ...core import atomic
from ...core.causes import State
from ...core.errors import UsageError
from ...core.records import Ledger, Trace, from_json, to_json
from ...core.user_files import read_json
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...model_zoo.loading import zoo_names
from ...worker.import_path import PACKAGE_WAS_LENT
from ..request import RunRequest
from .definitions import CURRENT, Environment
from .provision import cache_root, folder_of


@cache
def source_digest() -> str:
    """SHA-256 over every module and table (.jsonl) of this package, adapters and zoo included."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for folder in (root, root / "adapters", root / "model_zoo"):
        for file in sorted([*folder.rglob("*.py"), *folder.rglob("*.jsonl")]):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def path_of(request: RunRequest, environment: Environment) -> Path | None:
    """The file that caches this run's result, or None for a run that is not cached."""
    if environment.name == CURRENT or not environment.requirements or request.model not in zoo_names():
        return None
    key: Mapping[str, object] = {
        "source": source_digest(),
        "environment": folder_of(environment).name,
        "model": request.model,
        "overrides": dict(sorted(request.overrides.items())),
        "counters": list(request.counters),
        "device": request.device,
        "training": request.training,
        "context": request.context,
    }
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return cache_root().parent / "ledgers" / f"{name}.json"


def find(path: Path | None) -> Collected | None:
    """The result in that file; None if the file is missing or cannot be read, or if $RECONCILE_FRESH asks for real runs."""
    if path is None or os.environ.get("RECONCILE_FRESH"):
        return None
    try:
        data = read_json(path, "the kept result", "")
        records = [_parse_record(item) for item in (*data["traces"], *data["ledgers"])]
        split = len(data["traces"])
        meta = dict(data["meta"])
    except (UsageError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    traces = tuple(r for r in records[:split] if not isinstance(r, Ledger))
    ledgers = tuple(r for r in records[split:] if not isinstance(r, Trace))
    return Collected(meta, traces, ledgers) if len(traces) + len(ledgers) == len(records) else None


def keep(path: Path | None, collected: Collected) -> None:
    """Cache a result that lacks no ledger and borrowed no counter, whose release nothing pins. The file is written completely or
    not at all; a write error is ignored."""
    if path is None or any(
        isinstance(ledger, Missing) or PACKAGE_WAS_LENT in ledger.notes for ledger in collected.ledgers
    ):
        return
    data = {
        "meta": dict(collected.meta),
        "traces": [_format_record(t) for t in collected.traces],
        "ledgers": [_format_record(x) for x in collected.ledgers],
    }
    with contextlib.suppress(UsageError):
        atomic.write(path.parent, path.stem, {"json": json.dumps(data)})


def _format_record(record: Trace | Ledger | Missing) -> str:
    return json.dumps({"missing": asdict(record)}) if isinstance(record, Missing) else to_json(record)


def _parse_record(text: str) -> Trace | Ledger | Missing:
    data = json.loads(text)
    if "missing" in data:
        fields = data["missing"]
        return Missing(**{**fields, "state": State(fields["state"])})
    record: Trace | Ledger = from_json(text)
    return record
