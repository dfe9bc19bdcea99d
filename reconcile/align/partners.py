"""Matching of layers (sites) of two models by name, order, shape and work: pairs, each with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..work import ZERO, Work, prod
from .alignment import enclosing_layers, inside
from .layer_names import Name, likeness
from .sequence import find_ascending, find_certain_pairs
from .sites import Site

SEVERAL_LAYERS_FIT = "several layers fit, or one that fits is in another position"
NO_LAYER_FITS = "no layer of the other model fits"
CROSSED = 4
"""How many products may run before a layer in one model and after it in the other: a branch of a block."""


class Pair(NamedTuple):
    """Sites of the first and of the second model that belong together, and the evidence."""

    sides: tuple[Sequence[Site], Sequence[Site]]
    by: str


Names = tuple[Mapping[str, Name], Mapping[str, Name]]
"""Both sides' names by path, of layers and of their enclosing layers."""


def partners(left: Sequence[Site], right: Sequence[Site], shared: Mapping[Name, tuple[str, str]]) -> list[Pair]:
    """Every pair for which the evidence leaves no choice, the strongest evidence first; no site is in two pairs.

    If an enclosing layer has a namesake in the other model, its inner layers are matched only within that namesake.
    """
    pairs = [Pair(([a], [b]), _evidence("name", a, b)) for a, b in _by_name(left, right)]
    for of_products in (True, False):
        for sequences in (_runs, _homes):
            for run_a, run_b in list(sequences(pairs, left, right)):
                pairs += _by_order(run_a, run_b, of_products)
    around = [_around_open(pairs, i, sites) for i, sites in enumerate((left, right))]
    for path_a, path_b in shared.values():
        if path_a in around[0] and path_b in around[1]:
            pairs = _merge_pairs(pairs, _below(path_a, left), _below(path_b, right), "name")
    for run_a, run_b in list(_runs(pairs, left, right)):
        pairs = _merge_pairs(pairs, run_a, run_b, "order")
    pairs += _only(pairs, left, right)
    return _with_one_root(_with_inner(_with_activations(pairs, left, right), left, right), left, right)


def _by_order(run_a: Sequence[Site], run_b: Sequence[Site], of_products: bool) -> list[Pair]:
    """Pairs by their position in two sequences, of sites with products or of those without that are in a layer. If fewer than
    half of the shorter sequence match, the order is no evidence and there are no pairs."""
    a, b = (
        [s for s in run if (s.work.mac if of_products else not s.work.mac and s.name.key)] for run in (run_a, run_b)
    )
    matches = find_certain_pairs(a, b, _products if of_products else _others)
    if 2 * len(matches) < min(len(a), len(b)):
        return []
    return [Pair(([a[i]], [b[j]]), _evidence("order", a[i], b[j])) for i, j in matches]


def why(site: Site, others: Iterable[Site]) -> str:
    """Why a site has no partner among the other unmatched sites."""
    fits = _products if site.work.mac else _others
    candidates = [s for s in others if s.home == site.home and bool(s.work.mac) == bool(site.work.mac)]
    return SEVERAL_LAYERS_FIT if any(fits(site, other) >= 10 for other in candidates) else NO_LAYER_FITS


def _by_name(left: Sequence[Site], right: Sequence[Site]) -> list[tuple[Site, Site]]:
    """Sites whose name is unique on both sides. A site with products does not match one without."""
    tables = []
    for side in (left, right):
        times = Counter(site.name for site in side)
        tables.append({site.name: site for site in side if times[site.name] == 1})
    both = [(site, tables[1][name]) for name, site in tables[0].items() if name in tables[1]]
    return [(a, b) for a, b in both if not (a.known and b.known) or bool(a.work.mac) == bool(b.work.mac)]


def _evidence(by: str, a: Site, b: Site) -> str:
    words = [by]
    if by != "name" and likeness(a.name, b.name) > 1:
        words.append("words")
    if by != "name" and a.filters & b.filters:
        words.append("shape")
    if a.known and b.known and (a.products == b.products if a.work.mac else a.work == b.work):
        words.append("work")
    return "+".join(words)


def _products(a: Site, b: Site) -> int:
    """How well two sites with products fit: equal work counts most, then equal filters, then equal words.

    Equal filters fit even if one is applied at more positions (another stride) or cropped later (a transposed convolution).
    """
    if not (a.known and b.known) or _by_another_filter(a, b):
        return 0
    shape, words = bool(a.filters & b.filters), likeness(a.name, b.name)
    if a.products == b.products:
        return 100 + 10 * shape + words
    as_long = a.work.mac * b.work.accumulators == b.work.mac * a.work.accumulators
    return 20 + words if shape and (as_long or a.work.mac == b.work.mac) else 0


def _by_another_filter(a: Site, b: Site) -> bool:
    """Whether two single products have filters whose number of elements matches no operand on the other side."""
    if not (a.single and b.single and a.filters and b.filters):
        return False
    return not any(prod(size) in other.operands for site, other in ((a, b), (b, a)) for size in site.filters)


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
    """The unmatched sites of both sides between consecutive pairs that keep the order, separately for each home."""
    pairs = list(pairs)
    taken = [{s.position for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    fixed = find_ascending([(pair.sides[0][-1].position, pair.sides[1][-1].position) for pair in pairs])
    start = (-1, -1)
    for end in [*fixed, (len(left), len(right))]:
        run_a = [s for s in left[start[0] + 1 : end[0]] if s.position not in taken[0]]
        run_b = [s for s in right[start[1] + 1 : end[1]] if s.position not in taken[1]]
        for home in dict.fromkeys(s.home for s in run_a):
            yield [s for s in run_a if s.home == home], [s for s in run_b if s.home == home]
        start = end


def _homes(
    pairs: Iterable[Pair], left: Sequence[Site], right: Sequence[Site]
) -> Iterator[tuple[list[Site], list[Site]]]:
    """The unmatched sites inside each layer with a namesake, wherever that runs in the other model."""
    pairs = list(pairs)
    taken = [{s.position for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    rest = [[s for s in side if s.position not in taken[i] and s.home] for i, side in enumerate((left, right))]
    for home in dict.fromkeys(s.home for s in rest[0]):
        yield [s for s in rest[0] if s.home == home], [s for s in rest[1] if s.home == home]


def namesakes(names: Names) -> dict[Name, tuple[str, str]]:
    """The names that exactly one layer, or one enclosing layer, has on either side, with both paths; the deepest first."""
    tables = []
    for side in names:
        times = Counter(side.values())
        tables.append({name: path for path, name in side.items() if name.key and times[name] == 1})
    both = {name: (path, tables[1][name]) for name, path in tables[0].items() if name in tables[1]}
    return dict(sorted(both.items(), key=lambda item: (-item[1][0].count("."), item[1])))


def _around_open(pairs: Iterable[Pair], side: int, sites: Iterable[Site]) -> set[str]:
    """The layers around, and including, each product without a partner or with a partner that has different products."""
    even = (pair for pair in pairs if _products_of(pair.sides[0]) == _products_of(pair.sides[1]))
    done = {s.position for pair in even for s in pair.sides[side]}
    open_paths = (path for s in sites if s.work.mac and s.position not in done for path in s.paths)
    return {outer for path in open_paths for outer in enclosing_layers(path)}


def _below(path: str, sites: Iterable[Site]) -> list[Site]:
    return [s for s in sites if all(p == path or p.startswith(path + ".") for p in s.paths)]


def _merge_pairs(pairs: list[Pair], some_a: Sequence[Site], some_b: Sequence[Site], first: str) -> list[Pair]:
    """The pairs, with two groups of sites merged into one row if their products are equal in total: sites below the same name,
    or between the same neighbours, that nothing tells apart. Example: an attention layer that is five layers elsewhere."""
    even = [_products_of(pair.sides[0]) == _products_of(pair.sides[1]) for pair in pairs]
    settled = [pair for pair, same in zip(pairs, even, strict=True) if same]
    done = [{s.position for pair in settled for s in pair.sides[i]} for i in (0, 1)]
    a, b = ([s for s in some if s.position not in d] for some, d in zip((some_a, some_b), done, strict=True))
    inside = [{s.position for s in side} for side in (a, b)]
    odd = [pair for pair, same in zip(pairs, even, strict=True) if not same]
    touched = [[s.position in inside[i] for i in (0, 1) for s in pair.sides[i]] for pair in odd]
    across = any(any(flags) and not all(flags) for flags in touched)
    known = all(s.known for side in (a, b) for s in side)
    same = _products_of(a) == _products_of(b) != (0, 0)
    if across or not known or not same or max(len(a), len(b)) < 2:
        return pairs
    kept = [pair for pair, flags in zip(odd, touched, strict=True) if not any(flags)]
    return [*settled, *kept, Pair((a, b), f"{first}+together+work")]


def _only(pairs: Sequence[Pair], left: Sequence[Site], right: Sequence[Site]) -> list[Pair]:
    """Pairs of sites that are the only unmatched ones on their side with this work and filter, if at most a few products
    changed places with them: the branches of a block may run in another order."""
    tables = []
    for i, side in enumerate((left, right)):
        taken = {s.position for pair in pairs for s in pair.sides[i]}
        rest = [s for s in side if s.position not in taken and s.known and s.work.mac]
        times = Counter((s.home, s.products, s.filters) for s in rest)
        tables.append({(s.home, s.products, s.filters): s for s in rest if times[s.home, s.products, s.filters] == 1})
    fixed = [(p.sides[0][0].position, p.sides[1][0].position) for p in pairs if _products_of(p.sides[0]) != (0, 0)]
    new_pairs = []
    for kind, a in tables[0].items():
        b = tables[1].get(kind)
        if b is not None and sum((x < a.position) != (y < b.position) for x, y in fixed) <= CROSSED:
            new_pairs.append(Pair(([a], [b]), _evidence("only", a, b)))
    return new_pairs


def _with_activations(pairs: list[Pair], left: Sequence[Site], right: Sequence[Site]) -> list[Pair]:
    """The pairs, extended by the next unmatched site of one side if its work is exactly what the layer does in addition on the
    other side: a dense layer in Keras applies its activation itself."""
    taken = [{s.position for pair in pairs for s in pair.sides[i]} for i in (0, 1)]
    extended = []
    for pair in pairs:
        sides, grown = list(pair.sides), False
        more = _work_of(sides[0]) - _work_of(sides[1])
        for i, sites, want in ((0, left, ZERO - more), (1, right, more)):
            next_position = sides[i][-1].position + 1
            if (
                next_position < len(sites)
                and next_position not in taken[i]
                and sites[next_position].known
                and want
                and sites[next_position].work == want
            ):
                sides[i], grown = [*sides[i], sites[next_position]], True
        by = f"{pair.by.partition('+')[0]}+together+work" if grown else pair.by
        extended.append(Pair((sides[0], sides[1]), by))
    return extended


def _with_inner(pairs: list[Pair], left: Sequence[Site], right: Sequence[Site]) -> list[Pair]:
    """The pairs, each with the unmatched sites that can belong to no other: those that are in one of its layers first, while its
    partner has none such, and those around layers of this pair alone."""
    every = (left, right)
    home = [{s.position: at for at, pair in enumerate(pairs) for s in pair.sides[i]} for i in (0, 1)]
    more: list[tuple[list[Site], list[Site]]] = [([], []) for _ in pairs]
    for i, sites in enumerate(every):
        for site in (s for s in sites if s.position not in home[i]):
            around = [s for s in sites if s.position in home[i] and inside(site.path, s.path)]
            within = {home[i].get(s.position) for s in sites if inside(s.path, site.path)}
            at = home[i][max(around, key=lambda s: s.path.count(".")).position] if around else None
            if at is None and len(within) == 1:
                at = within.pop()
            if at is not None:
                more[at][i].append(site)
    extended = []
    for pair, added in zip(pairs, more, strict=True):
        if any(added) and not all(added):
            sides = ([*pair.sides[0], *added[0]], [*pair.sides[1], *added[1]])
            same = "+work" * (_products_of(sides[0]) == _products_of(sides[1]) != (0, 0))
            pair = Pair(sides, f"{pair.by.partition('+')[0]}+together{same}")
        extended.append(pair)
    return extended


def _with_one_root(pairs: list[Pair], left: Sequence[Site], right: Sequence[Site]) -> list[Pair]:
    """The pairs, with the ops outside of all layers of both models merged into one row, and any layers matched with them."""
    roots = [[s for s in side if not s.name.key] for side in (left, right)]
    if not all(roots):
        return pairs
    in_roots = [[s in roots[i] for i in (0, 1) for s in pair.sides[i]] for pair in pairs]
    holding = [pair for pair, flags in zip(pairs, in_roots, strict=True) if any(flags)]
    if len(holding) == 1 and sum(map(sum, in_roots)) == 2:
        return pairs
    a, b = ([*dict.fromkeys([*roots[i], *(s for pair in holding for s in pair.sides[i])])] for i in (0, 1))
    by = "name" if not holding else "name+together" + "+work" * (_products_of(a) == _products_of(b))
    return [*(pair for pair, flags in zip(pairs, in_roots, strict=True) if not any(flags)), Pair((a, b), by)]


def _work_of(sites: Iterable[Site]) -> Work:
    return sum((s.work for s in sites), ZERO)


def _products_of(sites: Iterable[Site]) -> tuple[int, int]:
    products = [s.products for s in sites]
    return sum(mac for mac, _ in products), sum(accumulators for _, accumulators in products)
