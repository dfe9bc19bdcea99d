"""Which layer of the one model is which of the other, where nobody has said so: names first, then order, shapes and work.

An assignment is what the evidence forces: a name that only one layer has on either side, or a place in the order of execution
that every best alignment gives it. What could be one of several stays without a partner, a row of its own on its side. Every
layer is in exactly one row, so that rows always add up to both models' work. docs/alignment.md has the rules in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import mapping
from .align import ROOT, Alignment
from .errors import UsageError
from .layer_names import Name, likeness, reduced
from .records import Layer, Trace
from .results import Match
from .sequences import ascending, certain
from .sites import Site, paths_of, sites_of
from .work import ZERO, Work

AMBIGUOUS = "what would fit is there more than once, or at another place"
ALONE = "no layer of the other model fits"


class Pair(NamedTuple):
    """Sites that belong together, those of TensorFlow and those of PyTorch, and what says so."""

    sides: tuple[Sequence[Site], Sequence[Site]]
    by: str


def aligned(tf: Trace, torch: Trace, given: Sequence[Match] = ()) -> tuple[Match, ...]:
    """The rows of two models in order of execution: what is ``given``, and the rest by their own evidence."""
    said = [{path for row in given for path in row.tf}, {path for row in given for path in row.torch}]
    mine, theirs = ([p for p in paths_of(t) if not _within(p, s)] for t, s in zip((tf, torch), said, strict=True))
    names = reduced(_with_containers(mine), _with_containers(theirs))
    left, right = sites_of(tf, mine, names[0]), sites_of(torch, theirs, names[1])
    pairs = [Pair(([a], [b]), _evidence("name", a, b)) for a, b in _by_name(left, right)]
    for fits, of_products in ((_products, True), (_others, False)):
        for run_a, run_b in list(_runs(pairs, left, right)):
            some_a, some_b = ([s for s in run if (s.products != (0, 0)) is of_products] for run in (run_a, run_b))
            for i, j in certain(some_a, some_b, fits):
                a, b = some_a[i], some_b[j]
                pairs.append(Pair(([a], [b]), _evidence("order", a, b)))
    for path_a, path_b in _subtrees(names):
        pairs = _merged(pairs, _below(path_a, left), _below(path_b, right), "name")
    for run_a, run_b in list(_runs(pairs, left, right)):
        pairs = _merged(pairs, run_a, run_b, "order")
    pairs = _with_activations(pairs, left, right)
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
    if declared or len(by_name) < 2:
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


def _by_name(left: Sequence[Site], right: Sequence[Site]) -> list[tuple[Site, Site]]:
    """Sites whose name only one site has on either side. Products on one side alone are no match."""
    tables = []
    for side in (left, right):
        times = Counter(site.name for site in side)
        tables.append({site.name: site for site in side if times[site.name] == 1})
    both = [(site, tables[1][name]) for name, site in tables[0].items() if name in tables[1]]
    return [
        (a, b) for a, b in both if not a.name.key or not (a.known and b.known) or bool(a.work.mac) == bool(b.work.mac)
    ]


def _evidence(first: str, a: Site, b: Site) -> str:
    found = [first]
    if first != "name" and likeness(a.name, b.name) > 1:
        found.append("words")
    if first != "name" and a.operands & b.operands:
        found.append("shape")
    if a.known and b.known and (a.products == b.products if a.work.mac else a.work == b.work):
        found.append("work")
    return "+".join(found)


def _products(a: Site, b: Site) -> int:
    """How well two sites with products fit: the same work before the same filter, that before the same words."""
    if not (a.known and b.known):
        return 0
    shape, words = bool(a.operands & b.operands), likeness(a.name, b.name)
    if a.products == b.products:
        return 100 + 10 * shape + words
    as_long = a.work.mac * b.work.accumulators == b.work.mac * a.work.accumulators
    return 20 + words if shape and as_long else 0


def _others(a: Site, b: Site) -> int:
    """How well two sites without products fit: the same elementary operations, or a name in the same words."""
    if not (a.known and b.known):
        return 0
    words = likeness(a.name, b.name)
    if a.work == b.work:
        return 10 + words
    return words if words > 1 else 0


def _runs(
    pairs: Iterable[Pair], left: Sequence[Site], right: Sequence[Site]
) -> Iterator[tuple[list[Site], list[Site]]]:
    """The sites without a partner on both sides, from one pair to the next of those pairs that keep the order."""
    pairs = list(pairs)
    taken = [{s.place for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    fixed = ascending([(pair.sides[0][-1].place, pair.sides[1][-1].place) for pair in pairs])
    start = (-1, -1)
    for end in [*fixed, (len(left), len(right))]:
        yield (
            [s for s in left[start[0] + 1 : end[0]] if s.place not in taken[0]],
            [s for s in right[start[1] + 1 : end[1]] if s.place not in taken[1]],
        )
        start = end


def _subtrees(names: tuple[Mapping[str, Name], Mapping[str, Name]]) -> list[tuple[str, str]]:
    """Layers with all that is below them, of a name that only one has on either side; the deepest first."""
    tables = []
    for side in names:
        times = Counter(side.values())
        tables.append({name: path for path, name in side.items() if name.key and times[name] == 1})
    both = [(path, tables[1][name]) for name, path in tables[0].items() if name in tables[1]]
    return sorted(both, key=lambda pair: (-pair[0].count("."), pair))


def _below(path: str, sites: Iterable[Site]) -> list[Site]:
    return [s for s in sites if all(p == path or p.startswith(path + ".") for p in s.paths)]


def _merged(pairs: list[Pair], some_a: Sequence[Site], some_b: Sequence[Site], first: str) -> list[Pair]:
    """What nothing tells apart, but stands below the same name or between the same neighbours and does the same products
    altogether, is one row: an attention layer that is five layers in the other framework."""
    even = [_products_of(pair.sides[0]) == _products_of(pair.sides[1]) for pair in pairs]
    held = [pair for pair, same in zip(pairs, even, strict=True) if same]
    done = [{s.place for pair in held for s in pair.sides[i]} for i in (0, 1)]
    a, b = ([s for s in some if s.place not in d] for some, d in zip((some_a, some_b), done, strict=True))
    inside = [{s.place for s in side} for side in (a, b)]
    odd = [pair for pair, same in zip(pairs, even, strict=True) if not same]
    places = [[s.place in inside[i] for i in (0, 1) for s in pair.sides[i]] for pair in odd]
    across = any(any(found) and not all(found) for found in places)
    known = all(s.known for side in (a, b) for s in side)
    same = _products_of(a) == _products_of(b) != (0, 0)
    if across or not known or not same or max(len(a), len(b)) < 2:
        return pairs
    kept = [pair for pair, found in zip(odd, places, strict=True) if not any(found)]
    return [*held, *kept, Pair((a, b), f"{first}+together+work")]


def _with_activations(pairs: list[Pair], left: Sequence[Site], right: Sequence[Site]) -> list[Pair]:
    """What comes right after a layer of the one side, without a partner, and is to the last operation what the layer does more
    on the other side, is part of it: Keras' dense layer applies its activation itself."""
    taken = [{s.place for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    found = []
    for pair in pairs:
        sides, grown = list(pair.sides), False
        more = _work_of(sides[0]) - _work_of(sides[1])
        for i, sites, want in ((0, left, ZERO - more), (1, right, more)):
            place = sides[i][-1].place + 1
            if (
                place < len(sites)
                and place not in taken[i]
                and sites[place].known
                and want
                and sites[place].work == want
            ):
                sides[i], grown = [*sides[i], sites[place]], True
        by = f"{pair.by.partition('+')[0]}+together+work" if grown else pair.by
        found.append(Pair((sides[0], sides[1]), by))
    return found


def _work_of(sites: Iterable[Site]) -> Work:
    return sum((s.work for s in sites), ZERO)


def _products_of(sites: Iterable[Site]) -> tuple[int, int]:
    found = [s.products for s in sites]
    return sum(mac for mac, _ in found), sum(accumulators for _, accumulators in found)


def _rows(pairs: Sequence[Pair], left: Sequence[Site], right: Sequence[Site]) -> Iterator[Match]:
    for (some, others), by in pairs:
        tf, torch = _paths(some), _paths(others)
        yield Match(ROOT if "" in (*tf, *torch) else torch[0], tf, torch, by)
    taken = [{s.place for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    lone = [[s for s in side if s.place not in t] for side, t in zip((left, right), taken, strict=True)]
    for site in lone[0]:
        yield Match(_lone("tf", site), site.paths, (), "", _why(site, lone[1]))
    for site in lone[1]:
        yield Match(_lone("torch", site), (), site.paths, "", _why(site, lone[0]))


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


def _why(site: Site, others: Iterable[Site]) -> str:
    fits: Callable[[Site, Site], int] = _products if site.work.mac else _others
    there = [s for s in others if bool(s.work.mac) == bool(site.work.mac)]
    return AMBIGUOUS if any(fits(site, other) >= 10 for other in there) else ALONE
