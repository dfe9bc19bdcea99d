"""Which releases of a counter can have printed a figure: those between the ones that give another number."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from ..core.records import Ledger
from ..core.registry import known_counters
from .grammar import Candidate, Source, candidates


def bounds(candidate: Candidate, sources: Sequence[Source]) -> tuple[str, str, str]:
    """The package, and the releases nearest to those that give this reading, before and after them, that give another number.

    An end is '' if no release was looked at there. Only data with the same parameters is compared. ('', '', '') if the reading is
    of no counter whose package is known, or if releases that give it lie on both sides of one that does not.
    """
    known = known_counters().get(candidate.counter)
    key = known.versions_key if known is not None else ""
    gives, others = set[Version](), set[Version]()
    params = [s.collected.meta["params"] for s in sources if _gives(candidate, s)]
    for source in sources:
        if source.collected.meta["params"] not in params:
            continue
        for ledger in source.collected.ledgers:
            if isinstance(ledger, Ledger) and ledger.counter == candidate.counter and key in ledger.versions:
                try:
                    version = Version(ledger.versions[key])
                except InvalidVersion:
                    continue
                (gives if _gives(candidate, source) else others).add(version)
    others -= gives
    if not gives or not others or any(min(gives) < version < max(gives) for version in others):
        return "", "", ""
    before = max((version for version in others if version < min(gives)), default=None)
    after = min((version for version in others if version > max(gives)), default=None)
    return key, str(before or ""), str(after or "")


def said(package: str, before: str, after: str) -> str:
    """``It comes from a release of thop before 0.0.31.post2005241907, which gives another number.``; '' without bounds."""
    if not before and not after:
        return ""
    if before and after:
        return f"It comes from a release of {package} between {before} and {after}, which give other numbers."
    side, other = ("after", before) if before else ("before", after)
    return f"It comes from a release of {package} {side} {other}, which gives another number."


def _gives(candidate: Candidate, source: Source) -> bool:
    found = candidates([source])[0]
    return any((c.value, c.what, c.counter) == (candidate.value, candidate.what, candidate.counter) for c in found)
