"""A path that cannot be used is one sentence with exit code 2, whatever stands there, and nothing hangs."""

from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.core.errors import brief
from tests.cli.conftest import sentence

OPTIONS: dict[str, tuple[str, ...]] = {
    "--torch": ("run", "--input", "1,3"),
    "--tf": ("run", "--input", "1,3"),
    "--onnx": ("run",),
    "--tflite": ("run",),
    "--model": ("run",),
    "--convention-file": ("run", "--model", "gru_demo"),  # what test_readers.py has is read as this
    "--python": ("run", "--model", "gru_demo"),
    "--write-mapping": ("run", "--tf", "a:b", "--torch", "c:d"),
    "--out": ("run", "--model", "gru_demo"),
    "--data": ("zoo", "gallery", "--model", "conv1x1"),
}


def _link(path: Path) -> None:
    path.symlink_to(path.name)


KINDS: dict[str, Callable[[Path], str]] = {
    "overlong": lambda folder: str(folder / ("a" * 5000)),
    "overlong.py": lambda folder: "a" * 5000 + ".py",
    "loop": lambda folder: (_link(folder / "loop"), str(folder / "loop"))[1],
    "fifo": lambda folder: (os.mkfifo(folder / "fifo"), str(folder / "fifo"))[1],
    "endless": lambda folder: "/dev/zero",
    "zero byte": lambda folder: str(folder / "a\0b"),
    "below a file": lambda folder: str(Path(__file__) / "below"),
    "denied": lambda folder: str(folder / "denied"),
}
PAIRS: dict[str, Callable[[Path], str]] = {
    "overlong.py": KINDS["overlong.py"],
    "loop.py": lambda folder: (_link(folder / "loop.py"), str(folder / "loop.py"))[1],
    "fifo.py": lambda folder: (os.mkfifo(folder / "fifo.py"), str(folder / "fifo.py"))[1],
    "below.py": lambda folder: str(Path(__file__) / "below.py"),
    "denied.py": lambda folder: str(folder / "denied.py"),
}


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """If root runs the tests, it may read everything: files called ``denied`` are refused even then."""
    real = os.stat

    def stat(path: object, **options: object) -> os.stat_result:
        if str(path).endswith(("denied", "denied.py")):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "lstat", stat)
    accessor = getattr(pathlib, "_NormalAccessor", None)
    if accessor is not None:  # Python 3.10 has its own hold of them
        monkeypatch.setattr(accessor, "stat", staticmethod(stat))


@pytest.mark.timeout(20)
@pytest.mark.usefixtures("denied", "temporary")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", OPTIONS)
def test_a_path_that_cannot_be_used_is_one_sentence(tmp_path: Path, option: str, kind: str) -> None:
    path = KINDS[kind](tmp_path)
    words = [*OPTIONS[option], option, path]
    if option != "--out":
        words += ["--out", str(tmp_path / "reports")] if words[0] != "check" else []
    said = sentence(CliRunner().invoke(cli, words, prog_name="reconcile"))
    assert "defect" not in said


@pytest.mark.usefixtures("denied", "temporary")
@pytest.mark.parametrize("command", [("run", "--model"), ("matrix", "--model"), ("decode", "5", "--model"), ("sweep",)])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("overlong.py", "File name too long"),
        ("loop.py", "Too many levels of symbolic links"),
        ("fifo.py", "it is neither a file nor a folder"),
        ("below.py", "Not a directory"),
        ("denied.py", "Permission denied"),
    ],
)
def test_a_pair_that_cannot_be_read_says_why(tmp_path: Path, command: tuple[str, ...], kind: str, why: str) -> None:
    path = PAIRS[kind](tmp_path)
    said = sentence(CliRunner().invoke(cli, [*command, path], prog_name="reconcile"))
    assert said == f"Error: cannot read the pair file {brief(path)}: {why}."


@pytest.mark.parametrize("name", ["a" * 5000, "nets." + "a" * 5000])
def test_a_sweep_of_a_name_that_is_too_long(name: str) -> None:
    sentence(CliRunner().invoke(cli, ["sweep", name], prog_name="reconcile"))


@pytest.mark.parametrize("framework", ["tf", "torch", "onnx", "tflite"])
def test_a_link_that_leads_nowhere_in_a_folder_is_named(tmp_path: Path, framework: str) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"x")
    _link(tmp_path / "itself")
    said = sentence(CliRunner().invoke(cli, ["run", f"--{framework}", str(tmp_path)]))
    assert "itself is a broken link (Too many levels of symbolic links)" in said


def test_a_long_name_is_shown_without_its_middle() -> None:
    assert brief("a" * 160) == "a" * 160
    assert brief("a" * 100 + "b" * 100) == "a" * 80 + "..." + "b" * 80
