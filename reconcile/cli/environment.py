"""Which environment a command runs in, from ``--environment``, ``--environments``, ``--with`` and ``--python``."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from ..core.errors import UsageError, check_names
from ..launch.environments.definitions import CURRENT, Environment, adhoc, at, load
from ..launch.environments.runs import collect_in
from ..launch.runner import Collect
from .streams import say


def collect_there(environment: Environment) -> Collect | None:
    """A function that collects in this environment, with a line on stderr while it is made; None for the running one."""
    return collect_in(environment, lambda text: say(text, err=True)) if environment.name != CURRENT else None


def choose_environment(
    name: str, file: Path | None, with_: tuple[str, ...], python: str | None, models: Collection[str] = ()
) -> Environment:
    """The environment to run in; ``models`` are the frameworks of the user's own models.

    Raises UsageError for a name that is not there, and for two environments at once.
    """
    if with_ or python:
        if name != CURRENT:
            raise UsageError("--environment names one environment and --with or --python another; give one of them.")
        return describe_environment(with_, python, models)
    there = load(file)
    check_names("environment", (name,), there)
    return there[name]


def describe_environment(with_: tuple[str, ...], python: str | None, models: Collection[str] = ()) -> Environment:
    """The environment to be made of these requirements, or that of an interpreter given by its path. Raises UsageError."""
    if with_ or python is None or re.fullmatch(r"\d+(\.\d+)*", python):
        if with_ and python and os.sep in python:
            raise UsageError(f"--with makes an environment and --python {python} is one already; give one of them.")
        return adhoc(with_, python or CURRENT, models)
    return at(python)
