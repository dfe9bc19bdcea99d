"""A change of the model itself, reported once for all counters: FLOPs by layer, before and after, and what changed there.

One line names the counters that count the same change. report.py describes a counter that changed in another way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..core.number_format import format_signed, list_first, number, percent, probability, si
from ..core.registry import frameworks
from .changes import Change, CounterDrift, Drift, TraceDrift

WEIGHTS = 1
"""The index of the weights among the tensors that a convolution takes."""
TENSORS = 2
"""Tensors of one op that are shown."""
NAMED = 4
"""Layers that came, went or changed that the verdict names."""
LAYERS = 20
"""Layers of one trace that are shown; --verbose shows all."""


def traces_in_flops(drift: Drift) -> list[TraceDrift]:
    """The traces whose change is known in FLOPs under the convention."""
    return [trace for trace in drift.traces if trace.has_moved and trace.layers]


def other_counters(drift: Drift) -> list[CounterDrift]:
    """The counters that changed, and not by that change of the model alone."""
    followed = {trace.framework for trace in traces_in_flops(drift)}
    return [c for c in drift.counters if c.has_moved and not (c.follows and c.framework in followed)]


def following_counters(drift: Drift) -> list[str]:
    """The names of the counters that count that change and nothing else."""
    others = other_counters(drift)
    return [c.counter for c in drift.counters if c.has_moved and c not in others]


def change_sentences(drift: Drift) -> list[str]:
    """``PyTorch: 5.60 to 9.80 MFLOPs, +75.0 %: conv2, kernel 3x3 to 5x5`` for each trace, without the framework's title where
    there is only one; two that say the same say it once."""
    said: dict[str, list[str]] = {}
    for trace in traces_in_flops(drift):
        said.setdefault(_change_sentence(trace), []).append(frameworks()[trace.framework].title)
    return list(said) if len(drift.traces) < 2 else [f"{' and '.join(names)}: {text}" for text, names in said.items()]


def layer_rows(trace: TraceDrift) -> list[tuple[str, str, str, str, str]]:
    """A row of texts for each layer that changed: layer, before, after, per cent, what changed; the total last."""
    by_layer: dict[str, list[Change]] = {}
    for change in trace.changes:
        by_layer.setdefault(change.layer, []).append(change)
    found = [
        (layer, *amount_cells(before, after), _describe_op_change(by_layer[layer]))
        for layer, before, after in trace.layers
    ]
    return [*found, ("total", *amount_cells(*trace.totals), "")]


def layer_lines(trace: TraceDrift, convention: str, *, verbose: bool) -> list[str]:
    """The rows of ``layer_rows`` as lines of text: the total last and, without ``verbose``, the first ``LAYERS`` layers."""
    *layers, total = layer_rows(trace)
    shown = layers if verbose else layers[:LAYERS]
    left = [f"  {len(layers) - len(shown):,} more layers (with --verbose)"] if len(shown) < len(layers) else []
    texts = [
        f"  {layer}  {before} -> {after}, {change}{f': {what}' if what else ''}"
        for layer, before, after, change, what in (*shown, total)
    ]
    return [f"{trace.name}: the work that runs, in FLOPs (convention {convention})", *texts[:-1], *left, texts[-1]]


def _change_sentence(trace: TraceDrift) -> str:
    before, after = (si(total, "FLOPs") for total in trace.totals)
    if before == after:  # three digits do not show the change
        before, after = (f"{number(total)} FLOPs" for total in trace.totals)
    number_, unit = before.split(" ")
    start = number_ if after.endswith(f" {unit}") else before
    change = amount_cells(*trace.totals)[2]
    (only, _, _, _, what), *_ = layer_rows(trace)
    if len(trace.layers) == 1 and what:
        return f"{start} to {after}, {change}: {only}, {what}"
    kinds: dict[str, dict[str, int]] = {}
    for layer, old, new in trace.layers:
        kinds.setdefault("new " if not old else "" if new else "gone ", {})[layer] = new - old
    where = []
    for kind, by in kinds.items():
        where.append(f"{kind}{list_first(list(by), NAMED)} ({format_signed(sum(by.values()))})")
    return f"{start} to {after}, {change}: {'; '.join(where)}"


def amount_cells(before: int, after: int) -> tuple[str, str, str]:
    """FLOPs before and after, and how they changed: ``+75.0 %``, ``+0.052 %``, ``as before``, ``new``."""
    if before == after:
        return number(before), number(after), "as before"
    sign = "+" if after > before else "-"
    change = abs(after - before)
    share = probability(change / before) if 100 * change < before else percent(change, before)
    return number(before), number(after), f"{sign}{share}" if share else "new"


def _describe_op_change(changes: Iterable[Change]) -> str:
    """What the first op of a layer that changed saw before and sees now: ``kernel 3x3 to 5x5``; '' if it saw the same."""
    changes = list(changes)
    before, after = changes[0].before, changes[0].after
    if before is None or after is None:
        return f"{changes[0].op} is {'new' if before is None else 'gone'}"
    old, new = (re.findall(r"\([\d, ]*\)", side.shapes.partition(" -> ")[0]) for side in (before, after))
    differ = [(index, a, b) for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b]
    if len(old) != len(new) or not differ:
        return f"{number(before.calls)} calls to {number(after.calls)}" if before.calls != after.calls else ""
    weights = [(a, b) for index, a, b in differ if index == WEIGHTS and len(differ) == 1]
    op = changes[0].op
    if "conv" in op.lower() and weights and (kernel := _kernel(*weights[0], op)):
        return f"kernel {kernel}"
    differ.sort(key=lambda each: -each[1].count(","))  # a weight says more than its bias
    return list_first(list(dict.fromkeys(f"{a} to {b}" for _, a, b in differ)), TENSORS)


def _kernel(before: str, after: str, op: str) -> str:
    """``3x3 to 5x5`` for the weights of a convolution whose channels stay; else ''. The channels are the first two sizes, or the
    last two of an op that is written with a capital (Conv2D)."""
    old, new = (shape.strip("()").split(", ") for shape in (before, after))
    channels, kernel = (slice(-2, None), slice(None, -2)) if op[0].isupper() else (slice(None, 2), slice(2, None))
    if old[channels] != new[channels]:
        return ""
    return f"{'x'.join(old[kernel])} to {'x'.join(new[kernel])}"
