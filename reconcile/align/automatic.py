"""Which layer of the one model is which of the other, where nobody has said so: names first, then order, shapes and work.

An assignment is what the evidence forces: a name that only one layer has on either side, or a place in the order of execution
that every best alignment gives it. What could be one of several stays without a partner, a row of its own on its side. Every
layer is in exactly one row, so that rows always add up to both models' work. docs/alignment.md has the rules in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..core.errors import UsageError
from ..core.records import Layer, Trace
from ..core.registry import frameworks
from ..core.results import Match
from . import mapping
from .alignment import ROOT, Alignment
from .layer_names import reduced
from .partners import Pair, namesakes, partners, why
from .sites import Site, paths_of, sites_of


def aligned(a: Trace, b: Trace, given: Sequence[Match] = ()) -> tuple[Match, ...]:
    """The rows of two models in order of execution: what is ``given``, and the rest by their own evidence."""
    traces = (a, b)
    held = [{path for row in given for path in row.paths[t.framework]} for t in traces]
    left, right = ([p for p in paths_of(t) if not _within(p, h)] for t, h in zip(traces, held, strict=True))
    names = reduced(_with_containers(left), _with_containers(right))
    shared = namesakes(names)
    sites = (sites_of(a, left, names[0], shared), sites_of(b, right, names[1], shared))
    rows = _rows((a.framework, b.framework), partners(*sites, shared), sites)
    return _in_order([*given, *rows], a, b)


def alignment(
    declared: Sequence[Layer], traces: Iterable[Trace], file: Path | None = None
) -> tuple[Alignment, tuple[Match, ...]]:
    """How layers become rows: as the pair declares it, else by the traces of both frameworks and a mapping file.

    The rows are for the report, none where there was nothing to align. Raises UsageError for a mapping file that cannot be
    used, and where there is nothing to map.
    """
    if declared and file is not None:
        raise UsageError("--mapping is for models of your own; a pair says itself which layers belong together.")
    named = [trace for trace in traces if is_named(trace.framework)]
    if declared or len(named) < 2:
        return Alignment(declared), ()
    a, b = named[:2]
    rows = aligned(a, b, mapping.read(file, (a, b)) if file is not None else ())
    return Alignment(layers_of(rows)), rows


def is_named(framework: str) -> bool:
    """Whether an author names the layers there: an ONNX graph's nodes are named by whatever exported it."""
    record = frameworks().get(framework)
    return record is None or record.aligned


def layers_of(rows: Iterable[Match]) -> list[Layer]:
    """The same as the layers of a pair file."""
    return [Layer(row.layer, **row.paths) for row in rows]


def counted(rows: Iterable[Match]) -> dict[str, int]:
    """How many rows each kind of evidence has matched, the most first."""
    found = Counter(row.by for row in rows if row.by)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def lone(rows: Iterable[Match]) -> dict[str, list[str]]:
    """The layers without a partner by framework, for those that have any; the path '' by the word for the whole model."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for framework, paths in row.paths.items():
            alone = found.setdefault(framework, [])
            if not row.by:
                alone += [path or ROOT for path in paths]
    return {framework: paths for framework, paths in found.items() if paths}


def _with_containers(paths: Iterable[str]) -> list[str]:
    """The paths and those of every layer around them, '' for the model itself."""
    found = dict.fromkeys([""])
    for path in paths:
        parts = path.split(".")
        found.update(dict.fromkeys(".".join(parts[:end]) for end in range(1, len(parts) + 1)))
    return list(found)


def _within(path: str, said: set[str]) -> bool:
    parts = path.split(".")
    return any(".".join(parts[:end]) in said for end in range(1, len(parts) + 1))


def _rows(
    frameworks: tuple[str, str], pairs: Sequence[Pair], sites: tuple[Sequence[Site], Sequence[Site]]
) -> Iterator[Match]:
    for (some, others), by in pairs:
        paths = (_paths(some), _paths(others))
        yield Match(
            ROOT if "" in (*paths[0], *paths[1]) else paths[1][0], dict(zip(frameworks, paths, strict=True)), by
        )
    taken = [{s.place for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    alone = [[s for s in side if s.place not in t] for side, t in zip(sites, taken, strict=True)]
    for i, framework in enumerate(frameworks):
        for site in alone[i]:
            layer = f"{framework}:{site.path}" if site.path else ROOT
            held = {name: site.paths if name == framework else () for name in frameworks}
            yield Match(layer, held, "", why(site, alone[1 - i]))


def _in_order(rows: Sequence[Match], a: Trace, b: Trace) -> tuple[Match, ...]:
    """In the second model's order of execution; what only the first one has comes behind what it follows there."""
    align = Alignment(layers_of(rows))
    ranks = {align.layer(b.framework, path): (index, -1) for index, path in reversed([*enumerate(paths_of(b))])}
    before = -1
    for index, path in enumerate(paths_of(a)):
        before, _ = ranks.setdefault(align.layer(a.framework, path), (before, index))
    return tuple(sorted(rows, key=lambda row: ranks.get(row.layer, (len(ranks), 0))))


def _paths(sites: Iterable[Site]) -> tuple[str, ...]:
    return tuple(path for site in sites for path in site.paths)
