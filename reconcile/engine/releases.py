"""Rules state the releases that they were checked on; for other releases, each entry says whether the rules still hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.version import InvalidVersion, Version

from ..core.counter import Counter
from ..core.records import Entry, Ledger
from ..core.registry import known_counters
from ..core.results import Mismatch

SHOWN = 3
"""Ops that differ, in a sentence; the residuals have all of them."""


def notes(ledger: Ledger, mismatches: Iterable[Mismatch], uncovered: Mapping[str, Entry]) -> tuple[str, ...]:
    """``NAME 2.16.0 is newer than the releases that its rules were checked on (2.1 to 2.15.0); 13 of 14 ops agree; ...``.

    Nothing for a release between those.
    """
    counter = known_counters()[ledger.counter]
    version = ledger.versions.get(counter.versions_key, "")
    where = beyond(counter, version)
    if not where:
        return ()
    off: dict[str, list[int]] = {}
    broken = [(m.op, m.expected, m.reported) for m in mismatches]
    for op, expected, reported in [*broken, *((entry.op, 0, entry.value) for entry in uncovered.values())]:
        held = off.setdefault(op, [0, 0])
        held[0] += expected
        held[1] += reported
    ops = {entry.op for entry in ledger.entries} | off.keys()
    agree = f"all {len(ops)} ops agree" if not off else f"{len(ops) - len(off)} of {len(ops)} ops agree"
    differ = [
        f"{op} differs: expected {expected:,}, reported {reported:,} {ledger.unit}"
        for op, (expected, reported) in list(off.items())[:SHOWN]
    ]
    more = [f"and {len(off) - SHOWN} more"] if len(off) > SHOWN else []
    return ("; ".join([f"{counter.family} {version} is {where}", agree, *differ, *more]),)


def beyond(counter: Counter, version: str) -> str:
    """``newer than the releases that its rules were checked on (2.1 to 2.15.0)``; '' for one between those, and if the
    counter does not state them."""
    first, last = counter.checked
    try:
        here = Version(Version(version).public)
    except InvalidVersion:
        return ""
    span = f"{first} to {last}" if first else f"up to {last}"
    if last and here > Version(last):
        return f"newer than the releases that its rules were checked on ({span})"
    if first and here < Version(first):
        return f"older than the releases that its rules were checked on ({span})"
    return ""
