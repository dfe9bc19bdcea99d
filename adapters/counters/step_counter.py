"""``StepCounter``: what a counter does that counts a program's own step beside the trace, in one execution (``reconcile.count``).

What records the step calls these methods, and is the ``recorder`` of ``ledger``.  The module that a counter's record names as
``nested`` makes one.
"""

from __future__ import annotations

from typing import Any

from ...core.records import Ledger
from ..shared.refusal import BeyondCounter


class StepCounter:
    """A counter that is told of every operator, sees the parts of whatever runs, and has no ledger once something is withheld."""

    failed: Exception | None = None
    """Why there is no ledger: the first reason counts."""

    def takes_apart(self, _func: Any) -> bool:
        """Whether it counts the operators that this one is made of, and not this one: PyTorch then runs them."""
        return False

    def counts(self, _func: Any) -> bool:
        """Whether it is told of an operator."""
        return True

    def saw(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """An op ran and was recorded."""
        raise NotImplementedError

    def skip_op(self) -> None:
        """An op ran that is no part of the step."""

    def withhold(self, why: str) -> None:
        """There is no ledger, for this reason: something ran that it would count otherwise, or not at all."""
        self.failed = self.failed or BeyondCounter(why)

    def enter(self, _others: bool) -> None:
        """The step begins; ``_others`` says that another context records around it."""

    def within(self) -> None:
        """Another context is entered in the step."""

    def leave(self) -> None:
        """The step is done."""

    def ledger(self, recorder: Any, device: str, versions: dict[str, str]) -> Ledger:
        """The ledger of the step. Raises BeyondCounter where there is none."""
        raise NotImplementedError
