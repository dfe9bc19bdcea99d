"""``cells_of``: turns the model, input and environment that each claim names into a cell of a sweep, or says why it cannot."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.atomic import safe
from ...core.errors import UsageError, check_names, short, unknown
from ...core.registry import frameworks, title
from ...launch import user_models
from ...launch.environments.definitions import CURRENT, Environment, packages_of
from ...launch.environments.interpreters import EnvironmentError_, uv_command
from ...launch.environments.provision import STAMP, folder_of
from ...model_zoo.loading import zoo_names
from ..factory_calls import parse_factory_call
from ..sweep import listing
from ..sweep.cells import Cell, in_environments, is_there
from .claims import Claim

CONFIGURATION = "Config"
"""The suffix of the names of transformers' configurations."""
BETWEEN = ";"
"""The separator of the inputs of a row."""


def cells_of(
    claims: list[Claim], known: Mapping[str, Environment], usual: Sequence[str] = (CURRENT,)
) -> tuple[dict[int, Cell], dict[int, str]]:
    """The cells of the claims by the number of their row, and the sentence of each row that has none. Rows with the same model,
    input and environment share a cell. A row without an environment runs in the first ``usual`` one that has its library, or
    here if they lack its model's framework."""
    found: dict[int, Cell] = {}
    wrong: dict[int, str] = {}
    named: dict[str, Cell] = {}
    for claim in claims:
        try:
            if claim.wrong:
                raise UsageError(claim.wrong)
            cell = _make_cell(claim, known, usual)
        except UsageError as error:
            wrong[claim.row] = str(error)
            continue
        there = named.setdefault(safe(cell.name).lower(), cell)
        if there != cell:  # another cell whose files would have this name
            digest = hashlib.sha256(repr(cell).encode()).hexdigest()[:8]
            cell = replace(cell, name=f"{cell.name} {digest}")
            named[safe(cell.name).lower()] = cell
        found[claim.row] = cell
    return found, wrong


def list_usual(names: Sequence[str], known: Mapping[str, Environment], say: Callable[[str], None]) -> list[str]:
    """These environments, and the current one in place of each that cannot be made here: ``say`` hears why."""
    usual = []
    for name in names:
        try:
            if not (name == CURRENT or known[name].interpreter or (folder_of(known[name]) / STAMP).is_file()):
                uv_command()
            usual.append(name)
        except EnvironmentError_ as error:
            say(f"{name} cannot be made: {error}. The rows that name no environment run in the current one.")
            usual.append(CURRENT)
    return usual


def _make_cell(claim: Claim, known: Mapping[str, Environment], usual: Sequence[str]) -> Cell:
    """The cell of one claim. Raises UsageError for a model, inputs or an environment that cannot be used."""
    places = (claim.environment,) if claim.environment else usual
    check_names("environment", places, known)
    inputs = user_models.read_inputs([text.strip() for text in claim.input.split(BETWEEN) if text.strip()])
    name = " ".join(part for part in (claim.model, claim.input) if part)
    model, arguments = parse_factory_call(claim.model)
    framework, where, made = _find_factory(model)
    arguments |= made
    place = places[0]
    if framework:
        place = _choose_place(model, framework, [known[name] for name in places], bool(claim.environment))
        cell = listing.factory({framework: where}, arguments, inputs, name)
        if framework not in known[place].frameworks:
            raise UsageError(f"the environment {place} has no {title(framework)}, which {short(claim.model)} needs.")
    else:
        if inputs or arguments:
            raise UsageError(f"{model} defines its own inputs: leave out its input and arguments.")
        cell = listing.pair(model, name=name)
    (placed,) = in_environments(cell, [known[place]])
    return placed


def _find_factory(model: str) -> tuple[str, str, dict[str, Any]]:
    """The framework and the ``module:function`` of a model, and what it is told besides; empty for a pair of the zoo. A class of
    transformers is made from its own configuration, in full size. Raises UsageError."""
    if model in zoo_names():
        return "", "", {}
    framework, equals, where = model.partition("=")
    if equals and framework in listing.makers():
        return framework, user_models.factory(framework, where, "the model"), {}
    library, colon, name = model.partition(":")
    made = {}
    if colon and library in listing.libraries() and not name.endswith(CONFIGURATION):
        model, made = f"{library}:{name}.config_class", {"architectures": name}
    for record in frameworks().values():
        known = (*(package for package, _, _ in record.functions), *(package for package, _ in record.libraries))
        if colon and library in known:
            return record.name, user_models.factory(record.name, model, "the model"), made
    if not colon:
        packages = [name for name in listing.list_packages() if name not in listing.libraries()]
        written = [f"{name}:{model}" for name in [name for name in packages if is_there(name, ())] or packages]
        error = unknown("model", model, zoo_names())
        raise UsageError(f"A model of a library is written {' or '.join(written)}: {error}")
    return listing.both()[-1], user_models.factory(listing.both()[-1], model, "the model"), {}


def _choose_place(model: str, framework: str, places: Sequence[Environment], named: bool) -> str:
    """The name of the first of these places that has the library of the model, or else may have it. A row without an environment
    runs here if no place has its framework. Raises UsageError for a library that none has."""
    library = model.partition(":")[0]
    fit = [place for place in places if framework in place.frameworks]
    if not fit or library not in listing.list_packages():
        return (fit or places)[0].name if fit or named else CURRENT
    sure = [
        p
        for p in fit
        if library in packages_of(p.requirements) or (CURRENT in (p.name, p.over) and is_there(library, ()))
    ]
    maybe = [place for place in fit if CURRENT not in (place.name, place.over)]
    if not (sure or maybe):
        raise UsageError(listing.describe_missing(library, "write {} in its column environment"))
    return (sure or maybe)[0].name
