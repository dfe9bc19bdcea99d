"""What moved between two takes, in words: one line where nothing did, else counter by counter and layer by layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..core.text import clean, number, signed
from ..drift.changes import Change, CounterDrift, Drift, TraceDrift
from ..drift.match import Held
from ..work import Work

NONE = "none"
SHOWN = 3
"""Rules of one layer that are shown before or after; --verbose shows all."""


def verdict(drift: Drift, against: str) -> str:
    """One line: that nothing moved, or how much did and where."""
    model = drift.model or "the ledger"
    if not drift.moved and not drift.failed:
        held = [_count(len(drift.counters), "counter"), _count(len(drift.traces), "trace")]
        renamed = f"; {_count(drift.renamed, 'node')} renamed" if drift.renamed else ""
        upgraded = "; ".join(_versions(*drift.versions))
        upgraded = f"; {upgraded}" if upgraded else ""
        noted = "".join(f"; {note}" for note in _notes(drift))
        return clean(f"{model}: unchanged: {' and '.join(held)} as in {against}{renamed}{upgraded}{noted}")
    parts = []
    if drift.moved:
        names = [c.counter for c in drift.counters if c.moved] + [t.name for t in drift.traces if t.moved]
        layers = ", ".join(_layers(drift)) or "no layer of its own"
        parts.append(f"{', '.join(names)} moved, at {layers}")
    parts += [f"{missing.name} ({missing.framework}) could not be had" for missing in drift.failed]
    return clean(f"{model}: not as in {against}: {'; '.join(parts)}")


def details(drift: Drift, *, verbose: bool = False) -> list[str]:
    """What moved, from which version to which, and why. Nothing where nothing moved, unless ``verbose``."""
    found = list(_versions(*drift.versions)) if drift.moved or verbose else []
    for missing in drift.failed:
        found.append(f"{missing.name} ({missing.framework}): {missing.state.value}: {missing.reason}")
    for trace in drift.traces:
        if trace.moved:
            found += ["", *_trace(trace, verbose)]
    for counter in drift.counters:
        if counter.moved:
            found += ["", *_counter(counter, drift.convention, verbose)]
    if drift.moved or verbose:
        found += ["", *(f"note: {note}" for note in _notes(drift))]
    if drift.moved and drift.renamed and not verbose:
        found.append(f"note: {_count(drift.renamed, 'node')} renamed (named with --verbose)")
    if verbose:
        pairs = [p for t in drift.traces for p in t.renamed] + [p for c in drift.counters for p in c.renamed]
        found += [f"note: renamed: {old} is {new} now" for old, new in dict.fromkeys(pairs)]
    while found and not found[-1]:
        found.pop()
    return [clean(line) for line in found]


def _count(n: int, what: str) -> str:
    return f"{number(n)} {what}{'' if n == 1 else 's'}"


def _layers(drift: Drift) -> list[str]:
    found = [change.layer for trace in drift.traces for change in trace.changes]
    found += [change.layer for counter in drift.counters for change in counter.changes]
    found += [change.layer for counter in drift.counters for change in counter.causes]
    return list(dict.fromkeys(found))


def _versions(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield f"{name} {before.get(name, NONE)} -> {after.get(name, NONE)}"


def _notes(drift: Drift) -> list[str]:
    return [*drift.notes, *(n for t in drift.traces for n in t.notes), *(n for c in drift.counters for n in c.notes)]


def _trace(trace: TraceDrift, verbose: bool) -> list[str]:
    found = [f"{trace.name}: the work that runs is another one{_by(trace.versions)}"]
    for (layer, op), changes in _grouped(trace.changes).items():
        found.append(f"  {layer}  {op}: {_moved(changes)}")
        found += _each(changes, verbose)
    return found


def _counter(drift: CounterDrift, convention: str, verbose: bool) -> list[str]:
    before, after = drift.units
    total = f"{number(drift.totals[0])} {before} -> {number(drift.totals[1])} {after}"
    if drift.totals[0] == drift.totals[1] and before == after:
        total = f"{number(drift.totals[0])} {after} as before"
    found = [f"{drift.counter}: {total}{_by(drift.versions)}"]
    groups = _grouped(drift.changes)
    layers = [*(layer for layer, _ in groups), *(c.layer for c in drift.causes)]
    for layer in dict.fromkeys(layers):
        mine = {op: changes for (at, op), changes in groups.items() if at == layer}
        found += [f"  {layer}  {op}: {_moved(changes)}" for op, changes in mine.items()]
        if not mine:
            found.append(f"  {layer}: the counter says what it said")
        found += [f"      {line}" for line in _why(drift, layer, verbose)]
        found += [line for changes in mine.values() for line in _each(changes, verbose)]
    return [*found, *_sum(drift, convention)]


def _by(versions: tuple[Mapping[str, str], Mapping[str, str]]) -> str:
    said = ", ".join(_versions(*versions))
    return f"  ({said})" if said else "  (same versions)"


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
                yield f"unexplained {side}: {signed(residual.amount)}: {residual.reason}"


def _first(when: str, words: tuple[str, ...], verbose: bool) -> Iterator[str]:
    shown = words if verbose or len(words) <= SHOWN + 1 else words[:SHOWN]
    yield from (f"{when}: {rule}" for rule in shown)
    if len(shown) < len(words):
        yield f"{when}: {len(words) - len(shown)} more (with --verbose)"


def _line(amount: int) -> str:
    return signed(amount) if amount else NONE


def _sum(drift: CounterDrift, convention: str) -> Iterator[str]:
    if drift.unknown:
        yield f"  the causes cannot be derived: {drift.unknown}"
        return
    sums: dict[str, int] = {}
    for line in drift.lines:
        sums[line.cause.value] = sums.get(line.cause.value, 0) + line.amount
    if drift.normalised[0] != drift.normalised[1] or drift.residual:
        steps = "".join(f", {cause} {signed(amount)}" for cause, amount in sums.items() if amount)
        ends = f"{number(drift.normalised[0])} to {number(drift.normalised[1])} FLOPs"
        yield f"  from {ends} (convention {convention}){steps}, unexplained {signed(drift.residual or 0)}"


def _grouped(changes: Iterable[Change]) -> dict[tuple[str, str], list[Change]]:
    found: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        found.setdefault((change.layer, change.op), []).append(change)
    return found


def _moved(changes: list[Change]) -> str:
    if len(changes) == 1:
        change = changes[0]
        said = f"{_amount(change.before)} -> {_amount(change.after)}"
        before, after = change.before, change.after
        if before and after and before.shapes != after.shapes:
            said += f"; saw {before.shapes} before, {after.shapes} now"
        elif before and after and before.calls != after.calls:
            said += f"; {number(before.calls)} x before, {number(after.calls)} x now"
        return said
    before_, after_ = [c.before for c in changes if c.before], [c.after for c in changes if c.after]
    return f"{_several(before_)} -> {_several(after_)}"


def _several(held: list[Held]) -> str:
    if not held:
        return "not there"
    amounts = [h.amount for h in held]
    if any(a is None for a in amounts):
        return f"{len(held)} of unknown work"
    if isinstance(amounts[0], Work):
        total = sum((a for a in amounts if isinstance(a, Work)), Work())
        return f"{len(held)} with {_work(total)}"
    return f"{number(sum(a for a in amounts if isinstance(a, int)))} in {len(held)}"


def _amount(held: Held | None) -> str:
    if held is None:
        return "not there"
    if held.amount is None:
        return "unknown work"
    return _work(held.amount) if isinstance(held.amount, Work) else number(held.amount)


def _work(work: Work) -> str:
    return ", ".join(f"{name} {number(n)}" for name, n in work.items() if n) or "no work"


def _each(changes: list[Change], verbose: bool) -> list[str]:
    if not verbose:
        return []
    found = []
    for change in changes:
        held = change.after or change.before
        assert held is not None
        found.append(f"      {held.id}: {_moved([change])}")
    return found
