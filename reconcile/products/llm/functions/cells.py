"""Functions of one's own beside what ran of a configuration at one length, without any built-in formula: a Cell."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ....align.alignment import Alignment
from ....core.conventions import MATMUL, Conventions
from ....core.errors import UsageError
from ....core.number_format import number
from ....engine.traces import trace_result
from ..comparison import Quote
from .explain import Functions, explain_functions, refuse_functions


class Verdict(enum.Enum):
    """What a function is at one configuration and length."""

    RIGHT = "right"
    WRONG = "wrong"
    UNEXPLAINED = "unexplained"
    REFUSES = "refuses"


@dataclass(frozen=True, slots=True)
class Cell:
    """Functions beside what ran.

    Attributes:
        configuration: The name of the configuration.
        batch: Sequences of the step.
        seq: Tokens of each.
        training: Whether the step is a training step.
        ran: FLOPs of the step; None if they are not known.
        quotes: What each function counts.
        reason: Why they are not known; '' if they are.
    """

    configuration: str
    batch: int
    seq: int
    training: bool
    ran: int | None
    quotes: tuple[Quote, ...]
    reason: str = ""

    @property
    def step(self) -> str:
        """``a training step of 1 x 2,048 tokens``."""
        return f"a {'training step' if self.training else 'forward pass'} of {self.batch} x {number(self.seq)} tokens"


def judge(quote: Quote) -> Verdict:
    """What a function is: one whose differences offset each other is wrong."""
    if quote.step is None:
        return Verdict.REFUSES
    if quote.residual:
        return Verdict.UNEXPLAINED
    return Verdict.WRONG if quote.causes else Verdict.RIGHT


def fill_cell(name: str, asked: Functions) -> Cell:
    """Explain functions beside what runs. Nothing is traced if all of them refuse the configuration."""
    refused = refuse_functions(asked)
    if len(refused) == len(asked.functions):
        return Cell(name, asked.batch, asked.seq, asked.training, None, refused, refused[0].reason)
    try:
        own = asked.take(asked.settings, asked.batch, asked.seq)
        found = trace_result(own, Alignment(()), Conventions(MATMUL, {MATMUL.name: MATMUL}))
        ran = found.totals.get(MATMUL.name)
        quotes = tuple(explain_functions(asked, own)) if ran is not None else ()
        reason = "" if ran is not None else found.reason
    except UsageError as error:
        ran, quotes, reason = None, (), str(error)
    return Cell(name, asked.batch, asked.seq, asked.training, ran, quotes, reason)
