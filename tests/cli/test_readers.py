"""Every file from outside goes through one reader: whatever is wrong with it is one sentence, and never a traceback."""

from __future__ import annotations

import ast
import importlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reconcile.cli import cli
from reconcile.core.errors import UsageError
from tests.fuzz import commands
from tests.fuzz.readers import KINDS, READERS, TEXTS, Reader, spoil
from tests.programs import ROOT

PATIENCE = 20
"""Seconds that no reader needs, of whatever file."""
WRITTEN = {"out", "write_mapping"}
"""What a command writes."""
MADE = {"against.json", "rows.json"}
"""Files that need not be there: the first run makes them."""
PACKAGED = {
    "cli/name_lists.py", "launch/workers/lend.py", "pages/__init__.py", "products/audit/report.py",
    "products/authors/commands.py", "products/gallery/rows.py", "products/scorecard/page.py", "products/scorecard/run.py",
    "products/cards/formats.py", "report/document/html.py", "report/page/__init__.py", "report/schema.py",
}  # fmt: skip
"""What opens files of the package alone."""
CHECKED = {"archive", "kinds", "wire", "worker", "pytorch/load", "tensorflow/load_graph"}
"""What opens model files, each in its own way (tests/products/files), in products/files."""
OWN = {
    "drift/baselines.py": "a baseline that was read already, as it is",
    "launch/choose.py": "a pair file, which is run as code",
    "launch/environments/cache.py": "its own source, for a hash",
    "launch/workers/crashes.py": "the end of a log",
    "launch/workers/scratch.py": "its own source, for a worker",
    "products/sweep/store.py": "cells that have their digest, up to a size",
}
"""What else opens files at home, and which."""
BESIDE = re.compile(
    r"(api/snapshot|worker/.*|launch/workers/reaper|products/(.*/)?(pytorch/.*|worker|nursery|watched_program))\.py"
)
"""What runs in a worker's process, or reads what the kernel says."""
APART = {
    "launch/workers/start.py": "the one way",
    "launch/workers/scratch.py": "a shell, which ends with its pipe, and removes a folder",
    "products/forked_workers.py": "a nursery, which ends with its socket",
    "products/sweep/cell.py": "a cell, which ends with its pipe",
    "products/files/confine.py": "a question to the worker's Python",
}
"""What starts processes."""


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """A reader that waits for a pipe, or reads without an end, fails."""

    def late(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def read(reader: Reader, folder: Path) -> int:
    """Run the command on the file that lies there. Returns its exit code; fails unless that is one, with a sentence for a 2."""
    words = [re.sub(r"\{([\w.]*)\}", lambda match: str(folder / match[1]), word) for word in reader.words]
    signal.alarm(PATIENCE)
    if ":" in words[0]:
        module, _, function = words[0].partition(":")
        refused = ""
        try:
            getattr(importlib.import_module(module), function)(Path(words[1]))
        except UsageError as error:
            refused = str(error)
        assert "\n" not in refused
        return 2 if refused else 0
    with commands.without_workers():
        code, out, err = commands.status(words)
    signal.alarm(0)
    assert code in commands.STATUS, err[-300:]
    assert "Traceback" not in out + err
    if code == 2:
        commands._one_sentence(err, 2000)
    return code


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    found = READERS[request.param]
    (tmp_path / found.file).parent.mkdir(exist_ok=True)
    return found


def test_a_file_that_no_reader_can_read(reader: Reader, tmp_path: Path) -> None:
    place = tmp_path / reader.file
    for name, write in KINDS.items():
        write(place, reader.good)
        found = read(reader, tmp_path)
        assert found == 2 or reader.words[0] == "decode" or (name == "nothing" and reader.file in MADE), name
        place.rmdir() if name == "a folder" else place.unlink(missing_ok=True)


@pytest.mark.parametrize("most", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_a_file_that_is_another(reader: Reader, tmp_path: Path, most: int) -> None:
    place = tmp_path / reader.file
    texts = [reader.good, *(change(reader.good) for change in TEXTS.values()), *spoil(reader.good, most)]
    codes = []
    for text in texts:
        place.write_bytes(text.encode("utf-8", "surrogatepass"))
        codes.append(read(reader, tmp_path))
    assert 2 in codes


def test_every_option_that_takes_a_file_is_tried() -> None:
    """One option is one function, whichever command has it."""
    tried = {name.partition(" ")[2].lstrip("-").replace("-", "_") for name in READERS}
    paths = {
        parameter.name: name
        for name, command in cli.walk(click.Context(cli))
        for parameter in command.params
        if isinstance(parameter.type, click.Path)
    }
    aliases = {"file": "environments", "convention_files": "convention_file", "newer": "older"}
    others = {"data", "config"}  # functions of their own read these
    assert {aliases.get(str(name), name) for name in paths} - WRITTEN - others <= tried


def calls(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """What a module calls: the object's name, the function's, and its texts."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if isinstance(called, ast.Attribute):
                yield getattr(called.value, "id", ""), called.attr, texts
            else:
                yield "", getattr(called, "id", ""), texts


def modules() -> Iterator[tuple[str, Path]]:
    home = ROOT / "reconcile"
    for path in sorted(home.rglob("*.py")):
        yield path.relative_to(home).as_posix(), path


def test_nothing_else_opens_a_file_from_outside() -> None:
    opening = set()
    for name, path in modules():
        for _, called, texts in calls(path):
            written = any(len(text) < 4 and set(text) & set("wxa") for text in texts)
            if called in ("open", "read_text", "read_bytes") and not written and not BESIDE.fullmatch(name):
                opening.add(name)
    streams = {"cli/streams.py", "products/steps/foreground.py", "launch/workers/start.py"}
    files = {f"products/files/{name}.py" for name in CHECKED if not BESIDE.fullmatch(f"products/files/{name}.py")}
    assert opening - streams == {"core/user_files.py", *PACKAGED, *OWN, *files}


def test_nothing_else_starts_a_process() -> None:
    starting = {
        name
        for name, path in modules()
        for owner, called, _ in calls(path)
        if owner == "subprocess" and called in ("Popen", "run", "call", "check_call", "check_output")
    }
    assert starting == set(APART)
