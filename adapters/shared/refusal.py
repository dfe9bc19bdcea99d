"""Errors that end a run before it begins, because the user's input is wrong.  Python 3.6."""


class FactoryError(Exception):
    """The user's input cannot be used; the message is one sentence for the user."""


class OutOfMemory(MemoryError):
    """A model does not fit into memory; the message says how much it needs, how much is free, and what to do."""
