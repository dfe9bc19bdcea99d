"""Where interpreters and uv are found, and that none is taken at its word."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconcile.launch import interpreters
from reconcile.launch.interpreters import EnvironmentError_, clean_environ, find, probe, uv_command

Make = Callable[[Path, str], Path]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No interpreter anywhere but those a test makes: in ``path`` and ``pyenv`` below this folder."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(interpreters, "_from_uv", lambda _version: iter(()))
    return tmp_path


def test_the_running_interpreter_is_found_first(bare: Path) -> None:
    assert find(interpreters.running_version()) == Path(sys.executable)


def test_on_path_a_shim_that_fails_or_lies_is_passed_over(bare: Path, interpreter: Make) -> None:
    lying = interpreter(bare / "path" / "python3.4", "3.5")
    good = interpreter(bare / "pyenv" / "versions" / "3.4.1" / "bin" / "python", "3.4")
    assert probe(lying, "3.4") is None
    assert find("3.4") == Path(f"{good}.real")
    failing = bare / "path" / "python3.4"
    failing.write_text("#!/bin/sh\necho '3.4 /nowhere'\nexit 127\n")
    assert find("3.4") == Path(f"{good}.real")
    first = interpreter(bare / "path" / "python3.4", "3.4")
    assert find("3.4") == Path(f"{first}.real")


def test_pyenv_newest_patch_by_number_and_no_other_names(bare: Path, interpreter: Make) -> None:
    for name in ("3.4.9", "3.4.18", "3.4.2", "3.41.0", "3.4-dev", "3.4.99rc1"):
        interpreter(bare / "pyenv" / "versions" / name / "bin" / "python", "3.4")
    assert find("3.4").parts[-3] == "3.4.18"


def test_uv_is_asked_between_path_and_pyenv(bare: Path, interpreter: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter(bare / "pyenv" / "versions" / "3.4.1" / "bin" / "python", "3.4")
    known = interpreter(bare / "uv-knows", "3.4")
    monkeypatch.setattr(interpreters, "_from_uv", lambda _version: iter((known,)))
    assert find("3.4") == Path(f"{known}.real")


def test_uv_that_fails_names_no_interpreter(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(interpreters, "uv_command", lambda: (sys.executable, "-c", "raise SystemExit(2)"))
    assert list(interpreters._from_uv("3.4")) == []
    monkeypatch.setattr(interpreters, "uv_command", lambda: (sys.executable, "-c", "print('/there')"))
    assert list(interpreters._from_uv("3.4")) == [Path("/there")]


def test_a_missing_interpreter_says_where_was_looked(bare: Path) -> None:
    with pytest.raises(EnvironmentError_, match=r"no Python 3\.4 on PATH, through uv or under pyenv's root") as caught:
        find("3.4")
    assert str(bare) not in str(caught.value)


def test_uv_beside_the_interpreter_on_path_a_module_or_missing(
    tmp_path: Path, interpreter: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(interpreters.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(EnvironmentError_, match=r"pip install uv.*flop-reconcile\[matrix\]"):
        uv_command()
    monkeypatch.setattr(interpreters.importlib.util, "find_spec", lambda name: name)
    assert uv_command() == (sys.executable, "-m", "uv")
    on_path = interpreter(tmp_path / "path" / "uv", "")
    assert uv_command() == (str(on_path),)
    beside = interpreter(tmp_path / "env" / "bin" / "uv", "")
    assert uv_command() == (str(beside),)


def test_other_pythons_keep_the_index_not_what_steers_this_one() -> None:
    given = {
        "PYTHONPATH": "x",
        "PYTHONWARNINGS": "error",
        "UV_SYSTEM_PYTHON": "1",
        "UV_DEFAULT_INDEX": "i",
        "HOME": "h",
    }
    assert clean_environ(given) == {
        "UV_DEFAULT_INDEX": "i",
        "HOME": "h",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PYTHON_PREFERENCE": "only-system",
    }
