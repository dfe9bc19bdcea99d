"""Which releases of a counter can have printed a figure: those between the ones that give another number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from packaging.version import InvalidVersion, Version

from ...core.records import Ledger
from ...core.registry import known_counters
from .grammar import Candidate, Source, candidates


def bounds(candidate: Candidate, sources: Sequence[Source]) -> tuple[str, str, str]:
    """The package, and the releases nearest to those that give this reading, before and after them, that give another number.

    An end is '' if no release was looked at there. Only data with the same parameters is compared. ('', '', '') if the reading is
    of no counter whose package is known, or if releases that give it lie on both sides of one that does not.
    """
    known = known_counters().get(candidate.counter)
    key = known.versions_key if known is not None else ""
    giving = [source for source in sources if _gives(candidate, source)]
    params = [source.collected.meta["params"] for source in giving]
    gives, others = set[Version](), set[Version]()
    for source in sources:
        if source.collected.meta["params"] in params:
            (gives if source in giving else others).update(_versions(source, candidate.counter, key))
    others -= gives
    if not gives or not others or any(min(gives) < version < max(gives) for version in others):
        return "", "", ""
    before = max((version for version in others if version < min(gives)), default=None)
    after = min((version for version in others if version > max(gives)), default=None)
    return key, str(before or ""), str(after or "")


def describe_releases(package: str, before: str, after: str) -> str:
    """``Of the releases of thop looked at, only those before 0.0.31.post2005241907 give it.``; '' without bounds."""
    if not before and not after:
        return ""
    if before and after:
        return f"Of the releases of {package} looked at, only those between {before} and {after} give it."
    side, other = ("after", before) if before else ("before", after)
    return f"Of the releases of {package} looked at, only those {side} {other} give it."


def _gives(candidate: Candidate, source: Source) -> bool:
    found = candidates([source])[0]
    return any((c.value, c.what, c.counter) == (candidate.value, candidate.what, candidate.counter) for c in found)


def _versions(source: Source, counter: str, key: str) -> Iterator[Version]:
    for ledger in source.collected.ledgers:
        if isinstance(ledger, Ledger) and ledger.counter == counter and key in ledger.versions:
            with suppress(InvalidVersion):
                yield Version(ledger.versions[key])
