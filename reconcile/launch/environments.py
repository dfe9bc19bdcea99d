"""Environments: interpreters with pinned frameworks, named in data, made and cached by uv.

An environment lies in ``<cache>/reconcile/environments/<name>-<hash of machine, Python and requirements>`` with its
interpreter at ``bin/python``.  A stamp file, written last, says that it is whole; a lock file beside it keeps two
processes from building it at once.  Changed requirements make another folder; nothing is ever updated in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..adapters import COUNTERS
from ..core import toml
from ..core.errors import UsageError, short, unknown
from ..core.framework import Framework
from ..core.registry import frameworks
from .interpreters import EnvironmentError_, clean_environ, find, running_version, theirs, uv_command

__all__ = ["CURRENT", "Environment", "EnvironmentError_", "adhoc", "at", "cache_root", "ensure", "folder_of", "load"]

CURRENT = "current"
STAMP = "reconcile-complete"
INSTALL_LIMIT = 3600.0
BUILT_IN_FILE = Path(__file__).with_name("environments.toml")

_OPERATORS = {"==": "", "===": "", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "!=": "ne", "~=": "like"}


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment. ``python`` is "3.8" or "current"; ``frameworks`` are the sides of a pair that run in it.

    ``counters`` are those that run there, none for all that its frameworks have. ``theirs`` is the interpreter of one that
    somebody has already; it stays as it is. ``over`` is "current" where the packages are laid over the running
    interpreter's own, as they are, without what they themselves require.
    """

    name: str
    title: str
    python: str
    frameworks: tuple[str, ...]
    requirements: tuple[str, ...]
    counters: tuple[str, ...] = ()
    theirs: Path | None = None
    over: str = ""


def load(path: Path | None = None) -> dict[str, Environment]:
    """The environments that ship with the tool, and those of a user's file behind them.

    Raises UsageError, naming the file, table and key, for a file that cannot be read or holds anything else.
    """
    found = {
        name: _environment("environments.toml", name, table)
        for name, table in toml.read(BUILT_IN_FILE, "the environment file").items()
    }
    if path is not None:
        for name, table in toml.read(path, "the environment file").items():
            if name in found:
                raise UsageError(f"{_where(str(path), name)}: this name is built in; choose another.")
            found[name] = _environment(str(path), name, table)
    return found


def adhoc(with_: tuple[str, ...], python: str) -> Environment:
    """An environment of these requirements, named after them, with the setuptools that PyTorch and thop need.

    Raises UsageError for something that is no requirement, and for a Python that is not written as in 3.11.
    """
    where = "--with"
    if not with_:
        raise UsageError(
            "--python needs at least one --with, such as --with 'tensorflow==2.15.1', or the path of an interpreter."
        )
    parsed = [_requirement(where, text) for text in with_]
    _check_python("--python", python)
    names = {canonicalize_name(r.name) for r in parsed}
    installable = _installable()
    there = [record for record in installable if names & set(record.distributions)] or installable
    beside = {name for record in there for name in record.beside} - names
    requirements = (*with_, *(_pinned(name, python) for name in sorted(beside)))
    label = "+".join(_label(r) for r in parsed) + ("" if python == CURRENT else f"-py{python}")
    title = f"{', '.join(with_)} on {'the running Python' if python == CURRENT else f'Python {python}'}"
    return Environment(label, title, python, tuple(record.name for record in there), requirements)


def at(python: str) -> Environment:
    """The environment of the interpreter at that path, named after its folder. Raises UsageError if it is none."""
    path, version = theirs(python)
    folder = path.parents[1].name if path.parent.name == "bin" else path.name
    name = f"python-{re.sub(r'[^A-Za-z0-9._+-]', '-', folder).strip('.-') or path.name}"
    return Environment(name, str(path), version, tuple(f.name for f in _installable()), (), (), path)


def ensure(env: Environment, progress: Callable[[str], None] = lambda _message: None) -> Path:
    """The interpreter of that environment, made now if the cache does not hold it whole.

    ``progress`` is told in one sentence each what takes time.  Safe to call from several threads and processes.
    Raises EnvironmentError_ for a missing interpreter, a missing uv and a failed install.
    """
    if env.theirs is not None:
        return env.theirs
    if env.python == CURRENT and not env.requirements:
        return Path(sys.executable)
    folder = folder_of(env)
    if _whole(folder):
        return _python(folder)
    with _locked(folder, lambda: progress(f"{env.name}: waiting for another process that is making it")) as lock:
        if not _whole(folder):
            _build(env, folder, lock, progress)
    return _python(folder)


def cache_root() -> Path:
    """The folder that holds all environments: under $XDG_CACHE_HOME, or the platform's own place for caches."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        root = Path(base)
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path.home() / ".cache"
    return root / "reconcile" / "environments"


def folder_of(env: Environment) -> Path:
    """Where that environment lies, made or not: other requirements, Python or machine are another folder."""
    below = _below() if env.over else []
    what = "\n".join([sys.platform, platform.machine(), _version(env), *sorted(env.requirements), *below])
    digest = hashlib.sha256(what.encode()).hexdigest()[:12]
    return cache_root() / f"{env.name[:60]}-{digest}"


def _build(env: Environment, folder: Path, lock: int, progress: Callable[[str], None]) -> None:
    """Make the environment in its place, stamp last. Called with the lock held."""
    uv = uv_command()
    python = find(_version(env))
    shutil.rmtree(folder, ignore_errors=True)
    progress(f"{env.name}: making the environment with uv ({len(env.requirements)} requirements, once)")
    try:
        _uv([*uv, "venv", "--quiet", "--no-project", "--python", str(python), str(folder)], folder.parent, lock)
        install = ["pip", "install", "--quiet", "--python", str(_python(folder))]
        if env.over:
            install.append("--no-deps")
            _lay_over(folder)
        _uv([*uv, *install, *env.requirements], folder.parent, lock)
        (folder / STAMP).write_text("\n".join([str(python), *env.requirements]) + "\n", encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    progress(f"{env.name}: ready")


def _below() -> list[str]:
    """Where the running interpreter has its packages."""
    paths = sysconfig.get_paths()
    return list(dict.fromkeys((paths["purelib"], paths["platlib"])))


def _lay_over(folder: Path) -> None:
    """Let the environment find the running interpreter's packages behind its own, as that one does: .pth files and all."""
    (site,) = (folder / "lib").glob("python*/site-packages")
    lines = [f"import site; site.addsitedir({path!r})\n" for path in _below()]
    (site / "reconcile-over.pth").write_text("".join(lines), encoding="utf-8")


def _uv(command: list[str], cwd: Path, lock: int) -> None:
    """Run uv away from the user's folder, whose pyproject.toml is none of the environment's business. It holds the
    lock as well: should this process be killed, nobody builds in the folder while uv still writes there."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            pass_fds=(lock,),
            env={**clean_environ(), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=INSTALL_LIMIT,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentError_(f"uv did not finish within {INSTALL_LIMIT:g} s") from error
    except OSError as error:
        raise EnvironmentError_(f"uv cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        raise EnvironmentError_(f"uv: {_reason(done.stderr) or f'ended with status {done.returncode}'}")


def _reason(stderr: str) -> str:
    """What uv names as the error and its causes, in one sentence; its last line where it names none."""
    found = re.findall(r"^(?:error: | *× | *╰─▶ | {2}cause: | +Caused by: )(.+)$", stderr, re.MULTILINE)
    lines = found or stderr.strip().splitlines()[-1:]
    return "; ".join(dict.fromkeys(line.strip().rstrip(".:") for line in lines))[:400]


def _whole(folder: Path) -> bool:
    """Stamped, and its interpreter (a link to the one it was made from) is still there."""
    return (folder / STAMP).is_file() and _python(folder).exists()


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


@contextmanager
def _locked(folder: Path, wait: Callable[[], None]) -> Iterator[int]:
    """Hold the lock file beside ``folder`` (yields its descriptor); the system frees it when its holders are gone."""
    with ExitStack() as stack:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(Path(f"{folder}.lock").open("w"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wait()
                fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise EnvironmentError_(
                f"the environment cache {folder.parent} cannot be used: {error.strerror}"
            ) from error
        yield file.fileno()


def _version(env: Environment) -> str:
    return running_version() if env.python == CURRENT else env.python


def _where(file: str, name: str) -> str:
    return f"the environment file {file}, table [{name}]"


def _environment(file: str, name: str, table: object) -> Environment:
    where = _where(file, name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise UsageError(f"{where}: a name has letters, digits and . _ + - only, and starts with a letter or digit.")
    keys = ("title", "python", "frameworks", "requirements")
    if not isinstance(table, dict):
        raise UsageError(
            f'{where}: expected a table with the keys {", ".join(keys)}; quote a name with dots: ["{name}.1"].'
        )
    for key in table:
        if key not in (*keys, "counters", "over"):
            raise UsageError(
                f"{where}: unknown key {short(key)}; the keys are {', '.join(keys)}, counters and over. "
                "A name with dots is quoted."
            )
    for key in keys:
        if key not in table:
            raise UsageError(f"{where}: the key {key} is missing.")
    for key in ("title", "python"):
        if not isinstance(table[key], str):
            raise UsageError(f"{where}: {key} must be text, not {short(table[key])}.")
    table = {"counters": [], **table}
    if table.get("over", CURRENT) != CURRENT or ("over" in table and table["python"] != CURRENT):
        raise UsageError(f'{where}: over is "{CURRENT}" or left out, and python is "{CURRENT}" as well.')
    for key in ("frameworks", "requirements", "counters"):
        if not isinstance(table[key], list) or not all(isinstance(item, str) for item in table[key]):
            raise UsageError(f"{where}: {key} must be a list of texts, not {short(table[key])}.")
    _check_python(f"{where}: python", table["python"])
    installable = [record.name for record in _installable()]
    if not table["frameworks"] or set(table["frameworks"]) - set(installable):
        raise UsageError(f"{where}: frameworks must be some of {', '.join(installable)}.")
    for text in table["requirements"]:
        _requirement(f"{where}: requirements", text)
    chosen = tuple(f for f in installable if f in table["frameworks"])
    for counter in table["counters"]:
        if counter not in COUNTERS:
            raise UsageError(f"{where}: counters: {unknown('counter', counter, COUNTERS)}")
    requirements, counters = tuple(table["requirements"]), tuple(table["counters"])
    return Environment(
        name, table["title"], table["python"], chosen, requirements, counters, over=table.get("over", "")
    )


def _check_python(where: str, python: str) -> None:
    if python != CURRENT and not re.fullmatch(r"3\.[0-9]{1,3}", python):
        raise UsageError(f"{where} must be a version such as 3.11 or the word {CURRENT}, not {short(python)}.")


def _requirement(where: str, text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise UsageError(f"{where}: {short(text)} is no requirement such as tensorflow==2.15.1.") from error


def _installable() -> list[Framework]:
    """The frameworks that an environment can hold the sides of a pair of."""
    return [record for record in frameworks().values() if record.factories]


def _pinned(requirement: str, python: str) -> str:
    """What a framework needs beside it, in the version that this Python can have."""
    return _setuptools(python) if requirement == "setuptools" else requirement


def _setuptools(python: str) -> str:
    """torch 1.x imports pkg_resources.packaging, which setuptools 70 dropped; from Python 3.12 on, where no torch 1.x
    runs, thop needs the distutils of any setuptools."""
    version = running_version() if python == CURRENT else python
    return "setuptools<70" if int(version.split(".")[1]) < 12 else "setuptools"


def _label(requirement: Requirement) -> str:
    """``tensorflow-2.15.1`` for a pin, ``protobuf-lt3.20`` for a bound: safe in file names and tables."""
    parts = sorted(_OPERATORS[s.operator] + s.version for s in requirement.specifier)
    return re.sub(r"[^A-Za-z0-9._-]", "-", "-".join([requirement.name, *parts]))
