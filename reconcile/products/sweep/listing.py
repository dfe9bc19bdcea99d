"""Makes cells of what a user names: a model of the zoo, a pair file, a factory, or every model that a package makes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, brief, check_names, short, unknown
from ...core.framework import absolute
from ...core.registry import frameworks
from ...launch import user_models
from ...launch.choose import pair_path
from ...launch.environments.definitions import load as environments
from ...model_zoo.loading import load_pair, resolve, zoo_names
from ...model_zoo.pair import Input, PairError
from ..function_call import NoAnswer, call_in_process
from .cells import Cell, is_there

ZOO = "zoo"
LIMIT = 300.0
"""Seconds that importing a package may take."""


def both() -> tuple[str, ...]:
    """The frameworks in which one definition makes the same model unless others are named: the first two that Keras runs on."""
    return tuple(record.name for record in frameworks().values() if record.backend)[:2]


def select_frameworks(names: Sequence[str]) -> tuple[str, ...]:
    """These frameworks, each once, in the order of the registry. Raises UsageError for what makes no models."""
    if not names or set(names) - set(makers()):
        raise UsageError(f"frameworks are some of {', '.join(makers())}, not {short(', '.join(names))}.")
    return tuple(name for name in makers() if name in names)


def makers() -> tuple[str, ...]:
    """The frameworks of which a function can make a model."""
    return tuple(record.name for record in frameworks().values() if record.factories)


def libraries() -> dict[str, tuple[str, str]]:
    """Every package whose models are made from a configuration, with its framework and the module that lists them."""
    return {package: (record.name, module) for record in frameworks().values() for package, module in record.libraries}


def list_packages() -> dict[str, tuple[str, str, str]]:
    """Every package of which a module lists the models: its framework, the module that has them, and the one that lists them."""
    functions = {name: (r.name, there, by) for r in frameworks().values() for name, there, by in r.functions if by}
    return {**{name: (framework, name, lister) for name, (framework, lister) in libraries().items()}, **functions}


def describe_missing(library: str, way: str = "add --environment {}") -> str:
    """What to say of a library that is not installed in the running interpreter; ``way`` asks for the environment of a name."""
    pin = f"{library}=="
    places = [place for place in environments().values() if not place.counters]  # those of a counter are for that
    name = next((place.name for place in places if any(r.startswith(pin) for r in place.requirements)), "")
    other = f", or {way.format(name)}, which uv makes" if name else ""
    return f"{library} is not installed in this environment: pip install {library}, and give the same command again{other}."


def cells_of(
    text: str, inputs: Sequence[Input] = (), paths: Sequence[str] = (), among: Sequence[str] = (), python: str = ""
) -> list[Cell]:
    """The cells that one word of the command line names; one definition is made in the frameworks ``among``, else in ``both``.

    ``python`` is the interpreter that has the packages, '' for the running one. Raises UsageError for one that names nothing.
    """
    framework, equals, rest = text.partition("=")
    if equals and framework not in makers():
        *others, last = makers()
        known = f"{', '.join(others)} or {last}"
        raise UsageError(f"{text!r} cannot be read: expected {known} before =, for a model in that framework alone.")
    chosen, where = ((framework,), rest) if equals else (among or both(), text)
    if not where.strip():
        raise UsageError(
            f"{text!r} names no model: give a factory (net:make), a package (timm), a pair of the zoo, or a list (models.toml)."
        )
    library, colon, _ = where.partition(":")
    if not equals and library in list_packages():
        chosen = list_packages()[library][:1]
    if not equals and (text == ZOO or text in zoo_names() or text.endswith(".py")):
        if inputs:
            raise UsageError(f"--input is for factories; {text} defines its own inputs.")
        return [pair(name) for name in (zoo_names() if text == ZOO else [text])]
    if colon:
        return [factory(dict.fromkeys(chosen, where), inputs=inputs)]
    if not python and "." not in where and not is_there(where, paths):
        if where in list_packages():
            raise UsageError(describe_missing(where))
        raise unknown("model", where, [*zoo_names(), ZOO, "keras.applications", *list_packages()])
    return package(where, chosen, inputs=inputs, paths=paths, python=python)


def pair(model: str, overrides: Mapping[str, str] | None = None, name: str = "") -> Cell:
    """A pair of the zoo, or one in a file. Raises UsageError for a model or a parameter that is not there."""
    path = pair_path(model)
    if model in zoo_names():
        try:
            resolve(load_pair(path), dict(overrides or {}))
        except PairError as error:
            raise UsageError(str(error)) from error
    return Cell(name or Path(path).stem, model=model if model in zoo_names() else path, overrides=dict(overrides or {}))


def factory(
    factories: Mapping[str, str],
    arguments: Mapping[str, Any] | None = None,
    inputs: Sequence[Input] = (),
    name: str = "",
) -> Cell:
    """Factories by framework. Raises UsageError for what is no ``module:function``."""
    held = {framework: user_models.factory(framework, where, "the factory") for framework, where in factories.items()}
    given = tuple((i.name, tuple(i.shape), i.dtype) for i in inputs)
    return Cell(name or user_models.name_of(held), factories=held, arguments=dict(arguments or {}), inputs=given)


def package(
    module: str,
    chosen: Sequence[str],
    arguments: Mapping[str, Any] | None = None,
    inputs: Sequence[Input] = (),
    without: Sequence[str] = (),
    paths: Sequence[str] = (),
    python: str = "",
) -> list[Cell]:
    """Every model of a package in the ``chosen`` frameworks: those that a module lists (``listed``), each with its own inputs
    unless ``inputs`` are given; else its public functions that can be called without arguments. Without those in ``without``.

    The package is imported in a process of its own. Raises UsageError if it cannot be, or has no such function.
    """
    framework, holder, lister = list_packages().get(module, ("", module, ""))
    if lister and tuple(chosen) == (framework,):
        names = _list_models(module, lister, paths, python)
    else:
        holder, names = module, dict.fromkeys(list_public(module, chosen, paths, python), ())
    check_names(f"model of {module}", without, names)
    if not names:
        raise UsageError(f"{module} has no public function that makes a model without arguments.")
    return [
        factory(dict.fromkeys(chosen, f"{holder}:{name}"), arguments, inputs or user_models.read_inputs(own))
        for name, own in names.items()
        if name not in without
    ]


def list_public(module: str, chosen: Sequence[str], paths: Sequence[str], python: str = "") -> list[str]:
    """Names of a module's public functions that can be called without arguments, sorted. Raises UsageError."""
    user_models.factory(chosen[0], f"{module}:make", "the factories in")  # raises for what is no module's name
    backend = next((backend for name in chosen if (backend := frameworks()[name].backend)), "")
    return list(_call(module, f"{__package__}.lists.functions:names", module, backend, paths=paths, python=python))


def _list_models(package: str, lister: str, paths: Sequence[str], python: str) -> dict[str, tuple[str, ...]]:
    """The models of a library, each with its inputs as ``--input`` takes them. Raises UsageError."""
    found = _call(package, f"{absolute(lister)}:names", paths=paths, python=python)
    return {one: () for one in found if isinstance(one, str)} or {name: tuple(inputs) for name, inputs in found}


def _call(module: str, function: str, *arguments: str, paths: Sequence[str], python: str) -> Any:
    """What a function lists, which imports that module in a process of its own. Raises UsageError."""
    try:
        (found,) = call_in_process(function, arguments, python=python, paths=[os.getcwd(), *paths], limit=LIMIT)
    except NoAnswer as error:
        raise UsageError(f"{brief(module)} cannot be listed: {error}.") from error
    return found
