"""The releases of thop whose rules differ, in the order in which they came out, and the book that tells them apart."""

from __future__ import annotations

from packaging.version import Version

from ..rulebook import RuleBook
from . import COUNTERS

UNDATED = ((Version("0.1.1"), "2207130030"), (Version("0.1"), "2206102148"))
"""The dates of the first releases of a number, for a number without a date; before 0.1, the order starts with it."""


def by_date(version: Version) -> Version:
    """The place of a release in the order in which thop's releases came out: 0.0.4 and 0.0.5 came after most of 0.0.31.

    Its date follows its number (``0.0.31.post2005241907``), up to the minute or, once, the day.
    """
    date = "" if version.post is None else str(version.post)
    if len(date) in (6, 10):
        return Version(date.ljust(10, "9"))
    return Version(next((first for release, first in UNDATED if version >= release), "0"))


BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {
        "P": "thop/profile.py",
        "H": "thop/vision/basic_hooks.py",
        "C": "thop/vision/calc_func.py",
        "RN": "thop/rnn_hooks.py",
        "OLD": "thop/vision/basic_hooks.py (0.0.31; count_hooks.py before)",
        "COUNTER": "thop/vision/counter.py (0.0.5.post2206100352)",
        "OLDEST": "thop/count_hooks.py (0.0.31.post2001170342)",
        "FIRST": "thop/count_hooks.py (0.0.31.post1909230639)",
        "SUM": "thop/profile.py (0.0.31.post2001170342)",
    },
    place=by_date,
)
# Every release on the index was read, from 0.0.23.post1908061459 on: the hooks of those before set a module's count and do
# not add to it. Ranges are by date (by_date): 0.0.5.post2206102148 and 0.1.0.post2206102148 are the same files.
FLOPS = "<0.0.31.post2004070130"  # Linear in FLOPs, norms by 4 until January 2020, float32
MACS = ">=0.0.31.post2004070130"
FIRST = "<0.0.31.post2001170342"
SINCE_RNN = ">=0.0.31.post2005241907"
OLD = "<0.1"
OLD_SINCE_2001 = ">=0.0.31.post2001170342,<0.1"
OLD_SINCE_RNN = ">=0.0.31.post2005241907,<0.1"
MORE_NORMS = ">=0.0.5.post2206100352,<0.1"
SINCE_MORE_NORMS = ">=0.0.5.post2206100352"
NEW = ">=0.1"
