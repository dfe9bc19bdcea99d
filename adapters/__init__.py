"""The registry of counters: each folder under ``counters/`` states its own. Python 3.6."""

import importlib
from typing import Dict, Iterable, Iterator

from ..core.counter import Counter

FOLDERS = ("tf_profiler", "thop", "fvcore", "flop_counter")
"""The folders under ``counters/``, in the order in which reports show their counters."""


def stated():
    # type: () -> Iterator[Counter]
    """Every counter, as its folder's ``COUNTERS`` states it. A source of counters outside this package belongs here."""
    for folder in FOLDERS:
        yield from importlib.import_module(".counters." + folder, __name__).COUNTERS


def registry(counters):
    # type: (Iterable[Counter]) -> Dict[str, Counter]
    """{name: counter}, in the order given. Raises ValueError for a name stated twice and for a recipe that is a default."""
    by_name = {}  # type: Dict[str, Counter]
    for counter in counters:
        if counter.name in by_name:
            raise ValueError("%s and %s both state %s" % (by_name[counter.name].module, counter.module, counter.name))
        if counter.default and counter.recipe:
            raise ValueError("%s states that %s, a recipe, runs unasked" % (counter.module, counter.name))
        by_name[counter.name] = counter
    return by_name


COUNTERS = registry(stated())
