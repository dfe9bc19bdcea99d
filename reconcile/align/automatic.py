"""Automatic alignment of models' layers: by names first, then by order, shapes and work.

Two layers are matched only if the evidence leaves no choice: a name that only one layer has on either side, or a position in
the order of execution that every best alignment gives it. A layer with several possible partners stays unmatched and gets its
own row. Every layer is in exactly one row, so the rows always add up to both models' work. docs/alignment.md states the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..core.errors import UsageError
from ..core.records import Layer, Trace
from ..core.registry import frameworks
from ..core.results import Match
from . import mapping
from .alignment import ROOT, Alignment, enclosing_layers, inside, name_row, outermost
from .layer_names import reduce_names
from .partners import Pair, namesakes, partners, why
from .sites import Site, paths_of, sites_of


def align_layers(a: Trace, b: Trace, given: Sequence[Match] = ()) -> tuple[Match, ...]:
    """The rows of two models in order of execution: the ``given`` rows, and the other layers matched by evidence."""
    traces = (a, b)
    mapped = [{path for row in given for path in row.paths[t.framework]} for t in traces]
    left, right = (
        [p for p in paths_of(t) if h.isdisjoint(enclosing_layers(p))] for t, h in zip(traces, mapped, strict=True)
    )
    names = reduce_names(_with_containers(left), _with_containers(right))
    shared = namesakes(names)
    sites = (sites_of(a, left, names[0], shared), sites_of(b, right, names[1], shared))
    rows = [*given, *_rows((a.framework, b.framework), partners(*sites, shared), sites)]
    return _in_order(_with_idle(rows, traces), a, b)


def alignment(
    declared: Sequence[Layer], traces: Iterable[Trace], file: Path | None = None
) -> tuple[Alignment, tuple[Match, ...]]:
    """How layers become rows: as the pair declares, else from the traces of two or more frameworks and a mapping file.

    The rows are for the report; there are none if there was nothing to align. Raises UsageError for a mapping file that
    cannot be used, and for one that is given with a pair.
    """
    if declared and file is not None:
        raise UsageError("--mapping is for your own models; a pair already declares which layers belong together.")
    if declared:
        return Alignment(declared), ()
    named = [trace for trace in traces if is_named(trace.framework)]
    wholes = {trace.framework: loops_of(trace) for trace in named}
    given = mapping.read_mapping(file, named) if file is not None and len(named) == 2 else ()
    named = [join_layers(trace, wholes[trace.framework]) for trace in named]
    if len(named) < 2:
        return Alignment((), wholes), ()
    rows = together(named) if len(named) > 2 else align_layers(named[0], named[1], given)
    return Alignment(layers_of(rows), wholes), rows


def together(traces: Sequence[Trace]) -> tuple[Match, ...]:
    """The rows of several models, as of two, in order of execution.

    The first two are aligned, and each further one with the earlier model with which it has most rows in common: layers that
    share a row with the same layer share one row.
    """
    rows = align_layers(traces[0], traces[1])
    for index, trace in enumerate(traces[2:], 2):
        ways = [align_layers(earlier, trace) for earlier in traces[:index]]
        best = max(ways, key=lambda way: sum(bool(row.by) for row in way))
        rows = _merge_rows([*rows, *best], [t.framework for t in traces[: index + 1]])
    return _in_order(rows, *traces)


def is_named(framework: str) -> bool:
    """Whether an author names the layers in this framework: an exporter names the nodes of an ONNX graph."""
    record = frameworks().get(framework)
    return record is None or record.aligned


def layers_of(rows: Iterable[Match]) -> list[Layer]:
    """The rows as the layers that a pair file would declare."""
    return [Layer(row.layer, **row.paths) for row in rows]


def count_matches(rows: Iterable[Match]) -> dict[str, int]:
    """How many rows each kind of evidence matched, the most first."""
    counts = Counter(row.by for row in rows if row.by)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def lone(rows: Iterable[Match]) -> dict[str, list[str]]:
    """The layers without a partner, for each framework that has any; the path '' appears as ROOT."""
    layers: dict[str, list[str]] = {}
    for row in rows:
        for framework, paths in row.paths.items():
            alone = layers.setdefault(framework, [])
            if not row.by:
                alone += [path or ROOT for path in paths]
    return {framework: paths for framework, paths in layers.items() if paths}


def _with_containers(paths: Iterable[str]) -> list[str]:
    """The paths and those of all enclosing layers, '' for the model itself."""
    return list(dict.fromkeys(["", *(outer for path in paths for outer in enclosing_layers(path))]))


def _rows(
    frameworks: tuple[str, str], pairs: Sequence[Pair], sites: tuple[Sequence[Site], Sequence[Site]]
) -> Iterator[Match]:
    for (some, others), by in pairs:
        paths = (_paths(some), _paths(others))
        sides = dict(zip(frameworks, paths, strict=True))
        yield Match(name_row(sides), sides, by)
    taken = [{s.position for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    alone = [[s for s in side if s.position not in t] for side, t in zip(sites, taken, strict=True)]
    for i, framework in enumerate(frameworks):
        for site in alone[i]:
            sides = {name: site.paths if name == framework else () for name in frameworks}
            yield Match(name_row(sides), sides, "", why(site, alone[1 - i]))


def _with_idle(rows: Sequence[Match], traces: Sequence[Trace]) -> list[Match]:
    """The rows, each with the layers that compute nothing around layers of this row alone, as the loop around several cells."""
    found = [dict(row.paths) for row in rows]
    for trace in traces:
        side = trace.framework
        holds: dict[str, set[int]] = {}
        for at, row in enumerate(rows):
            for path in row.paths[side]:
                for outer in _with_containers([path]):
                    holds.setdefault(outer, set()).add(at)
        named = {path for row in rows for path in row.paths[side]}
        for path in trace.layers:
            if path and path not in named and len(holds.get(path, ())) == 1:
                (at,) = holds[path]
                found[at][side] = (*found[at][side], path)
    return [replace(row, paths=paths) for row, paths in zip(rows, found, strict=True)]


def _merge_rows(rows: Iterable[Match], sides: Sequence[str]) -> tuple[Match, ...]:
    """Merge rows that have a layer in common, and the rows of the models themselves."""
    groups: dict[tuple[str, str], list[Match]] = {}
    for row in rows:
        others = {id(group): group for key in _keys(row) if (group := groups.get(key)) is not None}
        whole = [*(member for group in others.values() for member in group), row]
        groups.update((key, whole) for member in whole for key in _keys(member))
    return tuple(_one_row(group, sides) for group in {id(group): group for group in groups.values()}.values())


def _keys(row: Match) -> list[tuple[str, str]]:
    return [(side if path else "", path) for side, paths in row.paths.items() for path in paths]


def _one_row(rows: Sequence[Match], sides: Sequence[str]) -> Match:
    """Merge these into one row. Its name is that of the second framework's first layer; without one, ``framework:layer``."""
    paths = {side: tuple(dict.fromkeys(path for row in rows for path in row.paths.get(side, ()))) for side in sides}
    second = paths[sides[1]]
    side, own = next((side, some) for side, some in paths.items() if some)
    name = ROOT if any("" in some for some in paths.values()) else second[0] if second else f"{side}:{own[0]}"
    by = " and ".join(dict.fromkeys(row.by for row in rows if row.by))
    return Match(name, paths, by, "" if by else rows[0].comment)


def _in_order(rows: Sequence[Match], a: Trace, b: Trace, *more: Trace) -> tuple[Match, ...]:
    """The rows in the second model's order of execution; a row that it lacks follows its predecessor in another model."""
    align = Alignment(layers_of(rows))
    ranks = {align.layer(b.framework, path): (index, -1) for index, path in reversed([*enumerate(paths_of(b))])}
    for trace in (a, *more):
        before = -1
        for index, path in enumerate(paths_of(trace)):
            before, _ = ranks.setdefault(align.layer(trace.framework, path), (before, index))
    return tuple(sorted(rows, key=lambda row: ranks.get(row.layer, (len(ranks), 0))))


def _paths(sites: Iterable[Site]) -> tuple[str, ...]:
    return tuple(path for site in sites for path in site.paths)


def loops_of(trace: Trace) -> frozenset[str]:
    """The layers that hold a loop, compute nothing of their own, and have one layer inside that computes, in the loop.

    Example: a recurrent layer of Keras, which runs its cell.
    """
    layers = {op.id: op.layer for op in trace.ops if op.layer}
    holding = {layers[call] for op in trace.ops for call in op.within if inside(op.layer, layers.get(call, op.layer))}
    working = paths_of(trace) if holding else ()
    return frozenset(path for path in holding if path not in working and sum(inside(x, path) for x in working) == 1)


def join_layers(trace: Trace, wholes: frozenset[str]) -> Trace:
    """The trace with all that runs inside of these layers as ops of the layers themselves."""
    if not wholes:
        return trace
    ops = tuple(op._replace(layer=outermost(op.layer, wholes)) for op in trace.ops)
    return trace._replace(ops=ops, layers=tuple(dict.fromkeys(outermost(path, wholes) for path in trace.layers)))
