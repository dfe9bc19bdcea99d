"""Runs the pages' programs of one framework in one process: ``python programs.py REQUEST.json RESULT.json``.

What a program prints comes back line by line; if it leaves a ``net`` and an ``x``, the causes that the tool books for
that model under each built-in convention come back, too. TensorFlow's profiler prints past Python; that goes nowhere.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

from reconcile.core.conventions import Conventions


def main(request: Path, result: Path) -> None:
    wanted: dict[str, str] = json.loads(request.read_text())
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    found = {}
    for name, file in wanted.items():
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                left = runpy.run_path(file)
            found[name] = {"printed": out.getvalue().splitlines(), **booked(left)}
        except Exception as error:
            found[name] = {"failed": f"{type(error).__name__}: {error}"}
    result.write_text(json.dumps(found))


def booked(left: dict[str, Any]) -> dict[str, Any]:
    """Causes and residuals of the model that a program left behind."""
    if "net" not in left or "x" not in left:
        return {}
    from reconcile.core.conventions import BUILT_IN
    from reconcile.engine.settle import settle
    from reconcile.launch.in_process import collect_live
    from reconcile.launch.request import RunRequest
    from reconcile.work import load

    load()
    framework = "tf" if "tf" in left else "torch"
    collected = collect_live({framework: left["net"]}, left["x"], RunRequest(), lambda _event: None)
    statements = [s for c in BUILT_IN.values() for s in settle(collected, Conventions(c)).statements]
    return {
        "causes": sorted({a.cause.value for s in statements for a in s.adjustments}),
        "residuals": [s.residual for s in statements],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
