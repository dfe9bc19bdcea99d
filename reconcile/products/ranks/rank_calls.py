"""Compares the calls of a layer on the ranks with those on one device: both are in a ``Cell``, equal parts of shapes included.

``match_cells`` finds ops that each rank runs whole, but in another layer; ``alike`` pairs layers that ranks number otherwise.

Where a DTensor meets a plain tensor, autograd adds its gradients in another module than it does on one device
(torch/distributed/tensor/_api.py, ``_ToTorchTensor``), and an optimizer updates parts of some weights and the whole of others.
So ops that a layer alone does not explain are compared call by call, in the layer, then in the module around it, and so on: each
call of one device has to be a call of each rank, of the same shapes or of an equal part of one dimension. The modules of
``added-between-ranks`` and of padded or split work import the shapes and parts that are compared here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from ...core.records import BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from ...core.results import TraceRow

Shapes = tuple[tuple[int | None, ...] | None, ...]
K = TypeVar("K")
Place = tuple[str, str, str]
"""Layer, phase, and op ('' for all ops)."""


@dataclass(slots=True)
class Cell:
    """The rows of a place: those of each part of the world, by its number, and those of the one device. ``ranks`` are how many
    each part has."""

    parts: dict[int, list[TraceRow]] = field(default_factory=lambda: defaultdict(list))
    one: list[TraceRow] = field(default_factory=list)
    ranks: Sequence[int] = ()

    @staticmethod
    def of(cells: Iterable[Cell]) -> Cell:
        """All rows of several."""
        whole = Cell()
        for cell in cells:
            whole.ranks = cell.ranks
            whole.one += cell.one
            for index, rows in cell.parts.items():
                whole.parts[index] += rows
        return whole

    def split(self, key: Callable[[TraceRow], K]) -> dict[K, Cell]:
        """The rows by a key."""
        found: dict[K, Cell] = defaultdict(lambda: Cell(ranks=self.ranks))
        for row in self.one:
            found[key(row)].one.append(row)
        for index, rows in self.parts.items():
            for row in rows:
                found[key(row)].parts[index].append(row)
        return found

    def of_ranks(self) -> Iterator[tuple[int, TraceRow]]:
        """Each row of the ranks, and how many ranks have it."""
        return ((self.ranks[index], row) for index, rows in self.parts.items() for row in rows)

    def together(self, size: Callable[[TraceRow], int]) -> int:
        """The sum over all ranks."""
        return sum(count * size(row) for count, row in self.of_ranks())


def match_cells(
    cells: Iterable[tuple[Place, Cell]],
    beyond: Callable[[Place, Cell], int],
    whole: Callable[[Place, Sequence[TraceRow]], int],
) -> tuple[list[tuple[Place, int]], list[tuple[Place, int]]]:
    """What each rank does the whole of, as places and FLOPs of the ranks beyond one device, and what is left of each place.

    ``beyond`` says how much the ranks do beyond one device, and ``whole`` how much they do beyond it if each rank does the whole
    of these rows of one device.
    """
    by_op: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
    for (layer, phase, op), cell in cells:
        by_op[phase, op][layer] = cell
    booked: list[tuple[Place, int]] = []
    left: list[tuple[Place, int]] = []
    for (phase, op), layers in by_op.items():
        for around in _outwards(layers):
            inside = [layer for layer in layers if _within(layer, around)]
            place, cell = (around, phase, op), Cell.of(layers[layer] for layer in inside)
            both = _whole(cell)
            more = beyond(place, cell)
            if both is not None and whole(place, both) == more:
                booked += [(place, more)] if more else []
                for layer in inside:
                    del layers[layer]
        left += [(place, beyond(place, cell)) for layer, cell in layers.items() for place in [(layer, phase, op)]]
    return booked, left


def _whole(cell: Cell) -> list[TraceRow] | None:
    """One device's rows that each rank does the whole of, with their calls; None if some call is not matched by all ranks, or
    could be matched in several ways."""
    if not cell.one:
        return None
    calls = Counter[Shapes]()
    for row in cell.one:
        calls[shapes_of(row)] += row.calls
    found: dict[Shapes, int] | None = None
    for index in range(len(cell.ranks)):
        own = Counter[Shapes]()
        for row in cell.parts.get(index, []):
            own[shapes_of(row)] += row.calls
        given = _count_whole_calls(calls, own, sum(cell.ranks))
        if given is None or found not in (None, given):
            return None
        found = given
    rows = {shapes_of(row): row for row in cell.one}
    return [
        replace(rows[shapes], calls=count, work=rows[shapes].work * count // rows[shapes].calls)
        for shapes, count in (found or {}).items()
    ]


def _count_whole_calls(one: Mapping[Shapes, int], own: Mapping[Shapes, int], world: int) -> dict[Shapes, int] | None:
    """How often a rank's calls are whole calls of one device, by shapes, if all calls of both are matched in one way only."""
    todo, left, found = dict(own), dict(one), Counter[Shapes]()
    while todo:
        choices = {rank: [shapes for shapes in left if _part(rank, shapes, world)] for rank in todo}
        sure = next(((rank, some[0]) for rank, some in choices.items() if len(some) == 1), None)
        if sure is not None:
            count = todo[sure[0]]
        else:
            by_one = {shapes: [rank for rank, some in choices.items() if shapes in some] for shapes in left}
            sure = next(((some[0], shapes) for shapes, some in by_one.items() if len(some) == 1), None)
            if sure is None:
                return None
            count = left[sure[1]]
        rank, shapes = sure
        if count > min(todo[rank], left[shapes]):
            return None
        for counts, key in ((todo, rank), (left, shapes)):
            counts[key] -= count
            if not counts[key]:
                del counts[key]
        if rank == shapes:
            found[shapes] += count
    return None if left else dict(found)


def are_parts_copied(cell: Cell, parts: int) -> bool:
    """Whether each rank does every call of one device on one of ``parts`` equal parts of one dimension."""
    for index in range(len(cell.ranks)):
        left = Counter({(row.op, shapes_of(row)): 0 for row in cell.one})
        for row in cell.one:
            left[row.op, shapes_of(row)] += row.calls
        for row in cell.parts.get(index, []):
            like = (one for one in left if one[0] == row.op and parts_of(shapes_of(row), one[1]) == parts)
            found = next((one for one in like if left[one] >= row.calls), None)
            if found is None:
                return False
            left[found] -= row.calls
        if any(left.values()):
            return False
    return True


def _part(rank: Shapes, one: Shapes, world: int) -> bool:
    """Whether these are the one device's shapes, or those of an equal part of one dimension."""
    parts = parts_of(rank, one)
    return bool(parts and world % parts == 0)


def parts_of(rank: Shapes, one: Shapes) -> int:
    """Of how many equal parts of one dimension of the one device's shapes these have one: 1 for all of it, 0 for none."""
    pairs = differing_sizes(rank, one)
    if not pairs:
        return 0 if pairs is None else 1
    part, size = min(pairs)
    return size // part if len(pairs) == 1 and part and size % part == 0 else 0


def is_kept_part(rank: Shapes, one: Shapes) -> bool:
    """Whether these are all of the other shapes, or what one of several ranks keeps: an equal part or a shorter last one."""
    pairs = differing_sizes(rank, one)
    if not pairs:
        return pairs is not None
    part, size = min(pairs)
    chunks = (-(-size // ranks) for ranks in range(2, size + 1))
    return len(pairs) == 1 and 0 < part < size and any(part in (chunk, size % chunk) for chunk in chunks)


def differing_sizes(rank: Shapes, one: Shapes) -> set[tuple[int, int]] | None:
    """The sizes that differ between shapes of as many dimensions; None for shapes of other numbers of dimensions."""
    numbers = [[None if shape is None else len(shape) for shape in shapes] for shapes in (rank, one)]
    if numbers[0] != numbers[1]:
        return None
    pairs = [zip(mine or (), theirs or (), strict=True) for mine, theirs in zip(rank, one, strict=True)]
    return {(int(a or 0), int(b or 0)) for each in pairs for a, b in each if a != b}


def phase_of(row: TraceRow) -> str:
    """Its phase: on ranks, gradients of inputs and of weights are not told apart everywhere."""
    return BACKWARD if row.phase in (INPUT_GRADIENT, WEIGHT_GRADIENT) else row.phase


def shapes_of(row: TraceRow) -> Shapes:
    """The shapes of its inputs, then those of its outputs."""
    return tuple(tensor.shape for tensor in (*row.inputs, *row.outputs))


def _outwards(layers: Iterable[str]) -> Iterator[str]:
    """The layers, then the modules around them, from the inside out."""
    found = {layer.rsplit(".", cut)[0] if cut else layer for layer in layers for cut in range(layer.count(".") + 1)}
    yield from sorted(found, key=lambda layer: (-layer.count("."), layer))
    yield ""


def _within(layer: str, around: str) -> bool:
    return not around or layer == around or layer.startswith(around + ".")


def alike(one: Set[str], ranks: Set[str]) -> dict[str, str]:
    """Layers of lists that ranks number otherwise than one device, as stages and experts do, which count their own from 0.

    The names of layers that both sides have, or have by another number: ``experts.*.0`` for all of a list of which ranks have
    a part. Those of one side alone, and those that could be of several lists, are left out."""
    names = {name: name for name in one & ranks}
    lists = {id(side): {star for name in side for star in _stars(name)} for side in (one, ranks)}
    for name in one ^ ranks:
        fits = [star for star in _stars(name) if star in lists[id(ranks if name in one else one)]]
        if len(fits) == 1:
            names[name] = fits[0]
    merged = {star for star in names.values() if "*" in star}
    for name in one & ranks:
        names[name] = next((star for star in _stars(name) if star in merged), name)
    return names


def _stars(name: str) -> list[str]:
    """The lists that the layer may be of: its name with ``*`` for one of its numbers."""
    words = name.split(".")
    return [
        ".".join([*words[:index], "*", *words[index + 1 :]]) for index, word in enumerate(words) if word.isdecimal()
    ]


def padding_flops(
    cell: Cell, batches: int, work: Callable[[TraceRow], Fraction], chosen: Sequence[int] = ()
) -> Fraction:
    """The FLOPs that the ranks spend on padding. 0 unless exactly one dimension differs, and its parts add up to other than a
    whole multiple of the one device's.

    ``work`` gives a row of the one device in FLOPs, for all batches. Rows for which tokens have ``chosen`` experts are no
    dimension that ranks share.
    """
    padded = Fraction(0)
    for index, row in enumerate(cell.one):
        sizes: dict[int, int] = defaultdict(int)  # a dimension of the one device's: what the ranks have of it
        for part, rows in cell.parts.items():
            like = rows[index] if len(rows) == len(cell.one) else None
            if like is None or like.op != row.op or like.calls != row.calls:
                return Fraction(0)
            found = differing_sizes(shapes_of(row), shapes_of(like))
            if found is None or len(found) != 1:
                return Fraction(0)
            ((whole, local),) = found
            sizes[whole] += local * cell.ranks[part]
        if len(sizes) != 1:
            return Fraction(0)
        ((whole, together),) = sizes.items()
        # Several copies of its parts, or parts of several batches, are no padding either.
        if whole in chosen or together % (whole * batches) == 0:
            return Fraction(0)
        padded += work(row) * Fraction(together - whole * batches, whole * batches)
    return padded
