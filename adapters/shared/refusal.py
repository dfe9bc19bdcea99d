"""What ends a run before it begins: something is wrong with what somebody gave.  Python 3.6."""


class FactoryError(Exception):
    """What somebody gave cannot be used; the message is one sentence for them."""
