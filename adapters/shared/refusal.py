"""Errors about the user's input: those that end a run before it begins, and one that ends a counter alone.  Python 3.6."""


class FactoryError(Exception):
    """The user's input cannot be used; the message is one sentence for the user."""


class CannotCount(Exception):
    """A counter cannot count such a model, though the model runs; the message says why and what to do, without a full stop."""


class OutOfMemory(MemoryError):
    """A model does not fit into memory; the message says how much it needs, how much is free, and what to do."""
