"""Which environment a command runs in, from ``--environment``, ``--environments``, ``--with`` and ``--python``."""

from __future__ import annotations

from pathlib import Path

from ..environments import CURRENT, Environment, adhoc, load
from ..errors import UsageError, unknown


def one(name: str, file: Path | None, with_: tuple[str, ...], python: str | None) -> Environment:
    """The one to run in. Raises UsageError for a name that is not there, and for two environments at once."""
    if with_ or python:
        if name != CURRENT:
            raise UsageError("--environment names one environment and --with another; give one of them.")
        return adhoc(with_, python or CURRENT)
    there = load(file)
    if name not in there:
        raise unknown("environment", name, there)
    return there[name]
