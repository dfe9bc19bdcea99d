"""``cells_of``: turns the model, input and environment that each claim names into a cell of a sweep, or says why it cannot."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...core.atomic import safe
from ...core.errors import UsageError, check_names, short, unknown
from ...core.registry import frameworks, title
from ...launch import user_models
from ...launch.environments.definitions import CURRENT, Environment
from ...model_zoo.loading import zoo_names
from ..sweep import listing
from ..sweep.cells import Cell, in_environments, is_there
from .claims import Claim

CONFIGURATION = "Config"
"""The suffix of the names of transformers' configurations."""
BETWEEN = ";"
"""The separator of the inputs of a row."""


def cells_of(
    claims: list[Claim], known: Mapping[str, Environment], usual: str = CURRENT
) -> tuple[dict[int, Cell], dict[int, str]]:
    """The cells of the claims by the number of their row, and the sentence of each row that has none. Rows with the same model,
    input and environment share a cell. A row without an environment runs in the ``usual`` one, or here if that lacks its model's
    framework."""
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


def _make_cell(claim: Claim, known: Mapping[str, Environment], usual: str) -> Cell:
    """The cell of one claim. Raises UsageError for a model, inputs or an environment that cannot be used."""
    place = claim.environment or usual
    check_names("environment", (place,), known)
    inputs = user_models.read_inputs([text.strip() for text in claim.input.split(BETWEEN) if text.strip()])
    name = " ".join(part for part in (claim.model, claim.input) if part)
    model, arguments = _parse_factory_call(claim.model)
    framework, where = _find_factory(model)
    if framework:
        if framework not in known[place].frameworks and not claim.environment:
            place = CURRENT
        _check_library(model, place)
        cell = listing.factory({framework: where}, arguments, inputs, name)
        if framework not in known[place].frameworks:
            raise UsageError(f"the environment {place} has no {title(framework)}, which {short(claim.model)} needs.")
    else:
        if inputs or arguments:
            raise UsageError(f"{model} defines its own inputs: leave out its input and arguments.")
        cell = listing.pair(model, name=name)
    (placed,) = in_environments(cell, [known[place]])
    return placed


def _parse_factory_call(text: str) -> tuple[str, dict[str, Any]]:
    """The model and the arguments of its factory: ``timm:NAME(img_size=256)``. Raises UsageError for what is no such text."""
    model, bracket, rest = text.partition("(")
    if not bracket:
        return text, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        if not all(keyword.arg for keyword in call.keywords):
            raise ValueError
        arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        plain = all(isinstance(value, (str, int, float, bool, type(None))) for value in arguments.values())
        json.dumps(arguments, allow_nan=False)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        plain = False
    if not plain:
        raise UsageError(
            f"{short(text)} cannot be read: write arguments as in timm:NAME(img_size=256), each a number or a text."
        )
    return model.strip(), arguments


def _find_factory(model: str) -> tuple[str, str]:
    """The framework and the ``module:function`` of a model; ('', '') for a pair of the zoo. Raises UsageError."""
    if model in zoo_names():
        return "", ""
    framework, equals, where = model.partition("=")
    if equals and framework in listing.makers():
        return framework, user_models.factory(framework, where, "the model")
    library, colon, name = model.partition(":")
    if colon and library in listing.libraries() and not name.endswith(CONFIGURATION):
        raise UsageError(
            f"{short(model)} is not a configuration class of {library}: write {library}:NAMEConfig(...) with its values where "
            "that library has such classes, or name a function that makes the published model, MODULE:FUNCTION."
        )
    for record in frameworks().values():
        known = (*(package for package, _, _ in record.functions), *(package for package, _ in record.libraries))
        if colon and library in known:
            return record.name, user_models.factory(record.name, model, "the model")
    if not colon:
        raise unknown("model", model, zoo_names())
    return listing.both()[-1], user_models.factory(listing.both()[-1], model, "the model")


def _check_library(model: str, place: str) -> None:
    """Raise UsageError for a library that the running interpreter lacks, where its models are to be made."""
    library = model.partition(":")[0]
    if place == CURRENT and library in listing.list_packages() and not is_there(library, ()):
        raise UsageError(listing.describe_missing(library))
