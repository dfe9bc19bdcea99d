"""What ends a run before it begins: something is wrong with what somebody gave.  Python 3.6."""


class FactoryError(Exception):
    """What somebody gave cannot be used; the message is one sentence for them."""


class OutOfMemory(MemoryError):
    """A model does not fit into memory; the message says how much it takes, how much there is, and what can be done."""
