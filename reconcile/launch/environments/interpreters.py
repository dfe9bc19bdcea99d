"""Finds Python interpreters for workers: of a given version, through uv (on PATH or under pyenv's root), or at --python's path.

Finds uv, too. Pythons that uv downloaded are never used. A worker runs in one of three interpreters: the running one, that of
an environment that this tool made, or the user's own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import UsageError, brief, reason
from ...core.user_files import check_regular
from ..workers.start import call_program

PROBE = "import sys; print('%d.%d %s' % (sys.version_info[0], sys.version_info[1], sys.executable))"
FIND_LIMIT = 120.0
DROPPED = frozenset(
    (
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PYTHONWARNINGS",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "__PYVENV_LAUNCHER__",
    )
    + ("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_WORKING_DIR", "UV_MANAGED_PYTHON")
)
"""Variables that steer imports and warnings of one Python, or point uv at an environment other than the intended one."""


OLDEST = (3, 6)
"""The oldest Python that a worker runs in."""

USER_LIMIT = 60.0


class EnvironmentError_(Exception):
    """An environment cannot be made: one sentence that says why, and what to do if there is a remedy."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The interpreter of a worker. ``user_owned`` is one of the user's own environment, which is used as it is."""

    path: Path = Path(sys.executable)
    user_owned: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it is the interpreter that runs this."""
        return self.path == Path(sys.executable) and not self.user_owned

    def environ(self) -> dict[str, str]:
        """The variables of a worker. The user's interpreter keeps PYTHONPATH, as the running one does, but writes no bytecode."""
        if not (self.is_running or self.user_owned):
            return clean_environ()
        variables = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "__PYVENV_LAUNCHER__")
        }
        return {**variables, "PYTHONDONTWRITEBYTECODE": "1"} if self.user_owned else variables


def user_interpreter(text: str) -> tuple[Path, str]:
    """The interpreter that ``--python`` names by its path, its environment's folder or its name on PATH; and its version.

    Links are not resolved: the target of an environment's link does not know that environment. Raises UsageError.
    """
    path = Path(os.path.abspath(text))
    if os.path.isdir(path):
        path = path / "bin" / "python"
    elif not os.path.lexists(path) and os.sep not in text:
        path = Path(shutil.which(text) or path)
    try:
        check_regular(path)
    except (OSError, ValueError) as error:
        why = f"cannot be used: {reason(error)}"
        if isinstance(error, FileNotFoundError):
            why = "is a link to a file that does not exist" if path.is_symlink() else "does not exist"
        where = f"--python {brief(text)}: {brief(path)}"
        raise UsageError(f"{where} {why}. Give an interpreter, such as .venv/bin/python.") from error
    environ = Interpreter(path, user_owned=True).environ()
    try:
        done = call_program([str(path), "-c", PROBE], USER_LIMIT, env=environ)
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"--python {text}: {path} did not answer within {USER_LIMIT:g} s.") from error
    answer = re.fullmatch(r"(\d+)\.(\d+) .*", (done.stdout.strip().splitlines() or [""])[-1])
    if done.returncode or answer is None:
        first = (done.stderr.strip().splitlines() or [""])[0][:200].rstrip(".")
        raise UsageError(
            f"--python {text}: {path} is not a working Python interpreter{f' ({first})' if first else ''}."
        )
    version = int(answer[1]), int(answer[2])
    if version < OLDEST:
        raise UsageError(
            f"--python {text}: this is Python {answer[1]}.{answer[2]}; a worker needs {OLDEST[0]}.{OLDEST[1]} or later."
        )
    return path, f"{answer[1]}.{answer[2]}"


def find(version: str) -> Path:
    """A working interpreter of that version (``"3.6"``): the running one, or one that uv finds on PATH or under pyenv's root.

    uv calls every candidate, because pyenv puts shims on PATH that fail when they are called. Raises EnvironmentError_.
    """
    if version == running_version():
        return Path(sys.executable)
    environ = clean_environ()
    environ["PATH"] = os.pathsep.join([environ.get("PATH", ""), *map(str, _pyenv_folders(version))])
    try:
        done = call_program(
            [*uv_command(), "python", "find", "--no-project", "--system", version],
            FIND_LIMIT,
            env=environ,
            cwd=Path(sys.executable).parent,  # ``-m uv`` would import from the working folder
        )
    except subprocess.TimeoutExpired:
        done = None
    if done and done.returncode == 0 and done.stdout.strip():
        return Path(done.stdout.strip())
    raise EnvironmentError_(
        f"there is no Python {version} on PATH, through uv or under pyenv's root ({_pyenv_root()[1]}); "
        f"install it (`pyenv install {version}`) or put python{version} on PATH"
    )


def running_version() -> str:
    """Major and minor version of the running interpreter."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def uv_command() -> tuple[str, ...]:
    """How to call uv: beside the running interpreter, from PATH, or as a module.

    Raises EnvironmentError_ if it is not installed.
    """
    beside = Path(sys.executable).parent / "uv"
    if os.access(beside, os.X_OK) and beside.is_file():
        return (str(beside),)
    on_path = shutil.which("uv")
    if on_path is not None:
        return (os.path.abspath(on_path),)
    if importlib.util.find_spec("uv") is not None:
        return (sys.executable, "-m", "uv")
    raise EnvironmentError_(
        "uv, which makes the environments, is not installed; "
        "install it with `pip install uv` or `pip install 'flop-reconcile[matrix]'`"
    )


def python_path() -> tuple[str, ...]:
    """The folders of PYTHONPATH, absolute."""
    return tuple(os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)


def clean_environ() -> dict[str, str]:
    """The process's variables for a command that belongs to another Python, without those that steer the imports and
    warnings of this one, and with uv's downloads of Pythons switched off.  Index, proxy and certificate settings stay."""
    variables = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return {**variables, "UV_PYTHON_DOWNLOADS": "never", "UV_PYTHON_PREFERENCE": "only-system"}


def _pyenv_folders(version: str) -> list[Path]:
    """The folders of pyenv's releases of that version, the newest patch first (3.8.18 before 3.8.2)."""
    found = (
        (re.fullmatch(rf"{re.escape(version)}(?:\.(\d+))?", f.name), f) for f in _pyenv_root()[0].glob("versions/*")
    )
    releases = sorted(((int(match[1] or 0), folder / "bin") for match, folder in found if match), reverse=True)
    return [folder for _, folder in releases]


def _pyenv_root() -> tuple[Path, str]:
    """pyenv's root, and how a sentence names it."""
    root = os.environ.get("PYENV_ROOT")
    return (Path(root), "$PYENV_ROOT") if root else (Path.home() / ".pyenv", "~/.pyenv")
