"""What a run takes: its counters, and its models as each worker gets them. Both are checked before a worker starts."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..core.errors import UsageError, brief, reason, unknown
from ..core.registry import frameworks, known_counters, title, unasked
from ..core.user_files import regular
from ..model_zoo import loading
from ..model_zoo.pair import PairError
from . import user_models
from .environments.interpreters import python_path
from .request import RunRequest


def find_models(request: RunRequest) -> dict[str, dict[str, Any]]:
    """The fields of each framework's request that name the model: a pair file with its parameters, or a user's own model."""
    paths = python_path()
    if request.factories:
        models = user_models.models(
            request.factories, request.inputs, request.files, request.arguments, request.example
        )
        return {name: {"model": model, "paths": (*request.paths, *paths)} for name, model in models.items()}
    file = pair_of(request.model)
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
    counters = _named(request)
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
    """Raise UsageError if a call with a cache was asked for and these models, or the request's own, have none."""
    if request.context is None:
        return
    models = tuple(models or request.factories)
    if request.files or not models or any(not frameworks()[name].decodes for name in models):
        able = ", ".join(f"--{record.name} MODULE:FUNCTION" for record in frameworks().values() if record.decodes)
        raise UsageError(
            f"--pass prefill and --pass decode need a language model that code makes, and only that: {able}."
        )


def _named(request: RunRequest) -> tuple[str, ...]:
    if request.factories:
        return user_models.counters_of(request.factories, request.counters, request.files)
    for name in request.counters:
        if name not in known_counters():
            raise unknown("counter", name, known_counters())
    if not request.counters:
        here = {name for name in frameworks() if not request.python and _installed(name)}
        return tuple(
            name
            for name, c in known_counters().items()
            if c.default or (c.framework in here and name in unasked(c.framework))
        )
    chosen = tuple(name for name in known_counters() if name in request.counters)
    recipes = {(known_counters()[name].framework, known_counters()[name].recipe) for name in chosen}
    if len(recipes) > len({framework for framework, _ in recipes}):
        alone = ", ".join(name for name in chosen if known_counters()[name].recipe)
        raise UsageError(f"{alone} builds the model in another way and has its own trace: run it without the others.")
    return chosen


def _installed(framework: str) -> bool:
    """Whether the running interpreter has it. A framework whose counters are no defaults joins a pair only then."""
    return importlib.util.find_spec(frameworks()[framework].package) is not None


def pair_file(model: str) -> str:
    """Path of the pair file that a model's name or path stands for. Raises UsageError, with the nearest names."""
    path = loading.pair_path(model)
    try:
        regular(Path(path))
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        if not model.endswith(".py") and (os.sep not in model or isinstance(error, FileNotFoundError)):
            raise unknown("model", model, loading.zoo_names()) from error
        if isinstance(error, FileNotFoundError):
            raise UsageError(f"there is no pair file {brief(model)}.") from error
        raise UsageError(f"cannot read the pair file {brief(model)}: {reason(error)}.") from error
    return path


def pair_of(model: str) -> str:
    """The same. Raises UsageError as well for a file that is a model of the user's own and no pair, with the option for it."""
    path = pair_file(model)
    text = Path(path).read_bytes()
    if b"PAIR" in text or re.search(rb"import +\*", text):
        return path
    made = re.search(rb"^(?:class|def) +(\w+)", text, re.MULTILINE)
    where = f"{Path(path).stem}:{made[1].decode('ascii', 'replace') if made else 'make_model'}"
    raise UsageError(
        f"{brief(model)} defines no PAIR, so it is no pair file. Name a model of your own with its class or function and its "
        f"input: {user_models.option_names(' or ')} {where} --input SHAPE."
    )
