"""The claims of ``reconcile audit torchvision`` (FLOPs that its weights state) and ``audit zoo`` (published numbers of pairs)."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.errors import UsageError
from ...core.framework import absolute
from ...core.registry import frameworks
from ...core.table import format_csv
from ...launch.environments.definitions import Environment, packages_of
from ...launch.environments.interpreters import EnvironmentError_
from ...launch.environments.provision import ensure
from ...model_zoo.loading import load_pair, pair_path, zoo_names
from ..function_call import NoAnswer, call_in_process
from .claim_cells import BETWEEN
from .claims import COLUMNS

LIBRARY = "torchvision"
LIMIT = 300.0
"""Seconds that importing the library may take."""


def torchvision(known: Mapping[str, Environment]) -> str:
    """The figures that torchvision's weights state, as the text of a table of claims: in the first environment that installs it.

    They are labelled GFLOPS on the pages that are made of them. Raises UsageError where the environment has no torchvision.
    """
    environment = next(each for each in known.values() if LIBRARY in packages_of(each.requirements))
    lists = next(lists for record in frameworks().values() for name, _, lists in record.functions if name == LIBRARY)
    try:
        python = str(ensure(environment))
        ((version, rows),) = call_in_process(f"{absolute(lists)}:figures", (), python=python, limit=LIMIT)
    except (EnvironmentError_, NoAnswer) as error:
        raise UsageError(f"torchvision's figures cannot be read: {error}.") from error
    source = f"torchvision {version.partition('+')[0]}"
    claims = [
        (f"torchvision:{made}", BETWEEN.join(inputs), figure, "GFLOPS", f"{source}, {weights}", "", environment.name)
        for made, inputs, figure, weights in rows
    ]
    return format_csv([COLUMNS, *claims])


def zoo() -> str:
    """The figures that the pairs of the zoo list as published, as the text of a table of claims."""
    pairs = [load_pair(pair_path(name)) for name in zoo_names()]
    claims = [
        (pair.name, "", text, "", f"{where}: {what}", "", "") for pair in pairs for text, what, where in pair.published
    ]
    return format_csv([COLUMNS, *claims])
