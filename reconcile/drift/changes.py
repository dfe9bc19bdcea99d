"""Records of the differences between two runs (takes) of one model: ``compare.py`` makes them, reports show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.causes import Cause, Setting
from ..core.results import Adjustment, Residual
from ..engine.reconcile import Missing
from ..engine.traces import trace_name
from .match import Compared

WORK = frozenset(cause for cause in Cause if cause.record.setting is Setting.TWO_MODELS)
"""The causes of a change of the model itself."""


@dataclass(frozen=True, slots=True)
class Change:
    """One amount that changed; ``before`` or ``after`` is None if only one of the two takes has the entry."""

    layer: str
    op: str
    before: Compared | None
    after: Compared | None


@dataclass(frozen=True, slots=True)
class CauseChange:
    """A cause line from a counter to the work that ran, in FLOPs under the convention; 0 if there is no such line."""

    cause: Cause
    layer: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Basis:
    """The rules that counted a layer, or why it was not counted, if only one of the two takes has them."""

    layer: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CounterDrift:
    """One counter's two ledgers, each pair of values before and after. Totals are in the counter's own units; all other amounts
    name their unit.

    Attributes:
        counter: The counter's name.
        framework: The framework of the model that it counted.
        units: Its unit in each ledger, MAC or FLOP.
        versions: The versions that it noted, by package.
        totals: What it reported, in its own units.
        normalised: The same in FLOPs. before + ``lines`` + ``residual`` = after.
        changes: The entries whose amount or calls changed, those that only one ledger has among them unless they are 0.
        renamed: Ids of entries that stand for the same under another name.
        notes: What else differs between the two runs, a sentence each.
        causes: The causes whose amount changed, by layer; empty if ``unknown``.
        basis: The rules of layers that changed, where only one ledger has them; empty if ``unknown``.
        open: The residuals that only one of the ledgers has: entries that differ from the rules of their version.
        lines: The lines that reconcile both normalised totals; empty if ``unknown``.
        residual: The FLOPs between them that no line explains; None if ``unknown``.
        unknown: Why causes could not be derived; '' if they could.
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
    def by_cause(self) -> dict[Cause, int]:
        """Sum of the lines per cause, in the order of the lines."""
        sums: dict[Cause, int] = {}
        for line in self.lines:
            sums[line.cause] = sums.get(line.cause, 0) + line.amount
        return sums

    @property
    def follows(self) -> bool:
        """Whether the counter counts what changed in the model's work, and nothing else changed about it."""
        steps = {line.cause for line in self.lines}
        otherwise = (
            self.unknown or self.causes or self.open != ((), ()) or self.residual or self.units[0] != self.units[1]
        )
        return bool(steps) and steps <= WORK and not otherwise

    @property
    def has_moved(self) -> bool:
        """Whether anything but names differs."""
        return bool(self.changes or self.causes) or self.totals[0] != self.totals[1] or self.units[0] != self.units[1]


@dataclass(frozen=True, slots=True)
class TraceDrift:
    """One framework's two traces: the ops whose work changed.

    ``totals`` are the FLOPs of both under the convention, and ``layers`` has (layer, before, after) for each whose FLOPs
    changed; both are empty where the work of an op is unknown.
    """

    framework: str
    versions: tuple[Mapping[str, str], Mapping[str, str]]
    changes: tuple[Change, ...]
    renamed: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    totals: tuple[int, int] = (0, 0)
    layers: tuple[tuple[str, int, int], ...] = ()

    @property
    def name(self) -> str:
        """``trace@tf``."""
        return trace_name(self.framework)

    @property
    def has_moved(self) -> bool:
        """Whether the work that runs differs."""
        return bool(self.changes)


@dataclass(frozen=True, slots=True)
class Drift:
    """All differences between two takes. ``failed``: counters and traces of the older take that failed in the newer one."""

    model: str
    convention: str
    counters: tuple[CounterDrift, ...]
    traces: tuple[TraceDrift, ...]
    failed: tuple[Missing, ...]
    notes: tuple[str, ...]

    @property
    def has_moved(self) -> bool:
        """Whether a ledger or a trace moved."""
        return any(c.has_moved for c in self.counters) or any(t.has_moved for t in self.traces)

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
    def renamed_nodes(self) -> int:
        """How many nodes have a new name."""
        return sum(len(t.renamed) for t in self.traces) + sum(len(c.renamed) for c in self.counters)
