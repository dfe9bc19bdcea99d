"""Registries of frameworks, counters and products, built in or from entry points: only this file knows their names.

It also says which counters run unasked, which a name such as ``all`` stands for, and whose statement comes first.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from .counter import Counter
from .errors import UsageError
from .framework import ROOT, Framework
from .product import Command, Product, RunFormat, extend_records, find_wrong_entry, load_place
from .records import FLOP, MAC

GROUP = "reconcile.frameworks"
"""The entry point group in which other packages register their frameworks."""

COUNTER_GROUP = "reconcile.counters"
"""The entry point group in which other packages register their counters: ``mine = "my_package:COUNTERS"``."""

PRODUCT_GROUP = "reconcile.products"
"""The entry point group in which other packages register their products: ``mine = "my_package:PRODUCT"``."""

PRODUCT_FOLDERS = (
    "files",
    "steps",
    "ranks",
    "kernels",
    "formula",
    "llm",
    "decode",
    "audit",
    "mfu",
    "sweep",
    "torchvision",
    "tensor_kinds",
    "gallery",
    "scorecard",
    "upgrade",
    "authors",
    "ci",
    "cards",
)
"""Folders below ``reconcile/products/``, in the order in which their commands and options are shown."""

BUILT_IN: dict[str, tuple[str, ...]] = {
    "tensorflow": (),
    "pytorch": (),
    "onnx": ("products.files",),
    "tflite": ("products.files",),
    "jax": (),
}
"""Folders below ``adapters/``, in the order of reports, each with the parts that it needs. A framework is left out where one of
them is missing."""

ALL = "all"
"""The value of ``--counter`` that names every counter."""

COUNTER_FOLDERS: dict[str, tuple[str, ...]] = {
    "tf_profiler": (),
    "thop": (),
    "fvcore": (),
    "flop_counter": (),
    "torchinfo": (),
    "torch_profiler": (),
    "xformers": ("counters.torch_profiler",),
    "mmengine": (),
    "patched_functions": (),
    "torchprofile": ("counters.patched_functions",),
    "torch_flops": ("counters.patched_functions",),
    "torchscan": ("counters.ultralytics_thop",),
    "pthflops": ("counters.torch_flops", "counters.patched_functions"),
    "torchstat": ("counters.ultralytics_thop",),
    "inductor": (),
    "ultralytics_thop": (),
    "calflops": ("counters.patched_functions",),
    "deepspeed": ("counters.patched_functions",),
    "ptflops": ("counters.patched_functions",),
    "keras_flops": (),
    "wandb": ("counters.keras_flops",),
    "onnx_tool": ("frameworks.onnx",),
    "onnx_opcounter": ("counters.onnx_tool", "frameworks.onnx"),
    "paddle": (),
    "formulas": (),
    "xla": ("frameworks.jax",),
    "roofline": ("frameworks.jax",),
    "estimate_cost": ("counters.roofline", "frameworks.jax"),
    "cpu_libraries": (),
    "tf_libraries": ("counters.cpu_libraries",),
}
"""Folders below ``adapters/counters/``, in the order in which reports show their counters, each with the parts that it needs. A
counter is left out where one of them is missing."""


@functools.cache
def frameworks() -> dict[str, Framework]:
    """Every framework by its name: the built-in ones in their order, then those of other packages, sorted. Each has what the
    products add to its record.

    Raises UsageError for an entry point that cannot be loaded, that is not a Framework, or whose name is taken.
    """
    known: dict[str, Framework] = {}
    present = _present_parts()
    for folder in (folder for folder in BUILT_IN if f"frameworks.{folder}" in present):
        record = importlib.import_module(f"{ROOT}.adapters.{folder}").FRAMEWORK
        known[record.name] = record
    for point in _points(GROUP):
        record = _load_point(point)
        if not isinstance(record, Framework):
            raise _refuse_point(point, "it is not a Framework record")
        if record.name in known:
            raise _refuse_point(point, f"a framework named {record.name} is already registered")
        known[record.name] = record._replace(folder=_folder(point))
    return extend_records(known, products().values(), "framework_fields")


@functools.cache
def known_counters() -> dict[str, Counter]:
    """Every counter by its name: the built-in ones in their order, then those of other packages, sorted by entry point. Each has
    what the products add to its record.

    Raises UsageError for an entry point that cannot be loaded, or that holds anything but counters that can be added.
    """
    known = built_in_counters()
    for point in _points(COUNTER_GROUP):
        record = _load_point(point)
        records = (record,) if isinstance(record, Counter) else record
        if not isinstance(records, tuple) or not records or not all(isinstance(c, Counter) for c in records):
            raise _refuse_point(point, "it is neither a Counter nor a tuple of them")
        for counter in records:
            wrong = _wrong(counter, known)
            if wrong:
                raise _refuse_point(point, wrong)
            known[counter.name] = counter._replace(folder=_folder(point))
    return extend_records(known, products().values(), "counter_fields")


@functools.cache
def products() -> dict[str, Product]:
    """Every product by its name: the built-in ones in their order, then those of other packages, sorted by entry point.

    Leaves out a product that needs one which is missing. Raises UsageError for an entry point that cannot be loaded, that is not
    a Product, or whose name is taken.
    """
    known = {
        record.name: record
        for record in (importlib.import_module(f"{ROOT}.products.{folder}").PRODUCT for folder in PRODUCT_FOLDERS)
    }
    for point in _points(PRODUCT_GROUP):
        record = _load_point(point)
        if not isinstance(record, Product):
            raise _refuse_point(point, "it is not a Product record")
        wrong = _wrong_product(record, known)
        if wrong:
            raise _refuse_point(point, wrong)
        known[record.name] = record
    needs = {f"products.{name}": record.needs for name, record in known.items()}
    present = _with_their_needs({**_needs_of_folders(), **needs})
    return {name: record for name, record in known.items() if f"products.{name}" in present}


def _wrong_product(record: Product, known: Iterable[str]) -> str:
    """Why a product of another package cannot be registered; '' if it can."""
    if record.name in known:
        return f"a product named {record.name} is already registered"
    if not all(isinstance(command, Command) for command in record.commands):
        return "its commands are not Command records"
    if not all(isinstance(each, RunFormat) for each in record.run_formats):
        return "its run_formats are not RunFormat records"
    places = [command.place for command in record.commands if command.place]
    places += [
        *record.options,
        *record.model_readers,
        *record.run_options,
        *record.answer_hooks,
        *record.model_notes,
        *(place for _, place in (*record.functions, *record.fixture_functions, *record.check_formats)),
        *(place for each in record.run_formats for place in (each.render, each.check) if place),
    ]
    if entry := find_wrong_entry(record):
        return f"its entry {entry} is not of the form (name, field of its record, value of the field's type)"
    misspelled = next((place for place in places if not all(str(place).partition(":"))), None)
    return "" if misspelled is None else f"its place {misspelled!r} is not of the form 'module:name'"


def _with_their_needs(needs: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The parts all of whose needs are among them, directly and through others."""
    present = set(needs)
    while lacking := {name for name in present if not present.issuperset(needs[name])}:
        present -= lacking
    return frozenset(present)


def _needs_of_folders() -> dict[str, tuple[str, ...]]:
    """The needs of ``frameworks.NAME`` and ``counters.NAME``, for every row of their tables."""
    frameworks = {f"frameworks.{name}": needs for name, needs in BUILT_IN.items()}
    return {**frameworks, **{f"counters.{name}": needs for name, needs in COUNTER_FOLDERS.items()}}


def _present_parts() -> frozenset[str]:
    """``products.NAME``, ``frameworks.NAME`` and ``counters.NAME`` of every part whose needs are there, too."""
    return _with_their_needs({**_needs_of_folders(), **{f"products.{name}": () for name in products()}})


def load_places(field: str) -> tuple[Any, ...]:
    """Import what a field of every product names: ``"answer_hooks"``, ``"model_notes"`` or ``"model_readers"``.

    Returns it in the order of the products.
    """
    return tuple(load_place(product, place) for product in products().values() for place in getattr(product, field))


def product_function(name: str, field: str = "functions") -> Any:
    """What a product adds under this name to the Python package, with ``"fixture_functions"`` to the pytest fixture, with
    ``"check_formats"`` to the formats of ``reconcile check``; None if none does."""
    for product in products().values():
        place = dict(getattr(product, field)).get(name)
        if place is not None:
            return load_place(product, place)
    return None


def added_formats() -> dict[str, str]:
    """The formats that products add to the reports of a run, each with the end of its file's name."""
    return {each.name: each.end for product in products().values() for each in product.run_formats}


def load_formats(names: Iterable[str], field: str) -> dict[str, Any]:
    """What these of the added formats name as ``"render"`` or ``"check"``, by the end of the report's file name."""
    return {
        each.end: load_place(product, getattr(each, field))
        for product in products().values()
        for each in product.run_formats
        if each.name in names and getattr(each, field)
    }


@functools.cache
def choose_leading(what: str) -> tuple[str, ...]:
    """The counters whose statements a report shows first, one per framework: of a ``"call"`` or of a training ``"step"``."""
    first: dict[str, str] = {}
    for counter in known_counters().values():
        if what in counter.leads:
            first.setdefault(counter.framework, counter.name)
    return tuple(first.values())


def list_default_counters(framework: str) -> tuple[str, ...]:
    """The counters that run without being asked for on a user's own model of that framework: its defaults, and where it has none,
    the counters that are part of the framework itself."""
    own = {name: c for name, c in known_counters().items() if c.framework == framework}
    defaults = tuple(name for name, c in own.items() if c.default)
    return defaults or tuple(n for n, c in own.items() if not (c.package or c.rare or c.recipe or c.quoted))


def every_counter(models: Iterable[str] = ()) -> tuple[str, ...]:
    """The counters that ``--counter all`` names: each one for these frameworks, or for all, but those that build the model
    in another way, which run alone, those that need an environment of their own, and formulas that people quote."""
    chosen = tuple(models) or tuple(frameworks())
    return tuple(
        name
        for name, c in known_counters().items()
        if c.framework in chosen and not c.recipe and not c.requirements and not c.quoted
    )


def counters_named(names: Iterable[str], models: Iterable[str]) -> tuple[str, ...]:
    """The counters of these names: ``all`` stands for every counter, ``formula:all`` for every formula, and the name of a
    family that no counter has alone (``ptflops``) for those of its counters that take the model as it is."""
    known = known_counters()
    groups: dict[str, list[str]] = {}
    for counter in known.values():
        if counter.quoted:
            groups.setdefault(f"{counter.family}:{ALL}", []).append(counter.name)
        elif counter.family not in known and not counter.recipe:
            groups.setdefault(counter.family, []).append(counter.name)
    groups[ALL] = list(every_counter(models)) if ALL in names else []
    if not groups.keys() & set(names):
        return tuple(names)
    return tuple(dict.fromkeys(chosen for name in names for chosen in groups.get(name, [name])))


def built_in_counters() -> dict[str, Counter]:
    """The counters of this package, as their folders' ``COUNTERS`` state them, in the order of reports."""
    present = _present_parts()
    folders = (
        importlib.import_module(f"{ROOT}.adapters.counters.{folder}")
        for folder in COUNTER_FOLDERS
        if f"counters.{folder}" in present
    )
    return {counter.name: counter for module in folders for counter in module.COUNTERS}


def _wrong(counter: Counter, known: Iterable[str]) -> str:
    """Why a counter of another package cannot be registered; '' if it can."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*(@[A-Za-z0-9_.:-]+)?", counter.name):
        return f"{counter.name!r} cannot name a counter; use letters, digits and _.:-, and one @ between a family and its member"
    if counter.name in known or counter.family in ("trace", "all"):
        return f"a counter named {counter.name} is already registered"
    if counter.framework not in frameworks():
        return f"{counter.name} counts models of {counter.framework!r}, which is not a framework that is registered"
    if counter.unit not in (MAC, FLOP):
        return f"the unit of {counter.name} is {counter.unit!r}, and has to be {MAC} or {FLOP}"
    if counter.default:
        return f"{counter.name} states default=True; only a counter of reconcile itself runs unasked"
    return ""


def title(name: str) -> str:
    """A framework's title; the name itself if it is not registered here."""
    record = frameworks().get(name)
    return record.title if record is not None else name


def find_packages(modules: Iterable[tuple[str, str]]) -> dict[str, str]:
    """{top-level package: folder in which a worker finds it} of modules that other packages declare, each with its folder."""
    return {module.partition(".")[0]: folder for module, folder in modules if folder}


def _points(group: str) -> list[metadata.EntryPoint]:
    return sorted(metadata.entry_points(group=group), key=_show_point)


def _show_point(point: metadata.EntryPoint) -> str:
    return f"{point.name} = {point.value} (group {point.group})"


def _refuse_point(point: metadata.EntryPoint, why: str) -> UsageError:
    return UsageError(
        f"the entry point {_show_point(point)} cannot be used: {why}. Fix or uninstall the package that provides it."
    )


def _load_point(point: metadata.EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:
        raise _refuse_point(point, f"it cannot be loaded ({type(error).__name__}: {error})") from error


def _folder(point: metadata.EntryPoint) -> str:
    """The folder that holds the top-level package of the entry point."""
    module = importlib.import_module(point.module.partition(".")[0])
    file = os.path.abspath(str(module.__file__))
    root = os.path.dirname(file) if os.path.basename(file) == "__init__.py" else file
    return os.path.dirname(root)
