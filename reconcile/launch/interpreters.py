"""Where a Python of a given version is: the running one, on PATH, through uv, under pyenv's root; and where uv is.

Nothing is taken at its word: every candidate is asked for its version, since pyenv puts shims on PATH that fail when
called.  uv's own downloads of Pythons are never used.  What a worker runs in is one of three: the running interpreter, one of
an environment that was made here, or the user's own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError, brief, reason
from ..core.user_files import regular

PROBE = "import sys; print('%d.%d %s' % (sys.version_info[0], sys.version_info[1], sys.executable))"
PROBE_LIMIT = 30.0
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
"""Variables that steer imports and warnings of one Python, or point uv at another environment than the one meant."""


OLDEST = (3, 6)
"""The oldest Python that a worker runs in."""

THEIR_LIMIT = 60.0


class EnvironmentError_(Exception):
    """An environment cannot be made: one sentence that says why, and what to do where something can be done."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What a worker runs in. ``theirs`` is the user's own environment, which is taken as it is."""

    path: Path = Path(sys.executable)
    theirs: bool = False

    @property
    def running(self) -> bool:
        """Whether it is the interpreter that runs this."""
        return self.path == Path(sys.executable) and not self.theirs

    def environ(self) -> dict[str, str]:
        """The variables of a worker there: PYTHONPATH is for theirs as for the running one, and nothing is written there."""
        if not (self.running or self.theirs):
            return clean_environ()
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "__PYVENV_LAUNCHER__")}
        return {**kept, "PYTHONDONTWRITEBYTECODE": "1"} if self.theirs else kept


def theirs(text: str) -> tuple[Path, str]:
    """The interpreter that ``--python`` gives by its path, its environment's folder or its name on PATH; and its version.

    Links are kept: what one of an environment points to knows nothing of that environment. Raises UsageError.
    """
    path = Path(os.path.abspath(text))
    if os.path.isdir(path):
        path = path / "bin" / "python"
    elif not os.path.lexists(path) and os.sep not in text:
        path = Path(shutil.which(text) or path)
    try:
        regular(path)
    except (OSError, ValueError) as error:
        why = f"cannot be used: {reason(error)}"
        if isinstance(error, FileNotFoundError):
            why = "is a link to a file that is gone" if path.is_symlink() else "is not there"
        where = f"--python {brief(text)}: {brief(path)}"
        raise UsageError(f"{where} {why}. Give an interpreter, such as .venv/bin/python.") from error
    environ = Interpreter(path, theirs=True).environ()
    try:
        done = subprocess.run(
            [str(path), "-c", PROBE],
            capture_output=True, text=True, errors="replace", timeout=THEIR_LIMIT, stdin=subprocess.DEVNULL, env=environ,
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"--python {text}: {path} cannot be started: {error.strerror}.") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"--python {text}: {path} gave no answer within {THEIR_LIMIT:g} s.") from error
    said = re.fullmatch(r"(\d+)\.(\d+) .*", (done.stdout.strip().splitlines() or [""])[-1])
    if done.returncode or said is None:
        first = (done.stderr.strip().splitlines() or [""])[0][:200].rstrip(".")
        raise UsageError(f"--python {text}: {path} is no Python that runs{f' ({first})' if first else ''}.")
    version = int(said[1]), int(said[2])
    if version < OLDEST:
        raise UsageError(
            f"--python {text}: this is Python {said[1]}.{said[2]}; a worker needs {OLDEST[0]}.{OLDEST[1]} or later."
        )
    return path, f"{said[1]}.{said[2]}"


def find(version: str) -> Path:
    """A working interpreter of that version (``"3.6"``).

    Raises EnvironmentError_ if there is none in any of the places looked at.
    """
    for candidate in _candidates(version):
        found = probe(candidate, version)
        if found is not None:
            return found
    raise EnvironmentError_(
        f"there is no Python {version} on PATH, through uv or under pyenv's root ({_pyenv_root_text()}); "
        f"install it (`pyenv install {version}`) or put python{version} on PATH"
    )


def probe(candidate: Path, version: str) -> Path | None:
    """The real path of the interpreter behind ``candidate`` if it runs and is of that version, otherwise None."""
    try:
        done = subprocess.run(
            [str(candidate), "-c", PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_LIMIT,
            stdin=subprocess.DEVNULL,
            env=clean_environ(),
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    said, _, path = done.stdout.strip().partition(" ")
    return Path(path) if done.returncode == 0 and said == version and path else None


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
        return (on_path,)
    if importlib.util.find_spec("uv") is not None:
        return (sys.executable, "-m", "uv")
    raise EnvironmentError_(
        "uv, which makes the environments, is not installed; "
        "`pip install uv` or `pip install 'flop-reconcile[matrix]'` brings it"
    )


def clean_environ(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The process's variables for a command that belongs to another Python: without those that steer this one's
    imports and warnings, with uv's downloads of Pythons switched off.  Index, proxy and certificate settings stay."""
    source = os.environ if environ is None else environ
    kept = {name: value for name, value in source.items() if name not in DROPPED}
    return {**kept, "UV_PYTHON_DOWNLOADS": "never", "UV_PYTHON_PREFERENCE": "only-system"}


def _candidates(version: str) -> Iterator[Path]:
    """Lazily, so that uv is asked only where PATH has no answer."""
    if version == running_version():
        yield Path(sys.executable)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder) / f"python{version}"
        if folder and path.is_file():
            yield path
    yield from _from_uv(version)
    yield from _from_pyenv(version)


def _from_uv(version: str) -> Iterator[Path]:
    try:
        done = subprocess.run(
            [*uv_command(), "python", "find", "--no-project", version],
            capture_output=True,
            text=True,
            timeout=PROBE_LIMIT,
            stdin=subprocess.DEVNULL,
            env=clean_environ(),
        )
    except (EnvironmentError_, OSError, subprocess.TimeoutExpired):
        return
    if done.returncode == 0 and done.stdout.strip():
        yield Path(done.stdout.strip())


def _from_pyenv(version: str) -> Iterator[Path]:
    """pyenv's releases of that version, the newest patch first (3.8.18 before 3.8.2)."""
    found = []
    for folder in (_pyenv_root() / "versions").glob(f"{version}*"):
        match = re.fullmatch(re.escape(version) + r"(?:\.(\d+))?", folder.name)
        if match:
            found.append((int(match[1] or 0), folder / "bin" / "python"))
    yield from (path for _, path in sorted(found, reverse=True))


def _pyenv_root() -> Path:
    root = os.environ.get("PYENV_ROOT")
    return Path(root) if root else Path.home() / ".pyenv"


def _pyenv_root_text() -> str:
    return "$PYENV_ROOT" if os.environ.get("PYENV_ROOT") else "~/.pyenv"
