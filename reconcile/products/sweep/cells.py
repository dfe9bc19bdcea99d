"""A cell of a sweep: one model in one environment, and everything that determines its result (``request_of``)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...core import user_files
from ...core.atomic import safe
from ...core.errors import UsageError, reason
from ...core.option import Kind
from ...core.registry import frameworks, known_counters
from ...launch.environments.cache import source_digest
from ...launch.environments.definitions import CURRENT, Environment
from ...launch.environments.provision import folder_of
from ...launch.options import by_parameter
from ...model_zoo.loading import pair_path, zoo_names
from ...model_zoo.pair import Input

SCHEMA = 1
RESERVED = ("readme", "sweep", "audit", "costs", "index")
"""Stems of the sweep's own files, which no cell may have as its name."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What to run. A pair by ``model`` and ``overrides``, or ``factories`` (framework -> ``module:function``) with their
    ``arguments`` by name and ``inputs``; ``environment`` is one by its fields, none for the running interpreter."""

    name: str
    model: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    factories: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[tuple[str, tuple[int, ...], str], ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> Environment | None:
        """Its environment; None for the running interpreter."""
        if not self.environment:
            return None
        lists = ("frameworks", "requirements", "counters")
        return Environment(**{**self.environment, **{name: tuple(self.environment[name]) for name in lists}})


@dataclass(frozen=True, slots=True)
class Manner:
    """How every cell is run: ``options`` of ``reconcile run`` that are not at their defaults, by what functions call them
    (launch/options.py), as JSON has them. ``texts`` (option -> name -> text) are users' files, which travel along;
    ``formats`` are those of a cell's own report."""

    options: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    formats: tuple[str, ...] = ("md",)

    @property
    def decisive_options(self) -> dict[str, Any]:
        """The options that determine what is found: how long a counter may take does not."""
        known = by_parameter()
        return {name: value for name, value in self.options.items() if known[name].kind is not Kind.LIMIT}


def manner_of(asked: Mapping[str, Any], formats: tuple[str, ...]) -> Manner:
    """The manner that the options of a command ask for. Raises UsageError for a file that cannot be read."""
    known = by_parameter()
    given = {name: value for name, value in asked.items() if value not in ((), known[name].default)}
    texts = {
        name: {
            f"{number}-{path.name}": user_files.read_text_file(path, "the file") for number, path in enumerate(paths)
        }
        for name, paths in given.items()
        if known[name].kind is Kind.FILE
    }
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    return Manner({name: value for name, value in plain.items() if name not in texts}, texts, formats)


def in_environments(cell: Cell, environments: Sequence[Environment]) -> list[Cell]:
    """The cell in each of these; its name says in which where that is not the running interpreter.

    Raises UsageError where an environment has none of the frameworks that the cell is for.
    """
    found = []
    for environment in environments:
        if environment.name == CURRENT:
            found.append(cell)
            continue
        factories = {name: where for name, where in cell.factories.items() if name in environment.frameworks}
        if cell.factories and not factories:
            raise UsageError(
                f"{cell.name}: the environment {environment.name} has none of {', '.join(cell.factories)}."
            )
        fields = {name: value for name, value in asdict(environment).items() if name != "interpreter"}
        fields |= {name: list(value) for name, value in fields.items() if isinstance(value, tuple)}
        named = f"{cell.name}@{environment.name}"
        found.append(replace(cell, name=named, factories=factories, environment=fields))
    return found


def distinct(cells: Sequence[Cell]) -> list[Cell]:
    """The cells, each once. Raises UsageError for two different ones whose files would have one name."""
    found: dict[str, Cell] = {}
    for cell in cells:
        if safe(cell.name).lower() in RESERVED:
            raise UsageError(
                f"a model of the sweep is called {cell.name}, as one of its own files: give it another name."
            )
        there = found.setdefault(safe(cell.name).lower(), cell)
        if there != cell:
            raise UsageError(
                f"two models of the sweep are called {cell.name}, and their inputs or parameters differ: list them in a file "
                "and give one of them another name there."
            )
    return list(found.values())


def request_of(cell: Cell, manner: Manner, paths: Sequence[str]) -> dict[str, Any]:
    """The JSON object that the process of the cell gets. ``paths`` are folders of the user's own modules.

    ``key`` is a hash of what determines the result: this tool, the cell, the manner, the packages that run it, the sources
    of the models where they are the user's own.
    """
    body = {"schema": SCHEMA, "cell": asdict(cell), "manner": asdict(manner)}
    meets = versions(cell) if cell.place is None else {}
    place = "" if cell.place is None else folder_of(cell.place).name
    what = {**body, "tool": source_digest(), "meets": meets, "place": place, "theirs": sources(cell, paths)}
    what["manner"] = asdict(replace(manner, options=manner.decisive_options))
    key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    return {**body, "key": key, "tool": source_digest(), "meets": meets, "folder": os.getcwd(), "paths": list(paths)}


def read_cell(request: Mapping[str, Any]) -> tuple[Cell, Manner]:
    """The cell and the manner of a request (``request_of``) that was read from JSON."""
    fields = dict(request["cell"])
    fields["inputs"] = tuple((name, tuple(shape), dtype) for name, shape, dtype in fields["inputs"])
    manner = Manner(**request["manner"])
    return Cell(**fields), replace(manner, formats=tuple(manner.formats))


def inputs_of(cell: Cell) -> tuple[Input, ...]:
    """The inputs of a cell as a run takes them."""
    return tuple(Input(name, shape, dtype) for name, shape, dtype in cell.inputs)


def versions(cell: Cell) -> dict[str, str]:
    """Versions of the installed distributions that the frameworks, the counters and the cell's own models are made of, and
    of all that these require."""
    tops = [where.partition(":")[0].partition(".")[0] for where in cell.factories.values()]
    packages = [name for record in frameworks().values() for name in (record.package, record.adapter.partition(".")[0])]
    packages += [*(counter.package for counter in known_counters().values()), "keras", "tf_keras", *tops]
    waiting = [name for package in packages for name in _providers().get(package, ())]
    found: dict[str, str] = {}
    while waiting:
        name = canonicalize_name(waiting.pop())
        version, requires = _installed_distribution(name)
        if name not in found and version:
            found[name] = version
            waiting += requires
    return dict(sorted(found.items()))


@cache
def _providers() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def _installed_distribution(name: str) -> tuple[str, tuple[str, ...]]:
    """Version of a distribution, '' if it is not there, and the names of those it requires."""
    try:
        dist = distribution(name)
    except PackageNotFoundError:
        return "", ()
    needed = (Requirement(text) for text in dist.requires or ())
    return dist.version, tuple(r.name for r in needed if r.marker is None or r.marker.evaluate({"extra": ""}))


def sources(cell: Cell, paths: Sequence[str]) -> dict[str, str]:
    """SHA-256 of every Python file that a model of the user's own may be made of: those beside its module, and those of its
    package. What is installed is known by its version."""
    roots: dict[Path, bool] = {}
    if cell.model and cell.model not in zoo_names():
        roots[Path(pair_path(cell.model)).parent] = False
    for where in cell.factories.values():
        top = where.partition(":")[0].partition(".")[0]
        for folder in (os.getcwd(), *paths):
            package = Path(folder) / top
            if os.path.isdir(package):
                roots[package] = True
            if os.path.isfile(f"{package}.py") or os.path.isdir(package):
                roots.setdefault(Path(folder), False)
                break
    files: dict[str, str] = {}
    for root, whole in roots.items():
        for file in sorted(root.rglob("*.py") if whole else root.glob("*.py")):
            files[f"{root.name}/{file.relative_to(root).as_posix()}"] = _digest(file)
    return files


def _digest(file: Path) -> str:
    """The SHA-256 of a file; why there is none where Python could not import it either: a broken link, a folder, a pipe."""
    try:
        return hashlib.sha256(user_files.read_file(file, user_files.MAX_FILE_BYTES)).hexdigest()
    except OSError as error:
        return reason(error)


def is_beside(top: str, paths: Iterable[str]) -> bool:
    """Whether a folder of the user's own has a top-level module of that name."""
    here = [os.path.join(path, top) for path in (os.getcwd(), *paths)]
    return any(os.path.isdir(path) or os.path.isfile(f"{path}.py") for path in here)


def is_there(module: str, paths: Iterable[str]) -> bool:
    """Whether a top-level module of that name can be found, without importing anything."""
    top = module.partition(".")[0]
    if is_beside(top, paths):
        return True
    try:
        return find_spec(top) is not None
    except (ImportError, OSError, ValueError):
        return False
