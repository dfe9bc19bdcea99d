"""What moved between two takes of one model: frozen records that ``compare.py`` makes and the faces show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.causes import Cause
from ..core.results import Adjustment, Residual
from ..engine.reconcile import Missing
from ..engine.traces import trace_name
from .match import Held


@dataclass(frozen=True, slots=True)
class Change:
    """One amount that moved; ``before`` or ``after`` is None where the entry is on one side only."""

    layer: str
    op: str
    before: Held | None
    after: Held | None


@dataclass(frozen=True, slots=True)
class CauseChange:
    """A cause line from a counter to the work that ran, in FLOPs under the convention; 0 where there is no such line."""

    cause: Cause
    layer: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Basis:
    """By which rules a layer was counted, or why it was not: what holds on one side only."""

    layer: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CounterDrift:
    """One counter's two ledgers. Totals are in the counter's own units, everything else says so.

    ``lines`` and ``residual`` reconcile both normalised totals: before + lines + residual = after.  ``unknown`` says why
    causes could not be derived (then there are no causes, lines or residual).  ``open``: what the rules leave unexplained in
    one of the two ledgers only, before and after: an entry that is not what the rules of its version give.
    """

    counter: str
    framework: str
    units: tuple[str, str]
    versions: tuple[Mapping[str, str], Mapping[str, str]]
    totals: tuple[int, int]
    normalised: tuple[int, int]
    changes: tuple[Change, ...]
    renamed: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    causes: tuple[CauseChange, ...] = ()
    basis: tuple[Basis, ...] = ()
    open: tuple[tuple[Residual, ...], tuple[Residual, ...]] = ((), ())
    lines: tuple[Adjustment, ...] = ()
    residual: int | None = None
    unknown: str = ""

    @property
    def moved(self) -> bool:
        """Whether anything but names is different."""
        return bool(self.changes or self.causes) or self.totals[0] != self.totals[1] or self.units[0] != self.units[1]


@dataclass(frozen=True, slots=True)
class TraceDrift:
    """One framework's two traces: ops whose work moved."""

    framework: str
    versions: tuple[Mapping[str, str], Mapping[str, str]]
    changes: tuple[Change, ...]
    renamed: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """``trace@tf``."""
        return trace_name(self.framework)

    @property
    def moved(self) -> bool:
        """Whether the work that runs is different."""
        return bool(self.changes)


@dataclass(frozen=True, slots=True)
class Drift:
    """All that differs between two takes. ``failed``: what there was before and could not be had now."""

    model: str
    convention: str
    counters: tuple[CounterDrift, ...]
    traces: tuple[TraceDrift, ...]
    failed: tuple[Missing, ...]
    notes: tuple[str, ...]

    @property
    def moved(self) -> bool:
        """Whether a ledger or a trace moved."""
        return any(c.moved for c in self.counters) or any(t.moved for t in self.traces)

    @property
    def versions(self) -> tuple[dict[str, str], dict[str, str]]:
        """Package versions before and after."""
        before: dict[str, str] = {}
        after: dict[str, str] = {}
        for old, new in [*(t.versions for t in self.traces), *(c.versions for c in self.counters)]:
            before.update(old)
            after.update(new)
        return dict(sorted(before.items())), dict(sorted(after.items()))

    @property
    def renamed(self) -> int:
        """How many nodes have another name."""
        return sum(len(t.renamed) for t in self.traces) + sum(len(c.renamed) for c in self.counters)
