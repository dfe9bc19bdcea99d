"""Base of pairs for model objects in a process that goes on afterwards; contexts that restore random states and hide warnings.

For ``reconcile.run(torch=model)`` and the pytest fixture (launch/in_process.py), and for steps that are counted before they run
(products/steps/pending_step.py).
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..adapters.shared.refusal import FactoryError
from ..core.protocol import WorkerRequest
from .factory import FactoryPair
from .user_code import describe_user_error


class AtHand(FactoryPair):
    """A model object as a pair: what its code raises becomes a sentence, and no event is sent to a runner."""

    def __init__(self, request: WorkerRequest, adapter: Any, model: Any) -> None:
        super().__init__(request, adapter)
        self.model = model

    def _call(self, function: Callable[[], Any], action: str, declined: type[FactoryError] = FactoryError) -> Any:
        try:
            return function()
        except Exception as error:
            raise declined(f"{action} {describe_user_error(error)}.") from error


@contextmanager
def same_numbers() -> Iterator[None]:
    """Restore the random states of Python and numpy at the end of this context."""
    numbers, arrays = random.getstate(), sys.modules.get("numpy.random")
    held = arrays.get_state() if arrays is not None else None
    try:
        yield
    finally:
        random.setstate(numbers)
        if arrays is not None:
            arrays.set_state(held)


@contextmanager
def quietly() -> Iterator[None]:
    """Within this context, hide warnings: old counters raise some."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
