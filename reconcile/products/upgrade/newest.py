"""The newest release of a package that the index has, which ``reconcile upgrade --pre`` looks at."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from ...core.errors import UsageError
from ...launch.environments.interpreters import EnvironmentError_, clean_environ, uv_command
from ...launch.environments.provision import read_uv_error
from ...launch.workers.start import call_program

LIMIT = 300.0
NO_SOLUTION = 1
"""uv's status where it read the index and no release fits; 2 is any other error, such as an index that it cannot reach."""
OPTIONS = ("--quiet", "--no-deps", "--no-header", "--no-annotate", "--prerelease", "allow")


def find_newest(requirement: str, python: str) -> str:
    """``package==version``: the newest that meets the requirement on that Python, nightlies and release candidates among them.

    The index is the one that uv is set up for. Raises UsageError if uv is not installed or finds none.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:  # not the user's, whose pyproject.toml may restrain uv
            Path(folder, "asked.in").write_text(requirement, encoding="utf-8")
            command = [*uv_command(), "pip", "compile", *OPTIONS, "--python-version", python, "asked.in"]
            environ = {**clean_environ(), "UV_PYTHON": sys.executable}
            done = call_program(command, LIMIT, env=environ, cwd=folder)
        if done.returncode not in (0, NO_SOLUTION):
            raise EnvironmentError_(f"uv: {read_uv_error(done.stderr)}")
    except (EnvironmentError_, subprocess.TimeoutExpired) as error:
        raise UsageError(f"the newest release of {requirement} cannot be looked up: {error}.") from error
    found = done.stdout.split()
    if done.returncode or not found:
        raise UsageError(f"the index has no release of {requirement} for Python {python}.")
    return found[0]
