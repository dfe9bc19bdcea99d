"""The closed list of candidates that decode and audit search for a published number (docs/decode.md): those of ledgers are made
here, those of traces in trace_readings.py.

Candidates are not combined with each other.  Each is one quantity of one ledger or trace, by one rule of the list, with a
sentence, its arithmetic and a rank that says how far-fetched it is; a number that the list does not hold is not explained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...align.alignment import Alignment
from ...core.conventions import BUILT_IN, Convention
from ...core.number_format import number
from ...core.records import DEAD, DUPLICATE, FLOP, INITIALIZER, LIVE, MAC, Ledger, Trace
from ...core.registry import known_counters
from ...engine.settle import Collected
from .readings import DERIVED, LAYER, PART, REPORTED, Candidate, derive, list_names
from .trace_readings import group_layers, of_trace, product_layers

ROLES = {
    LIVE: "of the model",
    DEAD: "of ops that no output depends on",
    INITIALIZER: "of initialisers and random input",
    DUPLICATE: "of the model's first build in the same graph",
}

GROWING = ("session", "batch_none")
"""Recipes whose graph is the session's default graph: a model that is built again is in it twice."""


@dataclass(frozen=True, slots=True)
class Source:
    """The records that were ``collected`` in one environment; ``remark`` tells saved data from a fresh run."""

    name: str
    collected: Collected
    remark: str = ""

    @property
    def align(self) -> Alignment:
        """The layer names of the pair in this data."""
        return self.collected.declared_layers

    @property
    def batch(self) -> int:
        """The pair's ``batch`` parameter; 1 if it has none."""
        batch = self.collected.meta["params"].get("batch", 1)
        return batch if isinstance(batch, int) and batch > 0 else 1


def candidates(
    sources: Sequence[Source], conventions: Mapping[str, Convention] = BUILT_IN
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """All candidates by rank, with the same reading in several environments as one; and notes on data that was left out."""
    merged: dict[tuple[int, str, str], Candidate] = {}
    notes: list[str] = []
    layers = _product_layers(sources)
    for source in sources:
        for candidate in _of(source, layers, conventions, notes):
            key = (candidate.value, candidate.what, candidate.how)
            earlier = merged.get(key)
            where = candidate.where if earlier is None else tuple(dict.fromkeys((*earlier.where, *candidate.where)))
            merged[key] = replace(earlier or candidate, where=where)
    return tuple(sorted(merged.values(), key=lambda c: (c.rank, c.value, c.what))), tuple(dict.fromkeys(notes))


def _of(
    source: Source, layers: Mapping[str, Sequence[str]], conventions: Mapping[str, Convention], notes: list[str]
) -> Iterator[Candidate]:
    for ledger in source.collected.ledgers:
        if isinstance(ledger, Ledger):
            known = [source.remark] if source.remark else []
            versions = ", ".join(f"{name} {version}" for name, version in sorted(ledger.versions.items()))
            where = (f"{source.name} ({'; '.join([*known, versions])})",)
            for candidate in of_ledger(ledger, source, layers.get(ledger.framework, ())):
                yield replace(candidate, where=where, counter=ledger.counter)
    for trace in source.collected.traces:
        if isinstance(trace, Trace):
            remarks = "; ".join(remark for remark in (source.remark, "on meta" * (trace.device == "meta")) if remark)
            where = (f"trace@{trace.framework} in {source.name}{f' ({remarks})' if remarks else ''}",)
            for reading in of_trace(trace, source.align, source.batch, conventions, notes, source.name):
                yield replace(reading, where=where)


def _product_layers(sources: Sequence[Source]) -> dict[str, tuple[str, ...]]:
    """Layers that multiply matrices, by framework: from the first trace that has any."""
    by_framework: dict[str, tuple[str, ...]] = {}
    for source in sources:
        for trace in source.collected.traces:
            if isinstance(trace, Trace) and not by_framework.get(trace.framework):
                by_framework[trace.framework] = product_layers(trace, source.align)
    return by_framework


def of_ledger(ledger: Ledger, source: Source, layers: Sequence[str]) -> Iterator[Candidate]:
    """The readings of one ledger; ``layers`` are those of its framework that multiply matrices."""
    name, total, parts = ledger.counter, ledger.total, _roles(ledger)
    unit = " (it counts MACs)" if ledger.unit == MAC else ""
    note = _left_out(ledger, source.align, layers)
    split = _split_by_parts(ledger, parts) if len(parts) > 1 or (parts and LIVE not in parts) else ""
    yield Candidate(total, REPORTED, ledger.unit, f"{name}, as reported{unit}", split, note, printed=True)
    if not total:
        return
    for candidate in (*_scale_ledger(ledger, source.batch, unit), *_by_role(ledger, parts), *_built_again(ledger)):
        yield replace(candidate, note=candidate.note or note)
    yield from _layers(ledger, source.align)


def _scale_ledger(ledger: Ledger, batch: int, unit: str) -> Iterator[Candidate]:
    """Doubled (users of a MAC counter do this, others do it by mistake), halved, and per sample."""
    name, total = ledger.counter, ledger.total
    twice = REPORTED if ledger.unit == MAC else PART
    wrong = unit or " (as if it had counted MACs)"
    yield derive(2 * total, twice, FLOP, f"{name} × 2{wrong}", f"2 × {number(total)}")
    if total % 2 == 0:
        yield derive(total // 2, PART, MAC, f"half of {name}", f"{number(total)} / 2")
    if batch > 1:
        for amount, measured, label in ((total, ledger.unit, name), (2 * total, FLOP, f"{name} × 2{wrong}")):
            if amount % batch == 0 and (amount == total or ledger.unit == MAC):
                yield derive(amount // batch, DERIVED, measured, f"{label}, per sample", f"{number(amount)} / {batch}")


def _by_role(ledger: Ledger, parts: Mapping[str, Mapping[str, int]]) -> Iterator[Candidate]:
    """Forward only, initialisers only, and so on, if a graph holds more than the model."""
    if len(parts) < 2:
        return
    for role, ops in parts.items():
        value = sum(ops.values())
        what = f"{ledger.counter}, only what is {ROLES.get(role, role)}"
        yield Candidate(value, PART, ledger.unit, what, _ops(ops, value))
    if INITIALIZER in parts and len(parts) > 2:
        made = sum(parts[INITIALIZER].values())
        what = f"{ledger.counter} without initialisers and random input"
        yield derive(ledger.total - made, PART, ledger.unit, what, f"{number(ledger.total)} − {number(made)}")


def _built_again(ledger: Ledger) -> Iterator[Candidate]:
    """A published way to get "backward": build the model again, with gradients, in the same default graph, and subtract."""
    if ledger.counter not in known_counters() or known_counters()[ledger.counter].recipe not in GROWING:
        return
    total, terms = ledger.total, f"2 × {number(ledger.total)} + 1"
    what = f"{ledger.counter} with the model built a second time in the same default graph, and one Maximum of its gradients"
    yield derive(2 * total + 1, DERIVED, ledger.unit, what, terms)
    what = f'"backward" by subtraction: {ledger.counter} of the model built twice less the model built once'
    yield replace(derive(total + 1, DERIVED, ledger.unit, what, f"{terms} − {number(total)}"), exact=True)


def _layers(ledger: Ledger, align: Alignment) -> Iterator[Candidate]:
    """Single layers, as reported and normalised."""
    sums: dict[str, int] = {}
    for entry in ledger.entries:
        layer = align.layer(ledger.framework, entry.layer)
        sums[layer] = sums.get(layer, 0) + entry.value
    if len(sums) < 2:
        return
    for value, names in group_layers(sums).items():
        yield Candidate(value, LAYER, ledger.unit, f"{ledger.counter}, {names}")
        if ledger.unit == MAC:
            yield derive(2 * value, LAYER, FLOP, f"{ledger.counter} × 2, {names}", f"2 × {number(value)}")


def _roles(ledger: Ledger) -> dict[str, dict[str, int]]:
    """Sums of the entries by the role of their ops, and by kind of op. Zeroes are left out."""
    roles: dict[str, str] = {}
    for sighting in ledger.sightings:
        if roles.get(sighting.entry) != LIVE:
            roles[sighting.entry] = sighting.role
    sums: dict[str, dict[str, int]] = {}
    for entry in ledger.entries:
        if entry.value:
            ops = sums.setdefault(roles.get(entry.id, LIVE), {})
            ops[entry.op] = ops.get(entry.op, 0) + entry.value
    return {role: sums[role] for role in (*ROLES, *(r for r in sums if r not in ROLES)) if role in sums}


def _split_by_parts(ledger: Ledger, parts: Mapping[str, Mapping[str, int]]) -> str:
    terms = [f"{number(sum(ops.values()))} {ROLES.get(role, role)} ({_kinds(ops)})" for role, ops in parts.items()]
    return f"{' + '.join(terms)} = {number(ledger.total)}"


def _kinds(ops: Mapping[str, int]) -> str:
    ranked = sorted(ops, key=lambda op: (-ops[op], op))
    return list_names([op if len(ops) == 1 else f"{op} {number(ops[op])}" for op in ranked])


def _ops(ops: Mapping[str, int], value: int) -> str:
    if not 1 < len(ops) <= 4:
        return ""
    return " + ".join(f"{number(n)} {op}" for op, n in sorted(ops.items(), key=lambda o: -o[1])) + f" = {number(value)}"


def _left_out(ledger: Ledger, align: Alignment, layers: Sequence[str]) -> str:
    """A sentence on the layers that multiply matrices but are missing from the ledger (initialisers do not count)."""
    roles = {s.entry: s.role for s in ledger.sightings}
    counted = {
        align.layer(ledger.framework, e.layer) for e in ledger.entries if e.value and roles.get(e.id, LIVE) == LIVE
    }
    absent = [layer for layer in layers if layer not in counted]
    if not absent:
        return ""
    if len(absent) == len(layers):
        return f"Nothing of the {len(layers)} layers that convolve or multiply matrices is in it."
    are = "are" if len(absent) > 1 else "is"
    return f"{len(absent)} of the {len(layers)} layers that convolve or multiply matrices {are} not in it: {list_names(absent)}."
