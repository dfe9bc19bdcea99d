"""``call_in_process``: answers of a function of this package from a process of its own, beside the packages of any Python."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..launch.environments.interpreters import clean_environ
from ..launch.workers.scratch import scratch
from ..launch.workers.start import call_program

ROOT = str(Path(__file__).resolve().parents[2])
CALL = """
import importlib, json, sys
root, function, paths, calls = json.loads(sys.argv[1])
sys.path[:] = [root] + [p for p in sys.path if p] + paths
sys.dont_write_bytecode = True
module, name = function.split(":")
call = getattr(importlib.import_module(module), name)
sys.path.remove(root)
try:
    answers = [call(*arguments) for arguments in calls]
except ImportError as error:
    sys.exit(str(error))
sys.stdout.write("\\n" + json.dumps(answers))
"""
"""Imports this copy of the package, and nothing else that lies beside it or in the working directory."""


class NoAnswer(Exception):
    """Why the function gave nothing, in half a sentence."""


def call_in_process(
    function: str, *calls: Sequence[Any], python: str = "", paths: Sequence[str] = (), limit: float
) -> list[Any]:
    """What ``module:function`` returns for each of these arguments, as JSON data: in ``python``, or the running interpreter, with
    ``paths`` for its imports, and within so many seconds. Raises NoAnswer."""
    command = [python or sys.executable, "-c", CALL, json.dumps([ROOT, function, list(paths), calls])]
    with scratch() as folder:
        try:
            done = call_program(command, limit, cwd=folder, env={**clean_environ(), "TMPDIR": str(folder)})
        except subprocess.TimeoutExpired as error:
            raise NoAnswer(f"it is not done within {limit:g} s") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"its process ended with {done.returncode}"])[-1]
        raise NoAnswer(last[:300].rstrip("."))
    try:
        answers: list[Any] = json.loads(next(x for x in reversed(done.stdout.splitlines()) if x.startswith("[")))
    except (StopIteration, ValueError) as error:
        raise NoAnswer("what was imported wrote to stdout or exited") from error
    return answers
