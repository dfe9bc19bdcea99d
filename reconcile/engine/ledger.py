"""Reconciles one ledger with its trace: checks entries against the counter's rules, and books its items by cause and layer."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from packaging.version import InvalidVersion, Version

from ..adapters.counters.bridge import Bridge, Item, View, view
from ..align.alignment import Alignment
from ..core.causes import ORDER, Cause, State
from ..core.conventions import Convention
from ..core.counter import Counter
from ..core.records import Entry, Ledger, Trace
from ..core.registry import known_counters
from ..core.results import Adjustment, Evidence, LedgerResult, Mismatch, Residual
from .booking import Booking, book, expected_amount, flops_per_unit

MAX_OPS_SHOWN = 3
"""Ops that differ, in a sentence about a release; the residuals have all of them."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A ledger and its path to the trace: ``adjustments`` and ``residuals`` lead from the counter's normalised total to the work
    that ran. ``cells`` are the FLOPs that it reported, by layer of the pair."""

    ledger: LedgerResult
    adjustments: tuple[Adjustment, ...]
    residuals: tuple[Residual, ...]
    cells: Mapping[str, int]


def build_bridge(seen: View, trace: Trace) -> Bridge:
    """The items of one ledger, made by its counter's own bridge: in bridge.py, or beside the rules if one statement makes it."""
    folder = known_counters()[seen.counter].module
    apart = importlib.util.find_spec(f"{folder}.bridge") is not None
    module = importlib.import_module(f"{folder}.bridge" if apart else f"{folder}.rules")
    bridge: Bridge = module.bridge(seen, trace)
    return bridge


@dataclass(frozen=True, slots=True)
class Bridged:
    """A ledger with its bridge to the trace, under no convention yet: its items, checked against the reported values, and these
    values by layer of the pair.

    Attributes:
        ledger: The ledger, values included.
        bridge: Its items. They were made without the values.
        uncovered: The entries other than 0 that no rule covers, by id, each with its layer of the pair.
        mismatches: The entries for which the rules expect another value.
        checked: How many entries a rule covers.
        unchecked: How many no rule covers.
        cells: FLOPs that it reported, by layer of the pair.
        entries: What it reported by entry and layer of the pair, in its own unit.
        spans: The layers of each item whose ops ran in several, such as a formula's term of all weights of a block.
    """

    ledger: Ledger
    bridge: Bridge
    uncovered: Mapping[str, tuple[Entry, str]]
    mismatches: tuple[Mismatch, ...]
    checked: int
    unchecked: int
    cells: Mapping[str, int]
    entries: tuple[Entry, ...]
    spans: frozenset[frozenset[str]] = frozenset()


def bridge_ledger(ledger: Ledger, trace: Trace, align: Alignment) -> Bridged:
    """Make the items of a ledger, and check every entry against the rules."""
    bridge = build_bridge(view(ledger), trace)  # the items are made without access to any reported value
    uncovered = _find_uncovered(bridge, ledger)
    if uncovered:
        bridge = Bridge(tuple(_without_not_counted(item, uncovered) for item in bridge.items))
    shares = _expected_shares(bridge, ledger, align)
    homes = {
        entry.id: _home_layer(entry, shares.get(entry.id, {}), align, ledger.framework) for entry in ledger.entries
    }
    mismatches, checked, unchecked = _compare_entries(bridge, ledger, shares, homes)
    cells: dict[str, int] = {}
    entries = []
    for entry in ledger.entries:
        for layer, value in _place_value(entry.value, shares.get(entry.id, {}), homes[entry.id]).items():
            cells[layer] = cells.get(layer, 0) + value * flops_per_unit(ledger.unit)
            entries.append(Entry(entry.id, layer, entry.op, value, entry.calls))
    kept = {id: (entry, homes[id]) for id, entry in uncovered.items()}
    spans = _find_spans(bridge, trace, align)
    return Bridged(ledger, bridge, kept, mismatches, checked, unchecked, cells, tuple(entries), spans)


def _find_spans(bridge: Bridge, trace: Trace, align: Alignment) -> frozenset[frozenset[str]]:
    """The layers of the pair of each item whose ops ran in several."""
    placed = {op.id: op.layer for op in trace.ops}
    found = set()
    for item in bridge.items:
        around = {item.layer, *(placed[op] for op in item.ops if op in placed)}
        if len(around) > 1:
            found.add(frozenset(align.layer(trace.framework, layer) for layer in around))
    return frozenset(span for span in found if len(span) > 1)


def _expected_shares(bridge: Bridge, ledger: Ledger, align: Alignment) -> dict[str, dict[str, int]]:
    """Each entry by the rules, in the counter's own unit, by the layer of the pair in which the ops ran that it counts."""
    shares: dict[str, dict[str, int]] = {}
    for item in bridge.items:
        if item.entry:
            share, layer = shares.setdefault(item.entry, {}), align.layer(ledger.framework, item.layer)
            share[layer] = share.get(layer, 0) + expected_amount(item, ledger.unit)
    return shares


def _home_layer(entry: Entry, share: Mapping[str, int], align: Alignment, framework: str) -> str:
    """The layer of what the rules do not say of an entry: an entry of several layers does not say in which one it is off."""
    return next(iter(share)) if len(share) == 1 else align.layer(framework, entry.layer)


def _place_value(value: int, share: Mapping[str, int], home: str) -> dict[str, int]:
    """An entry's value by layer: its shares by the rules, and what differs from them at home."""
    parts = {**share, home: share.get(home, 0) + value - sum(share.values())}
    return {layer: part for layer, part in parts.items() if part} or {home: 0}


def reconcile_ledger(ledger: Ledger, trace: Trace, align: Alignment, convention: Convention) -> Reconciled:
    """As ``book_items``, of a ledger that is not bridged yet."""
    return book_items(bridge_ledger(ledger, trace, align), align, convention)


def book_items(found: Bridged, align: Alignment, convention: Convention) -> Reconciled:
    """Book every item of a bridged ledger under a convention; what the items leave open are its residuals."""
    ledger, bridge, uncovered, mismatches = found.ledger, found.bridge, found.uncovered, found.mismatches
    adjustments = list_adjustments(bridge, view(ledger), align, convention)
    residuals = [
        Residual(m.layer, (m.expected - m.reported) * flops_per_unit(ledger.unit), _broken_rule_reason(m, ledger.unit))
        for m in mismatches
    ]
    residuals += _gap_residuals(
        [item for item in bridge.items if item.entry not in uncovered], ledger, align, convention
    )
    residuals += _list_unchecked(bridge, ledger, align, convention, uncovered)
    state = State.UNEXPLAINED if residuals else State.EXPLAINED if adjustments else State.EQUAL
    result = LedgerResult(
        counter=ledger.counter,
        framework=ledger.framework,
        state=state,
        reason="",
        unit=ledger.unit,
        device=ledger.device,
        versions=ledger.versions,
        total=ledger.total,
        normalised_total=ledger.total * flops_per_unit(ledger.unit),
        entries=found.entries,
        checked=found.checked,
        unchecked=found.unchecked,
        mismatches=mismatches,
        unsupported=ledger.unsupported,
        notes=ledger.notes + _release_notes(ledger, mismatches, uncovered),
    )
    return Reconciled(result, adjustments, tuple(residuals), found.cells)


def list_adjustments(bridge: Bridge, seen: View, align: Alignment, convention: Convention) -> tuple[Adjustment, ...]:
    """Adjustments per cause, layer and kind of op, in booking order; items that agree in all three make one line."""
    sums: dict[tuple[Cause, str, str], tuple[list[int], list[Evidence]]] = {}
    books: dict[Hashable, list[Booking]] = {}
    for item in bridge.items:
        works = (id(item.counted), id(item.ran))  # equal ops share their works, which the items keep
        alike = (works, item.seen, item.times, item.cause, item.repeat, item.gap, item.unknown)
        bookings = books.get(alike)
        if bookings is None:  # the layers of a network repeat: all that a booking reads is in the key
            bookings = books[alike] = book(item, seen.unit, convention)
        if bookings:
            layer = align.layer(seen.framework, item.layer)
            proof = item_evidence(item, seen.counter, layer)
            for booking in bookings:
                amounts, proofs = sums.setdefault((booking.cause, layer, item.op), ([], []))
                amounts.append(booking.amount)
                proofs.append(proof)
    lines = [
        Adjustment(cause, layer, op, seen.counter, amount, tuple(proofs))
        for (cause, layer, op), (amounts, proofs) in sums.items()
        if (amount := sum(amounts))
    ]
    return tuple(sorted(lines, key=lambda a: ORDER[a.cause]))


def item_evidence(item: Item, counter: str, layer: str) -> Evidence:
    """The inputs from which an item's adjustments are computed."""
    return Evidence(
        side="from",
        counter=counter,
        rule=item.rule,
        source=item.source,
        cause=item.cause,
        repeat=item.repeat,
        seen=item.sightings,
        ops=item.ops,
        seen_times=item.seen,
        times=item.times,
        layer=layer,
        formula=item.formula,
        only=item.only,
    )


def _compare_entries(
    bridge: Bridge, ledger: Ledger, shares: Mapping[str, Mapping[str, int]], homes: Mapping[str, str]
) -> tuple[tuple[Mismatch, ...], int, int]:
    """Compare expected with reported values, entry by entry; one that is not reported is off by all of each of its shares."""
    first: dict[str, Item] = {}
    for item in bridge.items:
        if item.entry and item.rule and not (item.entry in first and first[item.entry].seen):
            first[item.entry] = item
    reported = {entry.id: entry.value for entry in ledger.entries}
    mismatches = []
    for id, item in first.items():
        wanted = {homes[id]: sum(shares[id].values())} if id in reported else shares[id]
        for layer, amount in wanted.items():
            if amount != reported.get(id, 0):
                value = reported.get(id, 0)
                mismatches.append(Mismatch(id, layer, item.op, item.rule, item.source, amount, value))
    unchecked = [id for id in reported if id not in first]
    return tuple(mismatches), len(reported) - len(unchecked), len(unchecked)


def _broken_rule_reason(mismatch: Mismatch, unit: str) -> str:
    return (
        f"rule {mismatch.rule} broken at layer {mismatch.layer} ({mismatch.entry}): "
        f"expected {mismatch.expected:,} {unit}, reported {mismatch.reported:,} {unit} (rule from {mismatch.source})"
    )


def _gap_residuals(items: Iterable[Item], ledger: Ledger, align: Alignment, convention: Convention) -> list[Residual]:
    residuals = []
    for item in items:
        if item.gap:
            counted = expected_amount(item, ledger.unit) * flops_per_unit(ledger.unit)
            ran = convention.flops(item.ran) * item.times
            amount = ran - counted
            if amount or ran:  # two wrong numbers that happen to be equal are no agreement
                residuals.append(Residual(align.layer(ledger.framework, item.layer), amount, item.gap))
    return residuals


def _find_uncovered(bridge: Bridge, ledger: Ledger) -> dict[str, Entry]:
    """The entries that are not 0 and that no rule covers, by id."""
    covered = {item.entry for item in bridge.items if item.rule}
    return {entry.id: entry for entry in ledger.entries if entry.id not in covered and entry.value}


def _without_not_counted(item: Item, uncovered: Mapping[str, Entry]) -> Item:
    """The item without the cause ``op-not-counted``, if the counter has an entry for it that no rule covers."""
    if item.cause is not Cause.OP_NOT_COUNTED or item.entry not in uncovered:
        return item
    return replace(item, cause=None, gap=f"no rule says what is counted of {item.op}")


def _list_unchecked(
    bridge: Bridge,
    ledger: Ledger,
    align: Alignment,
    convention: Convention,
    uncovered: Mapping[str, tuple[Entry, str]],
) -> list[Residual]:
    """One for each entry that no rule covers, and layer, with the work for which nothing else was booked since the entry is
    there."""
    amounts = {id: {home: -entry.value * flops_per_unit(ledger.unit)} for id, (entry, home) in uncovered.items()}
    for item in bridge.items:
        if item.gap and item.entry in uncovered:
            held, layer = amounts[item.entry], align.layer(ledger.framework, item.layer)
            held[layer] = held.get(layer, 0) + convention.flops(item.ran) * item.times
    return [
        Residual(layer, amount, f"no rule covers {entry.op} at {id}: reported {entry.value:,} {ledger.unit}")
        for id, (entry, _) in uncovered.items()
        for layer, amount in amounts[id].items()
    ]


def _release_notes(
    ledger: Ledger, mismatches: Iterable[Mismatch], uncovered: Mapping[str, tuple[Entry, str]]
) -> tuple[str, ...]:
    """Rules state the releases that they were checked on; for another release, whether they still hold.

    ``NAME 2.16.0 is newer than the releases that its rules were checked on (2.1 to 2.15.0); 13 of 14 ops agree; ...``.

    Nothing for a release between those.
    """
    counter = known_counters()[ledger.counter]
    version = ledger.versions.get(counter.versions_key, "")
    where = release_age(counter, version)
    if not where:
        return ()
    off: dict[str, list[int]] = {}
    broken = [(m.op, m.expected, m.reported) for m in mismatches]
    for op, wanted, told in [*broken, *((entry.op, 0, entry.value) for entry, _ in uncovered.values())]:
        held = off.setdefault(op, [0, 0])
        held[0] += wanted
        held[1] += told
    ops = {entry.op for entry in ledger.entries} | off.keys()
    agree = f"all {len(ops)} ops agree" if not off else f"{len(ops) - len(off)} of {len(ops)} ops agree"
    differ = [
        f"{op} differs: expected {expected:,}, reported {reported:,} {ledger.unit}"
        for op, (expected, reported) in list(off.items())[:MAX_OPS_SHOWN]
    ]
    more = [f"and {len(off) - MAX_OPS_SHOWN} more"] if len(off) > MAX_OPS_SHOWN else []
    return ("; ".join([f"{counter.family} {version} is {where}", agree, *differ, *more]),)


def release_age(counter: Counter, version: str) -> str:
    """``newer than the releases that its rules were checked on (2.1 to 2.15.0)``; '' for one between those, for
    text that is no version, and if the counter does not state them."""
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
