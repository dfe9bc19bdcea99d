"""No search for garbage while there is none.  Python 3.6 and standard library only."""

import gc
from contextlib import contextmanager
from typing import Iterator


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within this block Python does not collect garbage: the thousands of new ops of a graph, or records of a run, contain none,
    and the search takes as long as making them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
