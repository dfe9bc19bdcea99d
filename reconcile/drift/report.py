"""The text of ``reconcile check``: one line if nothing changed between two takes, else the changes by counter and layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from ..core.errors import EXIT_UNEXPLAINED
from ..core.escaping import escape_line
from ..core.number_format import format_count, format_signed, number
from ..work import Work
from . import work_changes
from .changes import Change, CounterDrift, Drift, TraceDrift
from .check import Checked
from .match import Compared, total

NONE = "none"
SHOWN = 3
"""Rules of one layer that are shown of each take; --verbose shows all."""


def verdict(drift: Drift, against: str) -> str:
    """One line: either nothing moved, or these counters and traces did, at these layers."""
    model = drift.model or "the ledger"
    if not drift.has_moved and not drift.failed:
        compared = [format_count(len(drift.counters), "counter"), format_count(len(drift.traces), "trace")]
        renamed = f"; {format_count(drift.renamed_nodes, 'node')} renamed" if drift.renamed_nodes else ""
        upgraded = "; ".join(_versions(*drift.versions))
        upgraded = f"; {upgraded}" if upgraded else ""
        noted = "".join(f"; {note}" for note in _notes(drift))
        return escape_line(f"{model}: unchanged: {' and '.join(compared)} as in {against}{renamed}{upgraded}{noted}")
    parts = []
    once = work_changes.traces_in_flops(drift)
    parts += work_changes.change_sentences(drift)
    others, traces = work_changes.other_counters(drift), (t for t in drift.traces if t.has_moved and t not in once)
    rest = replace(drift, counters=tuple(others), traces=tuple(traces))
    if rest.has_moved:
        names = [c.counter for c in rest.counters] + [t.name for t in rest.traces]
        layers = ", ".join(_layers(rest)) or "no layer of its own"
        parts.append(f"{', '.join(names)} moved, at {layers}")
    parts += [f"{missing.name} ({missing.framework}) is missing" for missing in drift.failed]
    return escape_line(f"{model}: not as in {against}: {'; '.join(parts)}")


def details(drift: Drift, *, verbose: bool = False) -> list[str]:
    """All changes, from which version to which, and why. Empty if nothing moved, unless ``verbose``."""
    lines = list(_versions(*drift.versions)) if drift.has_moved or verbose else []
    for missing in drift.failed:
        lines.append(f"{missing.name} ({missing.framework}): {missing.state.value}: {missing.reason}")
    once, others = work_changes.traces_in_flops(drift), work_changes.other_counters(drift)
    same = work_changes.following_counters(drift)
    for trace in drift.traces:
        if trace in once:
            lines += ["", *work_changes.layer_lines(trace, drift.convention, verbose=verbose)]
        if trace.has_moved and (verbose or trace not in once):
            lines += ["", *_trace(trace, verbose)]
    if same and not verbose:
        lines.append(f"{', '.join(same)}: the same change, and no other")
    alike: dict[tuple[str, ...], list[str]] = {}
    for counter in drift.counters:
        if counter.has_moved and (verbose or counter in others):
            said = _counter(replace(counter, counter=""), drift.convention, verbose)
            alike.setdefault(tuple(said), []).append(counter.counter)
    for (first, *rest), names in alike.items():
        lines += ["", ", ".join(names) + first, *rest]
    if drift.has_moved or verbose:
        lines += ["", *(f"note: {note}" for note in _notes(drift))]
    if drift.has_moved and drift.renamed_nodes and not verbose:
        lines.append(f"note: {format_count(drift.renamed_nodes, 'node')} renamed (named with --verbose)")
    if verbose:
        pairs = [p for t in drift.traces for p in t.renamed] + [p for c in drift.counters for p in c.renamed]
        lines += [f"note: renamed: {old} is {new} now" for old, new in dict.fromkeys(pairs)]
    while lines and not lines[-1]:
        lines.pop()
    return [escape_line(line) for line in lines]


def describe_check(
    done: Checked, against: str, remedy: str, *, update: bool = False, quiet: bool = False, verbose: bool = False
) -> list[str]:
    """The outcome of a check: the verdict, what moved unless ``quiet``, and what was accepted or, with ``remedy``, how to."""
    lines: list[str] = []
    if done.drift is not None:
        lines += [verdict(done.drift, against), *([] if quiet else details(done.drift, verbose=verbose))]
    elsewhere = done.drift.failed if done.drift is not None else ()
    lines += [f"{m.name} ({m.framework}) failed: {m.reason}" for m in done.failed if m not in elsewhere]
    if done.written:
        taken = ", ".join(f"{name} {version}" for name, version in done.versions.items())
        lines.append(f"accepted: {done.path} ({taken})")
    elif update and done.exit_code:
        lines.append("nothing was accepted: leave the counter that fails out, or mend it")
    elif remedy and done.exit_code == EXIT_UNEXPLAINED:
        lines.append(f"accept it with: {remedy}")
    return [*lines, *([f"kept: {done.kept}"] if done.kept else [])]


def _layers(drift: Drift) -> list[str]:
    """The layers that changed, with the ops of those whose work changed."""
    ops: dict[str, dict[str, None]] = {}
    for change in (change for trace in drift.traces for change in trace.changes):
        ops.setdefault(change.layer, {})[change.op] = None
    layers = [change.layer for counter in drift.counters for change in counter.changes]
    layers += [change.layer for counter in drift.counters for change in counter.causes]
    return [f"{layer} ({', '.join(ops[layer])})" if layer in ops else layer for layer in dict.fromkeys([*ops, *layers])]


def describe_totals(drift: Drift, against: str, percent: float) -> tuple[list[str], bool]:
    """The verdict on the totals alone with a line for each, in FLOPs, and whether one moved: by more than ``percent`` of the
    older one, or in a changed trace that has no total."""
    limit = Fraction(str(percent)) / 100
    totals = {t.name: t.totals for t in drift.traces} | {c.counter: c.normalised for c in drift.counters}
    unknown = {t.name: "changed" if t.has_moved else "as before" for t in drift.traces if not any(t.totals)}
    far = [name for name, (a, b) in totals.items() if abs(b - a) > limit * a or unknown.get(name) == "changed"]
    cells = [
        (name, "?", "?", unknown[name]) if name in unknown else (name, *work_changes.amount_cells(*sides))
        for name, sides in totals.items()
    ]
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    how = "unchanged" if not percent else f"within {percent:g} %"
    said = f"not {how}: {', '.join(far)}" if far else how
    lines = [f"{drift.model or 'the ledger'}: totals as in {against}: {said}"]
    lines += [f"  {name:{wide[0]}}  {a:>{wide[1]}} -> {b:>{wide[2]}} FLOPs, {change}" for name, a, b, change in cells]
    return [escape_line(line) for line in lines], bool(far)


def _versions(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield f"{name} {before.get(name, NONE)} -> {after.get(name, NONE)}"


def _notes(drift: Drift) -> list[str]:
    return [*drift.notes, *(n for t in drift.traces for n in t.notes), *(n for c in drift.counters for n in c.notes)]


def _trace(trace: TraceDrift, verbose: bool) -> list[str]:
    lines = [f"{trace.name}: the work that runs changed{_by(trace.versions)}"]
    for (layer, op), changes in group_changes(trace.changes).items():
        lines.append(f"  {layer}  {op}: {_describe_change(changes)}")
        lines += _each(changes, verbose)
    return lines


def _counter(drift: CounterDrift, convention: str, verbose: bool) -> list[str]:
    before, after = drift.units
    amounts = f"{number(drift.totals[0])} {before} -> {number(drift.totals[1])} {after}"
    if drift.totals[0] == drift.totals[1] and before == after:
        amounts = f"{number(drift.totals[0])} {after} as before"
    lines = [f"{drift.counter}: {amounts}{_by(drift.versions)}"]
    groups = group_changes(drift.changes)
    layers = [*(layer for layer, _ in groups), *(c.layer for c in drift.causes)]
    for layer in dict.fromkeys(layers):
        by_op = {op: changes for (at, op), changes in groups.items() if at == layer}
        lines += [f"  {layer}  {op}: {_describe_change(changes)}" for op, changes in by_op.items()]
        if not by_op:
            lines.append(f"  {layer}: the counter's entries are unchanged")
        lines += [f"      {line}" for line in _why(drift, layer, verbose)]
        lines += [line for changes in by_op.values() for line in _each(changes, verbose)]
    return [*lines, *_sum(drift, convention)]


def _by(versions: tuple[Mapping[str, str], Mapping[str, str]]) -> str:
    upgrades = ", ".join(_versions(*versions))
    return f"  ({upgrades})" if upgrades else "  (same versions)"


def _why(drift: CounterDrift, layer: str, verbose: bool) -> Iterator[str]:
    """Cause lines, rules and broken rules of one layer, before and after."""
    for change in drift.causes:
        if change.layer == layer:
            yield f"{change.cause.value}: {_line(change.before)} -> {_line(change.after)}"
    for basis in drift.basis:
        if basis.layer == layer:
            yield from _first("before", basis.before, verbose)
            yield from _first("now", basis.after, verbose)
    for side, residuals in zip(("before", "now"), drift.open, strict=True):
        for residual in residuals:
            if residual.layer == layer:
                yield f"unexplained {side}: {format_signed(residual.amount)}: {residual.reason}"


def _first(when: str, words: tuple[str, ...], verbose: bool) -> Iterator[str]:
    shown = words if verbose or len(words) <= SHOWN + 1 else words[:SHOWN]
    yield from (f"{when}: {rule}" for rule in shown)
    if len(shown) < len(words):
        yield f"{when}: {len(words) - len(shown)} more (with --verbose)"


def _line(amount: int) -> str:
    return format_signed(amount) if amount else NONE


def _sum(drift: CounterDrift, convention: str) -> Iterator[str]:
    if drift.unknown:
        yield f"  the causes cannot be derived: {drift.unknown}"
        return
    if drift.normalised[0] != drift.normalised[1] or drift.residual:
        steps = "".join(
            f", {cause.value} {format_signed(amount)}" for cause, amount in drift.by_cause.items() if amount
        )
        ends = f"{number(drift.normalised[0])} to {number(drift.normalised[1])} FLOPs"
        yield f"  from {ends} (convention {convention}){steps}, unexplained {format_signed(drift.residual or 0)}"


def group_changes(changes: Iterable[Change]) -> dict[tuple[str, str], list[Change]]:
    """The changes by layer and op."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((change.layer, change.op), []).append(change)
    return groups


def _describe_change(changes: list[Change]) -> str:
    """``144 -> 288; saw (1, 3) before, (1, 6) now``: how the entries of one op at one layer changed."""
    if len(changes) == 1:
        change = changes[0]
        sentence = f"{_amount(change.before)} -> {_amount(change.after)}"
        before, after = change.before, change.after
        if before and after and before.shapes != after.shapes:
            sentence += f"; saw {before.shapes} before, {after.shapes} now"
        elif before and after and before.calls != after.calls:
            sentence += f"; {number(before.calls)} x before, {number(after.calls)} x now"
        return sentence
    before_, after_ = [c.before for c in changes if c.before], [c.after for c in changes if c.after]
    return f"{_several(before_)} -> {_several(after_)}"


def sides(changes: list[Change]) -> tuple[str, str]:
    """What the entries of one op at one layer were and are: their amount, and the shapes where these changed."""
    if len(changes) > 1:
        return _several([c.before for c in changes if c.before]), _several([c.after for c in changes if c.after])
    (change,) = changes
    before, after = change.before, change.after
    texts = [_amount(before), _amount(after)]
    if before and after and before.shapes != after.shapes:
        texts = [f"{text}; {side.shapes}" for text, side in zip(texts, (before, after), strict=True)]
    return texts[0], texts[1]


def _several(entries: list[Compared]) -> str:
    if not entries:
        return "no entry"
    amount = total(entries)
    if amount is None:
        return f"{len(entries)} of unknown work"
    if isinstance(amount, Work):
        return f"{len(entries)} with {_work(amount)}"
    return f"{number(amount)} in {len(entries)}"


def _amount(entry: Compared | None) -> str:
    if entry is None:
        return "no entry"
    if entry.amount is None:
        return "unknown work"
    return _work(entry.amount) if isinstance(entry.amount, Work) else number(entry.amount)


def _work(work: Work) -> str:
    return ", ".join(f"{name} {number(n)}" for name, n in work.items() if n) or "no work"


def _each(changes: list[Change], verbose: bool) -> list[str]:
    if not verbose:
        return []
    lines = []
    for change in changes:
        entry = change.after or change.before
        assert entry is not None
        lines.append(f"      {entry.id}: {_describe_change([change])}")
    return lines
