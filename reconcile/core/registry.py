"""The registry of frameworks: nothing else in this package knows a framework by its name."""

from __future__ import annotations

import functools
import importlib
import os
from importlib import metadata

from .errors import UsageError
from .framework import ROOT, Framework

GROUP = "reconcile.frameworks"
"""The entry point group in which other packages register their frameworks."""

BUILT_IN = ("tensorflow", "pytorch", "onnx")
"""Folders below ``adapters/``, in the order of reports."""


@functools.cache
def frameworks() -> dict[str, Framework]:
    """Every framework by its name: the built-in ones in their order, then those of other packages, sorted.

    Raises UsageError for an entry point that cannot be loaded, that is not a Framework, or whose name is taken.
    """
    known: dict[str, Framework] = {}
    for folder in BUILT_IN:
        record = importlib.import_module(f"{ROOT}.adapters.{folder}").FRAMEWORK
        known[record.name] = record
    for point in sorted(metadata.entry_points(group=GROUP), key=_shown):
        record = _loaded(point)
        if record.name in known:
            raise _refused(point, f"a framework named {record.name} is already registered")
        known[record.name] = record
    return known


def title(name: str) -> str:
    """A framework's title; the name itself if it is not registered here."""
    record = frameworks().get(name)
    return record.title if record is not None else name


def _shown(point: metadata.EntryPoint) -> str:
    return f"{point.name} = {point.value} (group {GROUP})"


def _refused(point: metadata.EntryPoint, why: str) -> UsageError:
    return UsageError(
        f"the entry point {_shown(point)} cannot be used: {why}. Fix or uninstall the package that provides it."
    )


def _loaded(point: metadata.EntryPoint) -> Framework:
    try:
        record = point.load()
    except Exception as error:
        raise _refused(point, f"it cannot be loaded ({type(error).__name__}: {error})") from error
    if not isinstance(record, Framework):
        raise _refused(point, "it is not a Framework record")
    module = importlib.import_module(point.module.partition(".")[0])
    file = os.path.abspath(str(module.__file__))
    root = os.path.dirname(file) if os.path.basename(file) == "__init__.py" else file
    return record._replace(folder=os.path.dirname(root))
