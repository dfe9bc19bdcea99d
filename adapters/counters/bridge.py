"""Items: the parts of a bridge between a ledger and its trace. This code cannot reach any reported value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...core.causes import Cause
from ...core.records import Ledger, Op, Sighting, Trace
from ...work import ZERO, UnknownWork, Work, work_of
from .rulebook import Rule


@dataclass(frozen=True, slots=True)
class View:
    """A ledger without its values: everything that a bridge may know about it."""

    counter: str
    framework: str
    unit: str
    versions: Mapping[str, str]
    sightings: tuple[Sighting, ...]
    notes: tuple[str, ...]


def view(ledger: Ledger) -> View:
    """A ledger without its reported values."""
    return View(ledger.counter, ledger.framework, ledger.unit, ledger.versions, ledger.sightings, ledger.notes)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing a counter counted, or failed to, beside the work that ran.

    The counter includes ``counted`` (components, per execution) ``seen`` times; ``ran`` ran ``times`` times.
    ``cause`` is set if the whole item has one cause: counted but never run (dead-op, ...), or run but not counted
    (op-not-counted, ...).  ``repeat`` names why ``seen`` and ``times`` differ.  ``entry`` is the ledger entry it feeds.
    ``sightings`` carry as ``calls`` the calls that make up one execution; ``ops`` are ids of trace ops, none if the
    work is that of the sightings themselves.
    ``only`` names the components of ``ran`` that this item is about; none means all.
    ``gap`` says why nothing can be booked for this item: its whole difference stays in the residual.
    """

    entry: str
    layer: str
    op: str
    counted: Work
    seen: int
    ran: Work
    times: int
    cause: Cause | None
    repeat: Cause | None
    rule: str
    source: str
    formula: str
    sightings: tuple[Op, ...]
    ops: tuple[str, ...]
    gap: str = ""
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bridge:
    """A ledger explained item by item."""

    items: tuple[Item, ...]


Bridging = Callable[[View, Trace], Bridge]


def known_work(op: Op) -> Work | None:
    """Work of one call, or None if no formula gives it (the trace is incomplete there and says so)."""
    try:
        return work_of(op)
    except UnknownWork:
        return None


def other_ops(counter: str, layer: str, difference: str) -> str:
    """The reason why a module cannot be booked: other ops ran there under the counter than in the trace."""
    where = f"at {layer}" if layer else "at the root"
    return (
        f"the model ran other ops here under {counter} than when it was traced: {where}, {difference}. If the model keeps state "
        f"between calls (a cache), run this counter alone with --counter {counter}; if it is random, seed it"
    )


def make_item(
    sighting: Op | None,
    rule: Rule | None,
    *,
    layer: str,
    op: str,
    counted: Work = ZERO,
    seen: int = 0,
    ran: Work = ZERO,
    times: int = 0,
    cause: Cause | None = None,
    repeat: Cause | None = None,
    entry: str = "",
    ops: tuple[str, ...] = (),
    reason: str = "",
    gap: str = "",
    only: tuple[str, ...] = (),
) -> Item:
    """An item of one sighting; the rule's id, source and formula go along as evidence."""
    return Item(
        entry=entry,
        layer=layer,
        op=op,
        counted=counted,
        seen=seen,
        ran=ran,
        times=times,
        cause=cause,
        repeat=repeat,
        rule=rule.id if rule else "",
        source=rule.source if rule else "",
        formula=rule.formula if rule else reason,
        sightings=(sighting._replace(calls=1),) if sighting else (),
        ops=ops,
        gap=gap,
        only=only,
    )


def unmet(op: Op, ran: Work, cause: Cause | None, reason: str, *, only: tuple[str, ...] = (), gap: str = "") -> Item:
    """An item of a trace op for which the counter has no sighting; ``ran`` is the part of its work that the item covers."""
    return make_item(
        None, None, layer=op.layer, op=op.op, ran=ran, times=op.calls, cause=cause, ops=(op.id,), reason=reason, only=only,
        gap=gap,
    )  # fmt: skip
