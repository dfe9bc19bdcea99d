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
from ..core.results import Match
from . import mapping
from .alignment import ROOT, Alignment
from .layer_names import reduced
from .partners import Pair, namesakes, partners, why
from .sites import Site, paths_of, sites_of


def aligned(tf: Trace, torch: Trace, given: Sequence[Match] = ()) -> tuple[Match, ...]:
    """The rows of two models in order of execution: what is ``given``, and the rest by their own evidence."""
    said = [{path for row in given for path in row.tf}, {path for row in given for path in row.torch}]
    mine, theirs = ([p for p in paths_of(t) if not _within(p, s)] for t, s in zip((tf, torch), said, strict=True))
    names = reduced(_with_containers(mine), _with_containers(theirs))
    shared = namesakes(names)
    left, right = sites_of(tf, mine, names[0], shared), sites_of(torch, theirs, names[1], shared)
    pairs = partners(left, right, shared)
    return _in_order([*given, *_rows(pairs, left, right)], paths_of(tf), paths_of(torch))


def alignment(
    declared: Sequence[Layer], traces: Iterable[Trace], file: Path | None = None
) -> tuple[Alignment, tuple[Match, ...]]:
    """How layers become rows: as the pair declares it, else by the traces of both frameworks and a mapping file.

    The rows are for the report, none where there was nothing to align. Raises UsageError for a mapping file that cannot be
    used, and where there is nothing to map.
    """
    by_name = {trace.framework: trace for trace in traces}
    if declared and file is not None:
        raise UsageError("--mapping is for models of your own; a pair says itself which layers belong together.")
    if declared or not {"tf", "torch"} <= set(by_name):  # an ONNX graph's nodes are named by whoever exported it
        return Alignment(declared), ()
    tf, torch = by_name["tf"], by_name["torch"]
    rows = aligned(tf, torch, mapping.read(file, (tf, torch)) if file is not None else ())
    return Alignment(layers_of(rows)), rows


def layers_of(rows: Iterable[Match]) -> list[Layer]:
    """The same as the layers of a pair file."""
    return [Layer(row.layer, row.tf, row.torch) for row in rows]


def counted(rows: Iterable[Match]) -> dict[str, int]:
    """How many rows each kind of evidence has matched, the most first."""
    found = Counter(row.by for row in rows if row.by)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def lone(rows: Iterable[Match]) -> dict[str, list[str]]:
    """The layers without a partner by framework, for those that have any; the path '' by the word for the whole model."""
    found: dict[str, list[str]] = {"tf": [], "torch": []}
    for row in rows:
        if not row.by:
            found["tf"] += [path or ROOT for path in row.tf]
            found["torch"] += [path or ROOT for path in row.torch]
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


def _rows(pairs: Sequence[Pair], left: Sequence[Site], right: Sequence[Site]) -> Iterator[Match]:
    for (some, others), by in pairs:
        tf, torch = _paths(some), _paths(others)
        yield Match(ROOT if "" in (*tf, *torch) else torch[0], tf, torch, by)
    taken = [{s.place for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    lone = [[s for s in side if s.place not in t] for side, t in zip((left, right), taken, strict=True)]
    for site in lone[0]:
        yield Match(_lone("tf", site), site.paths, (), "", why(site, lone[1]))
    for site in lone[1]:
        yield Match(_lone("torch", site), (), site.paths, "", why(site, lone[0]))


def _in_order(rows: Sequence[Match], tf: Iterable[str], torch: Iterable[str]) -> tuple[Match, ...]:
    """In PyTorch's order of execution; what only TensorFlow has comes behind what it follows there."""
    align = Alignment(layers_of(rows))
    place = {align.layer("torch", path): (index, -1) for index, path in reversed([*enumerate(torch)])}
    before = -1
    for index, path in enumerate(tf):
        before, _ = place.setdefault(align.layer("tf", path), (before, index))
    return tuple(sorted(rows, key=lambda row: place.get(row.layer, (len(place), 0))))


def _paths(sites: Iterable[Site]) -> tuple[str, ...]:
    return tuple(path for site in sites for path in site.paths)


def _lone(framework: str, site: Site) -> str:
    return f"{framework}:{site.path}" if site.path else ROOT
