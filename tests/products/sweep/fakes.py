"""Requests and answers without any model: what an executor runs in the tests of the engine."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconcile.products.sweep import cells

LOG = "RECONCILE_TEST_LOG"
MARK = "RECONCILE_TEST_MARK"


def request(name: str, **more: Any) -> dict[str, Any]:
    """A cell's request, with a key of its own."""
    cell = cells.Cell(name, model=name)
    return {**cells.request_of(cell, cells.Manner(), ()), "key": f"key of {name}", **more}


def counter(name: str = "fvcore", total: int = 10, work: int = 10, residual: int = 0) -> dict[str, Any]:
    """A counter of an outcome."""
    state = "unexplained" if residual else "equal" if total == work else "explained"
    causes = {} if total == work else {"op-not-counted": work - total - residual}
    return {
        "counter": name, "framework": "torch", "unit": "FLOP", "reported": total, "normalised": total, "state": state,
        "reason": "nobody knows" if residual else "", "work": work, "residual": residual, "causes": causes,
    }  # fmt: skip


LOST = {"state": "failed", "reported": None, "normalised": None, "work": None, "residual": None, "reason": "died"}
"""What a counter of an outcome has that failed."""
BETWEEN = {
    "from": "trace@tf", "to": "trace@torch", "state": "equal", "reason": "", "work": 10, "residual": 0, "causes": {},
}  # fmt: skip
"""Of the traces of two frameworks."""


def outcome(name: str, *counters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A run's outcome."""
    trace = {
        "framework": "torch",
        "state": "explained",
        "reason": "",
        "work": 10,
        "totals": {"matmul": 10},
        "notes": [],
    }
    found = {
        "name": name, "refused": {}, "exit_code": 0, "convention": "matmul", "pass": "call",
        "params": {}, "inputs": {}, "environment": {}, "traces": [trace],
        "counters": list(counters or [counter()]), "between": [], "open": [],
    }  # fmt: skip
    return {**found, **more}


def answer(text: str) -> str:
    """What a cell's process says of a model with which all is well; a line in $RECONCILE_TEST_LOG for each that ran."""
    asked = json.loads(text)
    name = asked["cell"]["name"]
    with Path(os.environ[LOG]).open("a") as log:
        log.write(f"{name}\n")
    said = {"key": asked["key"], "outcome": outcome(name), "texts": {"md": f"# {name}\n"}, "interrupted": ""}
    return json.dumps({**said, "cost": {"wall_s": 0.1, "peak_bytes": 1}})


def slowly(text: str) -> str:
    """The same, after a while."""
    time.sleep(0.2)
    return answer(text)


def marked(**marks: str) -> dict[int, dict[str, str]]:
    """The variables of processes that have all of these, '' for any value, by their id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            pairs = [item.partition("=") for item in path.read_text(errors="replace").split("\0")]
        except OSError:
            continue
        has = {name: value for name, _, value in pairs}
        if all(name in has and value in ("", has[name]) for name, value in marks.items()):
            found[int(path.parent.name)] = has
    return found
