"""Validates a run before any worker starts: resolves its conventions, formulas, counters and model from a ``RunRequest``.

Every fault is a UsageError. The runner, the commands, ``reconcile.run`` and products call these functions.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.conventions import Conventions, conventions_of
from ..core.errors import UsageError, brief, check_names, reason, unknown
from ..core.registry import frameworks, known_counters, list_default_counters, title
from ..core.user_files import check_regular
from ..model_zoo import loading
from ..model_zoo.pair import PairError
from ..work import load, restore_registry
from . import user_models
from .environments.interpreters import python_path
from .request import RunRequest

MODELS_PER_MAPPING = 2
"""The number of models whose layers a mapping file (--mapping) pairs."""


def check_one_model(
    model: str | None,
    factories: Mapping[str, str],
    overrides: Mapping[str, str],
    inputs: object,
    mapped: str = "",
    example: str | None = None,
) -> None:
    """Raise UsageError unless exactly one model is named, a pair, or factories or files by framework, with options that fit it.

    ``inputs`` are those of --input, ``example`` the function of --args, ``mapped`` the option that names a mapping file: it
    needs two models of the user's own.
    """
    if model is None and not factories:
        raise UsageError(
            "name a model: --model NAME (see `reconcile explain models`), or MODULE:FUNCTION with "
            f"{option_names(' or ')} for your own model."
        )
    if model is not None and factories:
        raise UsageError(f"--model names a pair, and {option_names()} name your own model; give one or the other.")
    if example and (model is not None or inputs):
        raise UsageError(
            f"--args is for {option_names()}; a pair defines its own inputs (see --set)."
            if model is not None
            else "--args returns what the model is called with, and --input gives shapes for it: give one of them."
        )
    if model is not None and inputs:
        raise UsageError(f"--input is for {option_names()}; a pair defines its own inputs (see --set).")
    if mapped and len([name for name in factories if frameworks()[name].aligned]) != MODELS_PER_MAPPING:
        raise UsageError(f"{mapped} is for two models of your own: give two of {option_names()}.")
    if factories and overrides:
        raise UsageError("--set is for the parameters of a pair; your own factory takes none.")


def option_names(between: str = " and ") -> str:
    """The options of the frameworks whose models are made by functions: ``--torch, --tf and --jax``."""
    records = sorted(frameworks().values(), key=lambda record: record.order)
    *others, last = [f"--{f.name}" for f in records if f.factories]
    return between.join([", ".join(others), last]) if others else last


@contextmanager
def prepare_conventions(request: RunRequest) -> Iterator[Conventions]:
    """The conventions of the request, and within this context its formulas. Raises UsageError like ``conventions_of`` and
    ``formulas_of``."""
    conventions = conventions_of(request.convention, request.convention_files)
    with formulas_of(request):
        yield conventions


@contextmanager
def formulas_of(request: RunRequest) -> Iterator[None]:
    """Within this context, the user's work formulas (--formulas) are registered beside the tool's own. Raises UsageError for a
    file of formulas that cannot be used."""
    if not request.formulas:
        yield
        return
    from ..work.formula_files import load_formulas

    load()  # a user's formula is compared with the tool's own, of whatever framework
    with restore_registry():
        load_formulas(request.formulas, request.timeout)
        yield


def model_fields_by_framework(request: RunRequest) -> dict[str, dict[str, Any]]:
    """The fields of each framework's request that name the model: a pair file with its parameters, or a user's own model.
    Raises UsageError for a pair that is not there, and for parameters that it does not have."""
    paths = python_path()
    if request.factories:
        models = user_models.models(
            request.factories, request.inputs, request.files, request.arguments, request.example
        )
        return {name: {"model": model, "paths": (*request.paths, *paths)} for name, model in models.items()}
    file = checked_pair_path(request.model)
    in_zoo = request.model in loading.zoo_names()
    if in_zoo and request.overrides:
        try:
            loading.resolve(loading.load_pair(file), dict(request.overrides))
        except PairError as error:
            raise UsageError(str(error)) from error
    folders = () if in_zoo else (os.path.dirname(file), *paths)
    return {name: {"pair": file, "overrides": dict(request.overrides), "paths": folders} for name in frameworks()}


def choose_counters(request: RunRequest) -> tuple[str, ...]:
    """The counters of a run, by name. Raises UsageError for one that is unknown or does not fit the model or the pass."""
    counters = _list_requested(request)
    check_cached(request)
    if not request.training:
        return counters
    untrained = next((title(name) for name in request.factories if not frameworks()[name].trains), "")
    if untrained:
        raise UsageError(
            f"--pass training does not work with {untrained}: a training step of such a model cannot be traced."
        )
    other = next((name for name in counters if known_counters()[name].recipe), "")
    if other:
        raise UsageError(
            f"{other} builds the model in another way, and a training step of that model cannot be traced."
        )
    if request.files:
        raise UsageError("--pass training needs a model that code makes (MODULE:FUNCTION), not a model file.")
    return counters


def check_cached(request: RunRequest, models: Iterable[str] = ()) -> None:
    """Raise UsageError for --pass prefill or decode if these models, or the request's own, cannot be called with a KV cache."""
    if request.context is None:
        return
    models = tuple(models or request.factories)
    if request.files or not models or any(not frameworks()[name].decodes for name in models):
        able = ", ".join(f"--{record.name} MODULE:FUNCTION" for record in frameworks().values() if record.decodes)
        raise UsageError(
            f"--pass prefill and --pass decode need a language model that code makes, and only that: {able}."
        )


def _list_requested(request: RunRequest) -> tuple[str, ...]:
    if request.factories:
        return user_models.counters_of(request.factories, request.counters, request.files)
    check_names("counter", request.counters, known_counters())
    if not request.counters:
        here = {name for name in frameworks() if not request.python and _is_installed(name)}
        return tuple(
            name
            for name, c in known_counters().items()
            if c.default or (c.framework in here and name in list_default_counters(c.framework))
        )
    chosen = tuple(name for name in known_counters() if name in request.counters)
    recipes = {(known_counters()[name].framework, known_counters()[name].recipe) for name in chosen}
    if len(recipes) > len({framework for framework, _ in recipes}):
        alone = ", ".join(name for name in chosen if known_counters()[name].recipe)
        raise UsageError(f"{alone} builds the model in another way and has its own trace: run it without the others.")
    return chosen


def _is_installed(framework: str) -> bool:
    """Whether the framework is installed here. One without default counters is run for a pair only if it is installed."""
    return importlib.util.find_spec(frameworks()[framework].package) is not None


def pair_path(model: str) -> str:
    """Path of the pair file that a model's name or path stands for. Raises UsageError, with the nearest names."""
    path = loading.pair_path(model)
    try:
        check_regular(Path(path))
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        if not model.endswith(".py") and (os.sep not in model or isinstance(error, FileNotFoundError)):
            if os.path.exists(f"{model}.py"):
                raise UsageError(
                    f"the zoo has no model {brief(model)}. For your file, write ./{brief(model)}.py."
                ) from error
            raise unknown("model", model, loading.zoo_names()) from error
        if isinstance(error, FileNotFoundError):
            raise UsageError(f"there is no pair file {brief(model)}.") from error
        raise UsageError(f"cannot read the pair file {brief(model)}: {reason(error)}.") from error
    return path


def checked_pair_path(model: str) -> str:
    """As ``pair_path``. Raises UsageError as well for a file that defines no PAIR, and names the option for a model in it."""
    path = pair_path(model)
    text = Path(path).read_bytes()
    if b"PAIR" in text or re.search(rb"import +\*", text):
        return path
    made = re.search(rb"^(?:class|def) +(\w+)", text, re.MULTILINE)
    where = f"{Path(path).stem}:{made[1].decode('ascii', 'replace') if made else 'make_model'}"
    raise UsageError(
        f"{brief(model)} defines no PAIR, so it is no pair file. Name a model of your own with its class or function and its "
        f"input: {option_names(' or ')} {where} --input SHAPE."
    )
