"""Compare two runs (takes) of one model: each ledger entry by entry, each trace op by op, with the reasons for each change.

Nothing is run here.  The reasons are derived, never guessed: each ledger is bridged to the trace of its own take, by the
rules of its own version, and the cause lines of the two bridges are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ..align.alignment import Alignment
from ..core.conventions import MATMUL, Convention, Conventions
from ..core.records import Ledger, Trace
from ..core.registry import known_counters
from ..core.results import Residual
from ..engine.booking import flops_per_unit
from ..engine.ledger import reconcile_ledger
from ..engine.reconcile import Missing, statement_across
from ..engine.settle import Collected
from ..engine.traces import differences, layer_work, trace_result
from ..work import COMPONENTS, Work, known_part, load
from ..work.attention_masks import unknown_mask
from .changes import Change, CounterDrift, Drift, TraceDrift
from .match import Matched, match, of_ledger, of_trace
from .rule_changes import basis, cause_changes

Take = tuple[Ledger, Trace | None, Alignment]
"""One counter's ledger, the trace of the same take, and the names that this take gives its layers."""

_COUNT = re.compile(r"_([0-9]+)(?![^.])")


def compare(old: Collected, new: Collected, convention: Convention = MATMUL) -> Drift:
    """Compare a newer take of a model with an older one. Runs nothing."""
    load()
    aligns = old.declared_layers, _align_newer(old, new)
    before, after = _traces(old), _traces(new)
    failed = [t for t in new.traces if isinstance(t, Missing) and t.framework in before]
    traces = [_trace(before[f], after[f], aligns, convention) for f in after if f in before]
    ledgers = {led.counter: led for led in old.ledgers if isinstance(led, Ledger)}
    counters, notes = [], list(_about_the_pair(old, new))
    for ledger in new.ledgers:
        if isinstance(ledger, Missing):
            if ledger.name in ledgers:
                failed.append(ledger)
        elif ledger.counter in ledgers:
            was = ledgers[ledger.counter]
            older, newer = before.get(was.framework), after.get(ledger.framework)
            counters.append(_counter((was, older, aligns[0]), (ledger, newer, aligns[1]), convention))
        else:
            notes.append(f"{ledger.counter} is not in the baseline and was not compared with anything")
    known = {c.counter if isinstance(c, Ledger) else c.name for c in new.ledgers}
    notes += [f"{name} is in the baseline and was not run" for name in ledgers if name not in known]
    return Drift(new.meta["name"], convention.name, tuple(counters), tuple(traces), tuple(failed), tuple(notes))


def _traces(collected: Collected) -> dict[str, Trace]:
    return {t.framework: t for t in collected.traces if isinstance(t, Trace)}


def _align_newer(old: Collected, new: Collected) -> Alignment:
    """The newer take's rows. Layers whose numbers moved on alone have the rows of the older take, in order: Keras numbers those
    without a name over all models of a process, so that ``add`` is ``add_1`` in the next test."""
    was, now = old.declared_layers, new.declared_layers
    before, after = _group_by_words(old), _group_by_words(new)
    for series in before.keys() & after.keys():
        if before[series] != after[series] and len(before[series]) == len(after[series]):
            for layer, path in zip(before[series], after[series], strict=True):
                now.set_row(series[0], path, was.layer(series[0], layer))
    return now


def _group_by_words(collected: Collected) -> dict[tuple[str, str], list[str]]:
    """The layers of a take, by framework and name without the numbers that end its parts, in the order of these."""
    layers = {(trace.framework, op.layer) for trace in _traces(collected).values() for op in trace.ops}
    ledgers = (ledger for ledger in collected.ledgers if isinstance(ledger, Ledger))
    layers |= {(ledger.framework, entry.layer) for ledger in ledgers for entry in ledger.entries}
    found: dict[tuple[str, str], list[str]] = {}
    for framework, layer in sorted(layers, key=lambda at: [int(count) for count in _COUNT.findall(at[1])]):
        found.setdefault((framework, _COUNT.sub("", layer)), []).append(layer)
    return found


def _about_the_pair(old: Collected, new: Collected) -> Iterable[str]:
    before, after = old.meta["params"], new.meta["params"]
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield f"taken with other parameters: {name} {before.get(name)} before, {after.get(name)} now"
    sources = old.meta["source"], new.meta["source"]
    if all(sources) and sources[0] != sources[1]:
        yield "the pair file was edited in between"


def _trace(old: Trace, new: Trace, aligns: tuple[Alignment, Alignment], convention: Convention) -> TraceDrift:
    matched = match(of_trace(old, aligns[0]), of_trace(new, aligns[1]))
    changes, notes = [], []
    by_layer: dict[str, list[Change]] = {}
    for change in _changes(matched):
        by_layer.setdefault(change.layer, []).append(change)
    for layer, moved in by_layer.items():
        if _balance(moved):
            notes.append(f"{layer} does the same work by other ops: {_kinds(moved)}")
        else:
            changes += moved
    versions = old.versions, new.versions
    found = TraceDrift(old.framework, versions, tuple(changes), _find_renamed(matched), tuple(notes))
    return _in_flops(found, (old, new), aligns, convention)


def _in_flops(
    drift: TraceDrift, traces: tuple[Trace, Trace], aligns: tuple[Alignment, Alignment], convention: Convention
) -> TraceDrift:
    """The drift with FLOPs, in all and of each layer that changed, if all work of both is known under the convention."""
    asked = Conventions(convention, {convention.name: convention})
    results = [trace_result(trace, align, asked) for trace, align in zip(traces, aligns, strict=True)]
    if not all(result.complete for result in results):
        return drift
    works = [layer_work(trace, align, convention) for trace, align in zip(traces, aligns, strict=True)]
    sides = [
        (layer, works[0].get(layer) or 0, works[1].get(layer) or 0) for layer in dict.fromkeys((*works[0], *works[1]))
    ]
    totals = results[0].totals[convention.name], results[1].totals[convention.name]
    return replace(drift, totals=totals, layers=tuple(side for side in sides if side[1] != side[2]))


def _balance(changes: list[Change]) -> bool:
    """Whether the work of all these ops is known and adds up to the same components before and after."""
    sums = [Work(), Work()]
    for change in changes:
        for index, entry in enumerate((change.before, change.after)):
            if entry is not None:
                if not isinstance(entry.amount, Work):
                    return False
                sums[index] = sums[index] + entry.amount
    return all(getattr(sums[0], name) == getattr(sums[1], name) for name in COMPONENTS)


def _kinds(changes: list[Change]) -> str:
    before = sorted({c.op for c in changes if c.before})
    after = sorted({c.op for c in changes if c.after})
    return f"{', '.join(before) or 'none'} before, {', '.join(after) or 'none'} now"


def _changes(matched: Matched) -> list[Change]:
    changes = [Change(b.layer, b.op, a, b) for a, b in matched.pairs if (a.amount, a.calls) != (b.amount, b.calls)]
    changes += [Change(a.layer, a.op, a, None) for a in matched.gone if a.amount != 0]
    changes += [Change(b.layer, b.op, None, b) for b in matched.new if b.amount != 0]
    return changes


def _find_renamed(matched: Matched) -> tuple[tuple[str, str], ...]:
    return tuple((a.id, b.id) for a, b in matched.pairs if a.id != b.id)


def _counter(old: Take, new: Take, convention: Convention) -> CounterDrift:
    was, now = old[0], new[0]
    matched = match(of_ledger(was, old[2]), of_ledger(now, new[2]))
    drift = CounterDrift(
        counter=now.counter,
        framework=now.framework,
        units=(was.unit, now.unit),
        versions=(was.versions, now.versions),
        totals=(was.total, now.total),
        normalised=(was.total * flops_per_unit(was.unit), now.total * flops_per_unit(now.unit)),
        changes=tuple(_changes(matched)),
        renamed=_find_renamed(matched),
        notes=_about_the_run(was, now),
    )
    why = _in_the_way(now.counter, convention, old[1], new[1])
    return replace(drift, unknown=why) if why else _because(drift, old, new, convention)


def _because(drift: CounterDrift, old: Take, new: Take, convention: Convention) -> CounterDrift:
    """The drift with causes: both bridges, and the lines that separate the two totals."""
    (was, ran, align), (now, runs, aligned) = old, new
    assert ran is not None
    assert runs is not None
    before, after = reconcile_ledger(was, ran, align, convention), reconcile_ledger(now, runs, aligned, convention)
    causes = cause_changes(before, after)
    layers = dict.fromkeys([*(c.layer for c in drift.changes), *(c.layer for c in causes)])
    between = differences(ran, runs, aligned, convention)
    statement = statement_across(("before", before), between, ("now", after))
    return replace(
        drift,
        causes=causes,
        basis=basis((was, ran, align), (now, runs, aligned), layers),
        open=(_only(before.residuals, after.residuals), _only(after.residuals, before.residuals)),
        lines=statement.adjustments,
        residual=statement.residual,
    )


def _only(residuals: tuple[Residual, ...], others: tuple[Residual, ...]) -> tuple[Residual, ...]:
    return tuple(r for r in residuals if r not in others)


def _in_the_way(counter: str, convention: Convention, *traces: Trace | None) -> str:
    """Why a counter's causes cannot be derived; '' if they can."""
    if counter not in known_counters():
        return f"this version of reconcile has no rules for {counter}"
    for side, trace in zip(("older", "newer"), traces, strict=True):
        if trace is None:
            return f"there is no trace beside the {side} ledger"
        for problem in trace.problems:
            return f"the {side} trace is incomplete: {problem.reason}"
        for op in trace.ops:
            part = known_part(op)
            if convention.weighs(part.unknown):
                return f"the {side} trace is incomplete: {part.reason}"
            if convention.masked and (reason := unknown_mask(op)):
                return f"the {side} trace is incomplete: {op.op}: {reason}"
    return ""


def _about_the_run(old: Ledger, new: Ledger) -> tuple[str, ...]:
    notes = []
    if old.device != new.device:
        notes.append(f"{new.counter} ran on {old.device} before and on {new.device} now")
    notes += [f"{new.counter} did not note before: {note}" for note in new.notes if note not in old.notes]
    notes += [f"{new.counter} noted before, and no longer: {note}" for note in old.notes if note not in new.notes]
    return tuple(notes)
