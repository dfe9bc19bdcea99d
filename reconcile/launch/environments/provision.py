"""Makes environments with uv and keeps them in a cache; lists and removes those that are there.

An environment is in ``<cache>/reconcile/environments/<name>-<hash of machine, Python and requirements>`` with its
interpreter at ``bin/python``.  A stamp file, written last, shows that it is complete; a lock file beside it keeps two
processes from making it at once.  Other requirements make another folder; nothing is ever updated in place.
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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..workers.scratch import remove_if_killed
from ..workers.start import call_program
from .definitions import CURRENT, Environment
from .interpreters import EnvironmentError_, clean_environ, find, running_version, uv_command

STAMP = "reconcile-complete"
INSTALL_LIMIT = 3600.0


def ensure(env: Environment, progress: Callable[[str], None] = lambda _message: None) -> Path:
    """The interpreter of that environment, which is made now unless the cache has it complete.

    ``progress`` gets a sentence for each step that takes time.  Safe to call from several threads and processes.
    Raises EnvironmentError_ for a missing interpreter, a missing uv and a failed install.
    """
    if env.interpreter is not None:
        return env.interpreter
    if env.python == CURRENT and not env.requirements:
        return Path(sys.executable)
    folder = folder_of(env)
    if _is_complete(folder):
        return _python(folder)
    with _lock_folder(folder, lambda: progress(f"{env.name}: waiting for another process that is making it")) as lock:
        if not _is_complete(folder):
            _build(env, folder, lock, progress)
    return _python(folder)


def cache_root() -> Path:
    """The folder that holds all environments: under $XDG_CACHE_HOME, or in the platform's own folder for caches."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        root = Path(base)
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path.home() / ".cache"
    return root / "reconcile" / "environments"


def folder_of(env: Environment) -> Path:
    """The folder of that environment, made or not: other requirements, Python or machine give another folder."""
    below = _running_packages() if env.over else []
    identity = "\n".join([sys.platform, platform.machine(), _version(env), *sorted(env.requirements), *below])
    digest = hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    return cache_root() / f"{env.name[:60]}-{digest}"


def list_made() -> dict[Path, int]:
    """The folder of every environment that is kept, with the bytes of its files that are in none before it: uv links files."""
    root, seen, sizes = cache_root(), set[tuple[int, int]](), dict[Path, int]()
    for folder in sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []:
        new = {(s.st_dev, s.st_ino): s.st_blocks * 512 for s in map(os.lstat, folder.rglob("*"))}
        sizes[folder] = sum(size for file, size in new.items() if file not in seen)
        seen |= new.keys()
    return sizes


def remove(folder: Path) -> None:
    """Remove an environment, after whoever is making it. Raises EnvironmentError_ if that is not possible."""
    with _lock_folder(folder, lambda: None):
        try:
            (folder / STAMP).unlink(missing_ok=True)  # what is left of it is not complete
            shutil.rmtree(folder)
        except OSError as error:
            raise EnvironmentError_(f"the environment {folder} cannot be removed: {error.strerror}") from error


def _build(env: Environment, folder: Path, lock: int, progress: Callable[[str], None]) -> None:
    """Make the environment in its folder and stamp it last. The caller holds the lock."""
    uv = uv_command()
    python = find(_version(env))
    shutil.rmtree(folder, ignore_errors=True)
    progress(f"{env.name}: making the environment with uv ({len(env.requirements)} requirements, once)")
    try:
        _uv([*uv, "venv", "--quiet", "--no-project", "--python", str(python), str(folder)], folder, lock)
        install = ["pip", "install", "--quiet", "--python", str(_python(folder))]
        if env.over:
            install.append("--no-deps")
            _lay_over(folder)
        _uv([*uv, *install, *env.requirements], folder, lock)
        (folder / STAMP).write_text("\n".join([str(python), *env.requirements]) + "\n", encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    progress(f"{env.name}: ready")


def _running_packages() -> list[str]:
    """The folders in which the running interpreter has its packages."""
    paths = sysconfig.get_paths()
    return list(dict.fromkeys((paths["purelib"], paths["platlib"])))


def _lay_over(folder: Path) -> None:
    """Let the environment find the running interpreter's packages after its own, with their .pth files."""
    (site,) = (folder / "lib").glob("python*/site-packages")
    lines = [f"import site; site.addsitedir({path!r})\n" for path in _running_packages()]
    (site / "reconcile-over.pth").write_text("".join(lines), encoding="utf-8")


def _uv(command: list[str], folder: Path, lock: int) -> None:
    """Run uv outside the user's folder, whose pyproject.toml has nothing to do with the environment in this one.

    It holds the lock as well: if this process is killed, no other process builds in the folder until it is removed.
    """
    try:
        environ = {**clean_environ(), "NO_COLOR": "1"}
        with remove_if_killed(folder, pass_fds=(lock,)):
            done = call_program(command, INSTALL_LIMIT, env=environ, cwd=folder.parent, pass_fds=(lock,))
    except subprocess.TimeoutExpired as error:
        raise EnvironmentError_(f"uv did not finish within {INSTALL_LIMIT:g} s") from error
    if done.returncode != 0:
        raise EnvironmentError_(f"uv: {read_uv_error(done.stderr) or f'ended with status {done.returncode}'}")


def read_uv_error(stderr: str) -> str:
    """The error and its causes as uv names them, in one sentence; the last line of its output if it names none."""
    causes = re.findall(r"^(?:error: | *× | *╰─▶ | {2}cause: | +Caused by: )(.+)$", stderr, re.MULTILINE)
    lines = causes or stderr.strip().splitlines()[-1:]
    return "; ".join(dict.fromkeys(line.strip().rstrip(".:") for line in lines))[:400]


def _is_complete(folder: Path) -> bool:
    """Whether it is stamped and its interpreter, a link to the one that it was made from, still exists."""
    return (folder / STAMP).is_file() and _python(folder).exists()


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


@contextmanager
def _lock_folder(folder: Path, wait: Callable[[], None]) -> Iterator[int]:
    """Hold the lock file beside ``folder`` (yields its descriptor), and remove it; the system frees it when its holders have
    ended."""
    lock = Path(f"{folder}.lock")
    with ExitStack() as stack:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            held = False
            while not held:  # until it is the file that is there: who held it before has removed that one
                file = stack.enter_context(lock.open("w"))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    wait()
                    fcntl.flock(file, fcntl.LOCK_EX)
                with suppress(FileNotFoundError):
                    held = os.path.samestat(os.fstat(file.fileno()), lock.stat())
        except OSError as error:
            raise EnvironmentError_(
                f"the environment cache {folder.parent} cannot be used: {error.strerror}"
            ) from error
        try:
            yield file.fileno()
        finally:
            lock.unlink(missing_ok=True)


def _version(env: Environment) -> str:
    return running_version() if env.python == CURRENT else env.python
