"""Exceptions for what cannot be counted: FactoryError ends a run; CannotCount, BeyondCounter end one counter.

OutOfMemory is for a model that is too large; ``reason_of`` says in a line why a task failed. Python 3.6.
"""

from ...core.message import text_of


class FactoryError(Exception):
    """The user's input cannot be used; the message is one sentence for the user."""


class CannotCount(RuntimeError):
    """A counter or a tracer has no number for this model; the message is half a sentence that says why."""


class BeyondCounter(CannotCount):
    """A counter cannot count such a model, though the model runs: the message says why and what to do."""


class OutOfMemory(MemoryError):
    """A model does not fit into memory; the message says how much it needs, how much is free, and what to do."""


def reason_of(error: BaseException) -> str:
    """Why a task failed, in one line: the message of an exception of this module, the type and the message of any other."""
    lines = text_of(error).strip().splitlines()
    message = lines[0][:300] if lines else ""
    ours = isinstance(error, (FactoryError, CannotCount, OutOfMemory)) and message
    return message if ours else f"{type(error).__name__}: {message}"
