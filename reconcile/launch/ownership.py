"""Finds the framework of a model object by the package of its class, and rejects a model given as another framework's.

More than one framework may be able to call the same object. Used by ``reconcile.run(torch=model)`` and the pytest fixture.
"""

from __future__ import annotations

import sys

from ..adapters.shared.ownership import is_function
from ..core.errors import UsageError
from ..core.framework import Framework, adapter_of
from ..core.registry import frameworks
from ..worker.user_code import kind


def owner_of(value: object) -> Framework | None:
    """The imported framework that a value's class or function comes from; None for a value of no framework."""
    return next((record for record in list_imported() if adapter_of(record).owns(value)), None)


def check_owner(record: Framework, model: object) -> None:
    """Raise UsageError for an object of another framework. A function of another one may be made for this one."""
    owner = None if is_function(model) else owner_of(model)
    if owner is not None and owner != record:
        raise UsageError(
            f"{kind(model)} of {owner.title} was given for a model in {record.title}: give a {record.model}, or a function "
            "that makes one."
        )


def list_imported() -> list[Framework]:
    """The frameworks that this process has imported."""
    return [record for record in frameworks().values() if sys.modules.get(record.package) is not None]
