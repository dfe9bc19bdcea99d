"""Where interpreters and uv are found; each is checked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconcile.launch.environments import interpreters
from reconcile.launch.environments.interpreters import EnvironmentError_, clean_environ, find, uv_command

Make = Callable[[Path, str], Path]
ANOTHER = "3.13" if interpreters.running_version() != "3.13" else "3.12"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No interpreter of another version but those a test makes: in ``path`` and ``pyenv`` below this folder."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def uv_with(path: Path) -> Callable[[], tuple[str, ...]]:
    """A uv that answers with the first python of the version on the PATH that it is given, as the real one does."""
    program = (
        "import os, shutil, sys\n"
        "assert sys.argv[1:5] == ['python', 'find', '--no-project', '--system']\n"
        "assert os.environ['UV_PYTHON_PREFERENCE'] == 'only-system'\n"
        "found = shutil.which('python' + sys.argv[5])\n"
        "print(found or '')\n"
        "sys.exit(not found)\n"
    )
    path.write_text(program)
    return lambda: (sys.executable, str(path))


def test_the_running_interpreter_is_found_without_uv(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "uv_command", lambda: pytest.fail("uv was asked"))
    assert find(interpreters.running_version()) == Path(sys.executable)


def test_uv_looks_on_path_before_pyenv(bare: Path, interpreter: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "uv_command", uv_with(bare / "uv.py"))
    pyenv = interpreter(bare / "pyenv" / "versions" / "3.4.1" / "bin" / "python3.4", "3.4")
    assert find("3.4") == pyenv
    on_path = interpreter(bare / "path" / "python3.4", "3.4")
    assert find("3.4") == on_path


def test_pyenv_newest_patch_by_number_and_no_other_names(
    bare: Path, interpreter: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "uv_command", uv_with(bare / "uv.py"))
    for name in ("3.4.9", "3.4.18", "3.4.2", "3.41.0", "3.4-dev", "3.4.99rc1"):
        interpreter(bare / "pyenv" / "versions" / name / "bin" / "python3.4", "3.4")
    assert find("3.4").parts[-3] == "3.4.18"


@pytest.mark.parametrize("script", ["raise SystemExit(2)", "print('/there'); raise SystemExit(1)", "print()"])
def test_uv_that_fails_names_no_interpreter(bare: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "uv_command", lambda: (sys.executable, "-c", script))
    with pytest.raises(EnvironmentError_, match=r"no Python 3\.4 on PATH"):
        find("3.4")


def test_the_real_uv_passes_over_a_shim_that_fails_or_lies(bare: Path, interpreter: Make) -> None:
    """As pyenv's shims do: ``python3.13`` is on PATH, but ends with 127, or is another version."""
    pytest.importorskip("uv")
    failing = bare / "path" / f"python{ANOTHER}"
    interpreter(failing, ANOTHER).write_text("#!/bin/sh\nexit 127\n")
    with pytest.raises(EnvironmentError_, match=rf"no Python {ANOTHER} on PATH"):
        find(ANOTHER)
    failing.unlink()
    failing.symlink_to(sys.executable)
    with pytest.raises(EnvironmentError_, match=rf"no Python {ANOTHER} on PATH"):
        find(ANOTHER)


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


def test_other_pythons_keep_the_index_not_what_steers_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "PYTHONPATH": "x",
        "PYTHONWARNINGS": "error",
        "UV_SYSTEM_PYTHON": "1",
        "UV_DEFAULT_INDEX": "i",
        "HOME": "h",
    }
    monkeypatch.setattr(os, "environ", given)
    assert clean_environ() == {
        "UV_DEFAULT_INDEX": "i",
        "HOME": "h",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PYTHON_PREFERENCE": "only-system",
    }
