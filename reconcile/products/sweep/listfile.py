"""Reader of a sweep's list, ``reconcile sweep FILE.toml``: one table per entry, each checked before anything runs.

``[[model]]`` with one of ``zoo`` (with ``set``), ``package`` (with ``without``), ``factory`` (the same definition in both
frameworks, or in those of ``frameworks``) or ``tf`` and ``torch``; all but the first may have ``arguments`` and ``inputs``, every
entry ``environments``, and all but a package a ``name``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core import user_files
from ...core.errors import UsageError, check_names, short
from ...launch import user_models
from ...launch.environments.definitions import Environment
from . import listing
from .cells import Cell, in_environments

MADE = ("arguments", "inputs", "name", "environments")
"""What goes with one model that a factory makes."""
KINDS: Mapping[str, tuple[str, ...]] = {
    "zoo": ("set", "name", "environments"),
    "package": ("frameworks", "without", "arguments", "inputs", "environments"),
    "factory": ("frameworks", *MADE),
}
"""What goes with an entry of each kind; with a factory for one framework go those for the others and ``MADE``."""
TEXT, LIST, TABLE = "a text", "a list of texts", "a table"
SHAPES = {"set": TABLE, "arguments": TABLE, "environments": LIST, "inputs": LIST, "without": LIST, "frameworks": LIST}


def read_list(
    path: Path,
    environments: Mapping[str, Environment],
    default: Sequence[Environment],
    paths: Sequence[str] = (),
    among: Sequence[str] = (),
    python: str = "",
) -> list[Cell]:
    """The cells of a list; an entry that names no environments has the ``default`` ones, and one definition that names no
    frameworks is made in those ``among``.

    Raises UsageError, naming the file, the entry and the key, for what cannot be used.
    """
    data = user_files.read_toml(path, "the list")
    for key in data:
        if key != "model":
            raise UsageError(f"{path}: unknown key {short(key)}; a list has [[model]] tables and nothing else.")
    entries = data.get("model")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{path}: it has no [[model]] table; each model begins with [[model]].")
    found: list[Cell] = []
    for number, entry in enumerate(entries, 1):
        where = f"{path}, [[model]] number {number}"
        _check(where, entry)
        try:
            named = entry.get("environments", ())
            check_names("environment", named, environments)
            places = [environments[name] for name in named]
            for cell in _cells(entry, paths, among, python):
                found += in_environments(cell, places or default)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error
    return found


def _check(where: str, entry: Mapping[str, Any]) -> None:
    makers = listing.makers()
    kinds = {**KINDS, **{name: (*(other for other in makers if other != name), *MADE) for name in makers}}
    kind = next((kind for kind in kinds if kind in entry), None)
    if kind is None:
        raise UsageError(f"{where}: it names no model: give one of {', '.join(kinds)}.")
    for key, value in entry.items():
        if key != kind and key not in kinds[kind]:
            raise UsageError(f"{where}: {short(key)} does not go with {kind}; expected {', '.join(kinds[kind])}.")
        shape = SHAPES.get(key, TEXT)
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not {TEXT: isinstance(value, str), LIST: texts, TABLE: isinstance(value, dict)}[shape]:
            raise UsageError(f"{where}: {key} must be {shape}, not {short(value)}.")
    if not _plain(entry.get("arguments", {})):
        raise UsageError(f"{where}: arguments must be texts, numbers, true or false, lists and tables of these.")


def _plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(_plain(item) for item in value.values())
    return all(map(_plain, value)) if isinstance(value, list) else isinstance(value, (str, int, float, bool))


def _cells(entry: Mapping[str, Any], paths: Sequence[str], among: Sequence[str], python: str) -> list[Cell]:
    if "zoo" in entry:
        values = entry.get("set", {}).items()
        said = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values}
        return [listing.pair(entry["zoo"], said, entry.get("name", ""))]
    inputs = user_models.read_inputs(entry.get("inputs", ()))
    arguments = entry.get("arguments", {})
    makers = listing.makers()
    chosen = listing.select_frameworks(entry["frameworks"]) if "frameworks" in entry else among or listing.both()
    if "package" in entry:
        return listing.package(entry["package"], chosen, arguments, inputs, entry.get("without", ()), paths, python)
    one = dict.fromkeys(chosen, entry["factory"]) if "factory" in entry else {}
    factories = one or {name: entry[name] for name in makers if name in entry}
    return [listing.factory(factories, arguments, inputs, entry.get("name", ""))]
