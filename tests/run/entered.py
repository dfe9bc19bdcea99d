"""A program: ``reconcile run --model gru_demo``, and which files of the package it enters at home.

``python -m tests.run.entered FOLDER [WORDS]`` runs it in the folder and prints JSON as its last line: ``entered`` are the
files in which a function is called, ``loaded`` are all modules, ``code`` is the exit status.

A file counts if one of its functions is called in this process, in any thread. What runs while a module is imported (a decorator,
a table that is filled) does not count, and a template is no file. No framework starts: each worker is a stand-in that copies what
the workers left of the committed baseline.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = [str(ROOT / name) + os.sep for name in ("reconcile", "adapters", "model_zoo")]
WORKER = """
import json, os, sys
request, held = json.load(open(sys.argv[1])), sys.argv[2]
def leave(name, text):
    path = os.path.join(request["out"], name)
    with open(path + ".part", "w") as file:
        file.write(text)
    os.replace(path + ".part", path)  # home reads while this writes
def pass_on(name, source):
    with open(os.path.join(held, source)) as file:
        leave(name, file.read())
pass_on("meta.json", "meta.json")
told = [{"task": task, "phase": phase} for task in request["tasks"] for phase in ("started", "done")]
leave("events.jsonl", "".join(json.dumps(event) + "\\n" for event in told))
for task in request["tasks"]:
    source = request["framework"]["name"] + "." + task + ".json"
    lost = {"reason": "it is not installed", "missing": request["framework"]["package"], "beyond": False}
    if os.path.exists(os.path.join(held, source)):
        pass_on(task + ".json", source)
    else:
        leave(task + ".error.json", json.dumps(lost))
"""


def importing(frame: FrameType) -> bool:
    """Whether a module is being imported."""
    above = frame.f_back
    while above is not None and above.f_code.co_name != "<module>":
        above = above.f_back
    return above is not None and "importlib" in str(above.f_back and above.f_back.f_code.co_filename)


class Heard:
    """The files of the package in which functions were called."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not frame.f_code.co_flags & CO_OPTIMIZED:  # a class or a module
            return
        if frame.f_code.co_filename not in self.files and not importing(frame):
            self.files.add(frame.f_code.co_filename)

    def own(self) -> list[str]:
        """Those of the package, links followed, below the repository."""
        paths = {os.path.realpath(name) for name in self.files if name.endswith(".py")}
        return sorted(os.path.relpath(path, ROOT) for path in paths if path.startswith(tuple(PACKAGE)))


def hold(folder: Path) -> None:
    """Write what each worker is to copy: the records of the committed baseline."""
    from reconcile.core.records import Ledger, Trace, to_json
    from reconcile.drift import baselines
    from reconcile.products.decode.sources import SHIPPED

    found = baselines.load(SHIPPED / "gru_demo" / "current.json").collected
    (folder / "meta.json").write_text(json.dumps(found.meta))
    for record in (*found.traces, *found.ledgers):
        task = "trace" if isinstance(record, Trace) else record.counter if isinstance(record, Ledger) else ""
        (folder / f"{record.framework}.{task}.json").write_text(to_json(record))


def main(folder: str, *words: str) -> None:
    """Run the command in the folder, which holds what the workers copy, and print what it entered."""
    held = Path(folder).absolute()
    os.chdir(folder)
    heard = Heard()
    from reconcile.launch import choose
    from reconcile.launch.workers import reaper

    def command(worker: list[str], *_more: object) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", WORKER, worker[-1], str(held)]

    reaper.command = command  # type: ignore[assignment]
    choose._is_installed = lambda _framework: False  # one whose counters are no defaults: it runs where it is installed
    sys.argv = ["reconcile", "run", "--model", "gru_demo", *words]
    threading.settrace(heard)
    sys.settrace(heard)
    try:
        from reconcile.cli import main as run

        run()
    except SystemExit as end:
        code = end.code
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    loaded = sorted(name for name in sys.modules if name.startswith("reconcile"))
    print("\n" + json.dumps({"code": code, "entered": heard.own(), "loaded": loaded}))


if __name__ == "__main__":
    main(*sys.argv[1:])
