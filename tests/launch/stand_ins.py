"""A stand-in for uv and stand-ins for interpreters: shell scripts that answer as the real ones do, and keep a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconcile.launch.environments import provision

UV = """#!/bin/sh
echo "$@" >> {log}
echo "downloads=$UV_PYTHON_DOWNLOADS preference=$UV_PYTHON_PREFERENCE path=$PYTHONPATH cwd=$PWD" >> {log}
case "$1" in
venv)
  for last; do :; done
  mkdir -p "$last/bin" "$last/lib/python3.9/site-packages" && ln -s {python} "$last/bin/python" ;;
pip)
  {install} ;;
esac
"""


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def interpreter() -> Callable[[Path, str], Path]:
    """``interpreter(path, version)``: a script that says it is that Python, living at ``<path>.real``."""

    def made(path: Path, version: str) -> Path:
        return script(path, f"#!/bin/sh\necho '{version} {path}.real'\n")

    return made


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """``uv(install="true")``: put a stand-in in uv's place and an empty cache below tmp_path; returns its log."""
    log = tmp_path / "uv.log"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def made(install: str = "true") -> Path:
        text = UV.format(log=log, python=os.path.realpath(sys.executable), install=install)
        command = script(tmp_path / "bin" / "uv", text)
        monkeypatch.setattr(provision, "uv_command", lambda: (str(command),))
        monkeypatch.setattr(provision, "find", lambda _version: Path(sys.executable))
        return log

    return made
