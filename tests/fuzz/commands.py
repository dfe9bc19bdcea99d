"""Commands in this process, on users' files: exit status 0 to 3, one sentence, no traceback, whatever is in the files.

An input is JSON, ``{"args": [...], "files": {name: text}}``; ``{name}`` in an argument is that file's path. No worker is
started: where a command would start one, it is handed what a committed baseline says was found.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from .audit import ROOT
from .harness import Wrong

STATUS = (0, 1, 2, 3)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
HERE = "{repository}"
"""Where the repository is, in an argument."""
BASELINE = ROOT / "reports/baselines/gru_demo/current.json"
SMALL = ROOT / "reports/baselines/matmul_init/tf-2.3.1.json"
SIGNED = ("amount", "off")
"""What may be below zero in a report: an adjustment, and how far off a counter is."""
FREE = (".attrs", ".params", ".convention_weights")
"""Parts of a report that hold numbers which are no counts."""


def command(args: Sequence[str], files: Mapping[str, str | bytes] = {}) -> bytes:
    """An input of a command; text that is no UTF-8 travels in base64."""
    said = {}
    for name, held in files.items():
        data = held.encode("utf-8", "surrogateescape") if isinstance(held, str) else held
        try:
            said[name] = data.decode()
        except UnicodeDecodeError:
            said[name] = "base64:" + base64.b64encode(data).decode()
    return json.dumps({"args": list(args), "files": said}).encode()


def unpacked(data: bytes, folder: Path) -> list[str]:
    """The arguments of an input, its files written to the folder."""
    said = json.loads(data)
    for name, text in said["files"].items():
        encoded = text.removeprefix("base64:")
        data = base64.b64decode(encoded) if encoded != text else text.encode("utf-8", "surrogatepass")
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    return [re.sub(r"\{([\w.]*)\}", lambda m: str(folder / m[1]), arg.replace(HERE, str(ROOT))) for arg in said["args"]]


def ready() -> None:
    """Import what the commands load when they are called, by calling each once."""
    import platform

    import rich.console  # noqa: F401

    from reconcile.cli.commands import run  # noqa: F401
    from reconcile.products.sweep import command  # noqa: F401

    platform.uname().processor  # noqa: B018  a process is asked once; a report of a defect names the machine
    for args in (
        ["decode", "1", "--model", "gru_demo", "--no-run", "--baselines", str(ROOT / "reports/baselines")],
        ["check", str(BASELINE), str(BASELINE)],
        ["explain", "models"],
    ):
        status(args)


def status(args: Sequence[str]) -> tuple[int, str, str]:
    """Exit status of a command, and what it printed."""
    from reconcile.cli import cli

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(args, "reconcile")
        except SystemExit as ended:
            code = ended.code
    if not isinstance(code, int):
        raise Wrong(f"it exits with {code!r}")
    return code, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def without_workers() -> Iterator[None]:
    """What a run collects is what the committed baseline holds: a real trace and four ledgers."""
    from reconcile.drift import baselines
    from reconcile.drift import check as checking
    from reconcile.launch import choose, runner

    def collect(request: Any, _progress: Any = None) -> Any:
        choose.choose_counters(request)
        found = baselines.load(BASELINE).collected
        found.meta["training"] = ""
        if not request.formulas:
            return found
        first, *rest = found.traces
        own = first.ops[0]._replace(id="own", op="mylib.foo")
        return replace(found, traces=(first._replace(ops=(own, *first.ops)), *rest))

    with mock.patch.object(runner, "collect", collect), mock.patch.object(checking, "collect", collect):
        yield


def check(data: bytes, folder: Path) -> None:
    """Run the command of an input. Raises Wrong, or what it raised."""
    (folder / "in").mkdir()
    args = unpacked(data, folder / "in")
    with without_workers():
        code, out, err = status(args)
    if code not in STATUS:
        raise Wrong(f"it exits with {code}: {_place(err)}")
    if "Traceback (most recent call last)" in out + err:
        raise Wrong("it prints a traceback")
    if code == 2:
        _one_sentence(err, 1000 + 2 * len(data))
    for report in (folder / "in").glob("out/*.json"):
        _counts(json.loads(report.read_text(encoding="utf-8")), report.name)


def _one_sentence(err: str, longest: int) -> None:
    lines = [line for line in err.strip("\n").split("\n") if not line.startswith(("Usage: ", "Try '"))]
    lines = [line for line in lines if line]
    if len(lines) != 1 or not lines[0].startswith("Error: "):
        raise Wrong(f"what is wrong takes {len(lines)} lines")
    if CONTROL.search(lines[0]):
        raise Wrong("its sentence holds control characters")
    if len(lines[0]) > longest:
        raise Wrong("its sentence is too long to read")


def _counts(value: Any, where: str) -> None:
    """Raise Wrong for a number in a report that is no count: a fraction that is no ratio, or something below zero."""
    pending = [(value, where)]
    while pending:
        item, at = pending.pop()
        name = at.rpartition(".")[2]
        if isinstance(item, dict):
            pending += [(part, f"{at}.{key}") for key, part in item.items() if f".{key}" not in FREE]
        elif isinstance(item, list):
            pending += [(part, at) for part in item]
        elif isinstance(item, float) and name != "ratio":
            raise Wrong(f"{name} is {item}")
        elif isinstance(item, int) and item < 0 and name not in SIGNED and ".causes." not in at:
            raise Wrong(f"{name} is below zero")


def _place(err: str) -> str:
    """Where our own report of a defect says that it is, or how it begins."""
    last = err.strip().split("\n")[-1]
    found = re.search(r"(\w+)[^()]*(\(reconcile/[^)]*\))", last)
    return f"{found[1]} {found[2]}" if found else last[:100]
