"""Targets that do what none may: ``python -m tests.fuzz.planted NAME ...`` is what ``python -m tests.fuzz`` is, with these."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from hypothesis import strategies as st

from . import __main__, targets
from .harness import Target


def _swallowed(_data: bytes, folder: Path) -> None:
    try:
        (folder.parent / "beside").write_text("x")
    finally:
        raise SystemExit(0)


def _unheard(_data: bytes, _folder: Path) -> None:
    with mock.patch.object(sys, "audit"):  # as C++ does: no event
        os.close(_libc_creat())


def _libc_creat() -> int:
    import ctypes

    return ctypes.CDLL(None).creat(b"unheard", 0o600)


def _large(data: bytes, _folder: Path) -> None:
    if data > b"\x10":
        raise ValueError(f"{data[0]} is above 16")


CHECKS: dict[str, Callable[[bytes, Path], object]] = {
    "fine": lambda data, folder: (folder / "inside").write_bytes(data),
    "raises": _large,
    "writes": lambda data, folder: (folder.parent / "beside").write_bytes(data),
    "swallowed": _swallowed,
    "unheard": _unheard,
    "starts": lambda _data, _folder: subprocess.run(["true"], check=True),
    "evaluates": lambda _data, _folder: eval("1 + 1"),
    "slow": lambda _data, _folder: time.sleep(60),
    "dies": lambda _data, _folder: os.abort(),
}


def load() -> dict[str, Target]:
    """A target for each."""
    inputs = st.binary(min_size=1, max_size=4)

    def target(name: str) -> Target:
        return Target(name, lambda: inputs, CHECKS[name], seconds=0.4, memory=1 << 28, smaller=name == "raises")

    return {name: target(name) for name in CHECKS}


if __name__ == "__main__":
    with mock.patch.object(targets, "load", load):
        sys.exit(__main__.main(sys.argv[1:]))
