"""Folds repeated layers in reports: lines that differ only in the numbers in their names become one, ``layers.0..31.mlp``.

A fold's name is exact. ``layers.0..31.mlp`` stands for 32 layers; ``conv2_block1..3_1,2_bn`` for the 6 in which each number of
the first list is combined with each of the second; ``layers.0..10/2`` counts in steps of 2. A line that differs in anything that
it shows is not folded; neither are lines whose numbers do not form such a name. ``keep_largest`` cuts a table that is too long,
and ``shorten_variants`` and ``join_variants`` shorten lists of counters.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ..core.number_format import number
from ..core.results import LayerRow
from ..engine.breakdown import Part
from ..engine.phases import PhaseRow

MAX_UNFOLDED = 10
"""The most lines that are all shown, however alike they are."""
MAX_NUMBERS = 8
"""How many numbers at the beginning of a name may differ; those after them are part of the name."""
MIN_RUN = 3
"""How many consecutive numbers make a range; one more is needed if they count in steps."""
MAX_DIGITS = 9
"""A longer number is text."""

_NUMBER = re.compile(rf"(?<![0-9])([0-9]{{1,{MAX_DIGITS}}})(?![0-9])")

T = TypeVar("T")
_Numbers = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fold(Generic[T]):
    """Lines that show the same, in their order; ``places`` are their positions among all lines. Their names are the ``texts``
    with one number of each of the ``choices`` in between, in all combinations."""

    texts: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]
    lines: tuple[T, ...]
    places: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of one line; the common name of several."""
        return _join_name(self.texts, self.choices)

    @property
    def count(self) -> int:
        """How many lines it stands for."""
        return len(self.lines)

    @property
    def one(self) -> T:
        """The first of them; the others show the same."""
        return self.lines[0]


@dataclass(frozen=True, slots=True)
class Structure(Generic[T]):
    """Folds that repeat together, such as the layers of ``conv4_block2..6``: ``count`` blocks with the same layers in each.
    ``texts`` and ``choices`` are the parts of the blocks' names, as those of a fold."""

    name: str
    count: int
    folds: tuple[Fold[T], ...]
    texts: tuple[str, ...] = ()
    choices: tuple[tuple[str, ...], ...] = ()

    @property
    def each(self) -> int:
        """How many lines one block has here."""
        return len(self.lines) // self.count

    def meets(self, other: Structure[Any]) -> bool:
        """Whether one of the blocks is one of the other's, too, of which it has other lines."""
        return self.texts == other.texts and all(
            set(a) & set(b) for a, b in zip(self.choices, other.choices, strict=True)
        )

    @property
    def lines(self) -> tuple[T, ...]:
        """All lines of all its folds."""
        return tuple(line for each in self.folds for line in each.lines)


def fold_lines(
    lines: Sequence[T], name: Callable[[T], str], shown: Callable[[T], Any], few: int = MAX_UNFOLDED
) -> list[Fold[T]]:
    """Fold the lines that are alike, in the order of their first lines; up to ``few`` lines stay as they are.

    ``shown`` returns everything that a line shows besides its name, hashable. A line is in exactly one fold.
    """
    if len(lines) <= few:
        return [Fold((name(line),), (), (line,), (place,)) for place, line in enumerate(lines)]
    groups: dict[Any, dict[_Numbers, int]] = {}
    seen: dict[Any, int] = {}
    for place, line in enumerate(lines):
        texts, numbers = _split_numbers(name(line))
        same = (texts, numbers, shown(line))
        seen[same] = seen.get(same, 0) + 1  # a second line that is the same in everything is not a repeated layer
        groups.setdefault((texts, same[2], seen[same]), {})[numbers] = place
    folds = []
    for (texts, _, _), members in groups.items():
        for product in _split_products(list(members)):
            places = sorted(members[numbers] for numbers in itertools.product(*product))
            folds.append(Fold(texts, product, tuple(lines[place] for place in places), tuple(places)))
    return sorted(folds, key=lambda each: each.places[0])


def list_structures(folds: Sequence[Fold[T]]) -> list[Structure[T]]:
    """The folds by the blocks that they are in, in the order of their first lines. A block is the beginning of a name, up to the
    first number in which it, or another name that begins with the same texts, differs from its siblings."""
    repeated = {each.texts[: k + 1] for each in folds if (k := _first_differing(each)) is not None}
    together: dict[str, list[Fold[T]]] = {}
    counts: dict[str, int] = {}
    prefixes: dict[str, tuple[_Numbers, tuple[_Numbers, ...]]] = {}
    for each in folds:
        depth = next((k for k in range(1, len(each.choices) + 1) if each.texts[:k] in repeated), 0)
        name = _join_name((*each.texts[:depth], ""), each.choices[:depth]) if depth else each.name
        together.setdefault(name, []).append(each)
        counts[name] = math.prod(map(len, each.choices[:depth]))
        prefixes[name] = (each.texts[:depth] if depth else (name,), each.choices[:depth])
    return [Structure(name, counts[name], tuple(found), *prefixes[name]) for name, found in together.items()]


def name_structures(blocks: Sequence[Structure[T]]) -> list[tuple[str, int, str]]:
    """What each is called, how many it stands for, and a note. If other lines of a block stand elsewhere, its own name is not
    enough: its only layer has its whole name, and several that of what they all are in, or a note of how many there are."""
    called = []
    for block in blocks:
        meeting = [other for other in blocks if other is not block and block.meets(other)]
        if not meeting:
            called.append((block.name, block.count, ""))
        elif len(block.folds) == 1:
            called.append((block.folds[0].name, block.folds[0].count, ""))
        elif len(inside := _name_around(block.folds)) > len(block.name):
            called.append((f"{inside}.*", block.count, f", {block.each} layers"))
        else:
            first = replace(block, choices=tuple(numbers[:1] for numbers in block.choices))
            every = block.each + sum(other.each for other in meeting if first.meets(other))
            called.append((block.name, block.count, f", {block.each} of {every} layers"))
    return called


def _name_around(folds: Iterable[Fold[Any]]) -> str:
    """The name of the innermost layer that all of these are in."""
    parts = zip(*(fold.name.split(".") for fold in folds), strict=False)
    return ".".join(each[0] for each in itertools.takewhile(lambda each: len({*each}) == 1, parts))


def name_lines(alike: Sequence[Fold[T]], few: int) -> list[tuple[str, tuple[T, ...]]]:
    """The name of each fold with how many lines it stands for, ``block_0..29 × 30``, and these lines; of each block where there
    are more than ``few`` folds, or of each kind of layer, ``layers.*.experts.*.up``, where no two blocks show the same."""
    named: Iterable[tuple[str, int, str]] = ((each.name, each.count, "") for each in alike)
    groups: Sequence[Fold[T] | Structure[T]] = alike
    if len(alike) > few:
        blocks = list_structures(alike)
        named, groups = (called := name_structures(blocks)), blocks
        kinds = group_same(alike, lambda fold: fold.texts)
        if any(note for _, _, note in called) and len(kinds) <= len(blocks):
            named, groups = [_name_kind(kind) for kind in kinds], [Structure("", 1, tuple(kind)) for kind in kinds]
    return [
        ((f"{name} × {number(count)}" if count > 1 else name) + note, group.lines)
        for group, (name, count, note) in zip(groups, named, strict=True)
    ]


def _name_kind(alike: Sequence[Fold[T]]) -> tuple[str, int, str]:
    """As ``name_structures``, of folds whose names have the same texts: a star for each number in which they differ."""
    first, *others = alike
    if not others:
        return first.name, first.count, ""
    numbers = [{*itertools.chain(*found)} for found in zip(*(fold.choices for fold in alike), strict=True)]
    texts = zip(first.texts, ["*" if len(found) > 1 else min(found) for found in numbers] + [""], strict=True)
    return "".join(itertools.chain(*texts)), 1, f", {number(sum(fold.count for fold in alike))} layers"


def _first_differing(each: Fold[Any]) -> int | None:
    """The position of the first number in which the lines of a fold differ."""
    return next((k for k, numbers in enumerate(each.choices) if len(numbers) > 1), None)


def fold_parts(of_cause: Sequence[Part]) -> list[Fold[Part]]:
    """Fold the layers of a cause that show the same amount, ops, counters and reason."""
    return fold_lines(of_cause, lambda p: p.layer, lambda p: (p.amount, tuple(p.ops), tuple(p.counters), p.reason))


@dataclass(frozen=True, slots=True)
class Share:
    """A line of a cause: ``count`` layers or blocks, each with the ``amount``; a residual has a reason in place of ops."""

    name: str
    ops: tuple[str, ...]
    reason: str
    count: int
    amount: int


def list_shares(of_cause: Sequence[Part], few: float | None) -> list[Share]:
    """The layers of a cause, those that are alike in one line; with more than ``few``, those of a block as well. With None
    each has its own. A residual keeps its reasons."""
    if few is None:
        return [Share(part.layer, tuple(part.ops), part.reason, 1, part.amount) for part in of_cause]
    alike = fold_parts(of_cause)
    if len(alike) <= few or any(part.reason for part in of_cause):
        return [Share(x.name, tuple(x.one.ops), x.one.reason, x.count, x.one.amount) for x in alike]
    return [
        Share(s.name, tuple(dict.fromkeys(op for p in s.lines for op in p.ops)), s.folds[0].one.reason, s.count,
              sum(part.amount for part in s.lines) // s.count)
        for s in list_structures(alike)
    ]  # fmt: skip


def fold_rows(of_layers: Sequence[LayerRow]) -> list[Fold[LayerRow]]:
    """Fold the rows of a table of layers that show the same numbers."""
    return fold_lines(
        of_layers, lambda row: row.layer, lambda row: make_hashable((row.work, row.counters, row.causes, row.residuals))
    )


def fold_phases(of_layers: Sequence[PhaseRow]) -> list[Fold[PhaseRow]]:
    """Fold the rows of a table by phase that show the same numbers."""
    return fold_lines(of_layers, lambda row: row.layer, lambda row: make_hashable((row.flops, row.known)))


def fold_names(layers: Iterable[str], few: int = 1) -> list[str]:
    """Fold these names, each taken once. Returns the names of the folds."""
    return [each.name for each in fold_lines(list(dict.fromkeys(layers)), lambda layer: layer, lambda _: None, few)]


def group_same(each: Sequence[T], shown: Callable[[T], Hashable], together: bool = True) -> list[list[T]]:
    """One list for those that show the same, in the order of the first; without ``together``, one list each."""
    groups: dict[Any, list[T]] = {}
    for index, one in enumerate(each):
        groups.setdefault(shown(one) if together else index, []).append(one)
    return list(groups.values())


def shorten_variants(counters: Sequence[str]) -> list[str]:
    """``tf.profiler@function``, ``@frozen``: the name of a counter is not repeated before each of its variants."""
    families = [name.partition("@")[0] for name in counters]
    return [
        name.removeprefix(family) if index and "@" in name and family == families[index - 1] else name
        for index, (name, family) in enumerate(zip(counters, families, strict=True))
    ]


def join_variants(counters: Sequence[str], of: Sequence[str]) -> list[str]:
    """The names, with ``tf.profiler@*`` for all variants of a counter that are in the run."""
    families: dict[str, list[str]] = {}
    for name in of:
        families.setdefault(name.partition("@")[0], []).append(name)
    whole = {name: f"{family}@*" for family, names in families.items() if len(names) > 1 for name in names
             if set(names) <= set(counters)}  # fmt: skip
    return list(dict.fromkeys(whole.get(name, name) for name in counters))


def make_hashable(value: Any) -> Any:
    """Mappings in tuples as something hashable, whatever the order of their keys."""
    if isinstance(value, Mapping):
        return frozenset((key, make_hashable(inner)) for key, inner in value.items())
    return tuple(map(make_hashable, value)) if isinstance(value, tuple) else value


def _split_numbers(name: str) -> tuple[_Numbers, _Numbers]:
    """The texts of a name and the numbers between them."""
    pieces = _NUMBER.split(name, maxsplit=MAX_NUMBERS)
    return tuple(pieces[::2]), tuple(pieces[1::2])


def _split_products(members: list[_Numbers]) -> list[tuple[_Numbers, ...]]:
    """Choices of numbers, one per position, whose combinations are the members: every member is in exactly one product.

    The last number is held first, because it tells one layer of a block from the next, and the others tell the blocks.
    """
    if not members[0]:
        return [()]
    heads: dict[str, list[_Numbers]] = {}
    for *rest, last in members:
        heads.setdefault(last, []).append(tuple(rest))
    lasts: dict[frozenset[_Numbers], list[str]] = {}
    for last, rests in heads.items():
        lasts.setdefault(frozenset(rests), []).append(last)
    return [(*product, tuple(same)) for same in lasts.values() for product in _split_products(heads[same[0]])]


def _join_name(texts: Sequence[str], product: Sequence[Sequence[str]]) -> str:
    pieces = [texts[0]]
    for numbers, text in zip(product, texts[1:], strict=True):
        pieces += [_list_numbers(numbers), text]
    return "".join(pieces)


def _list_numbers(numbers: Sequence[str]) -> str:
    """``0..31``, ``0..6,8..31``, ``0..10/2``; a number with leading zeros stands alone."""
    padded = [text for text in numbers if str(int(text)) != text]
    left = sorted(int(text) for text in numbers if str(int(text)) == text)
    pieces = []
    while left:
        step = 1 if len(left) < 2 or len(_measure_run(left, 1)) >= MIN_RUN else left[1] - left[0]
        run = _measure_run(left, step)
        if len(run) < (MIN_RUN if step == 1 else MIN_RUN + 1):
            run = left[:1]
        pieces.append(str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}" + (f"/{step}" if step > 1 else ""))
        held = set(run)
        left = [number for number in left if number not in held]
    return ",".join([*pieces, *padded])


def _measure_run(numbers: Sequence[int], step: int) -> list[int]:
    """The numbers that follow the first in equal steps, and the first."""
    held, run = set(numbers), [numbers[0]]
    while run[-1] + step in held:
        run.append(run[-1] + step)
    return run


def keep_largest(
    lines: Sequence[T], limit: int | None, size: Callable[[T], Any], kept: Callable[[T], bool] = lambda _: False
) -> tuple[Sequence[T], Sequence[T]]:
    """The ``limit`` largest lines and all for which ``kept`` is true, in their order; and the rest, never a single line.
    Without a limit, all lines."""
    if limit is None:
        return lines, ()
    by_size = sorted(range(len(lines)), key=lambda index: size(lines[index]), reverse=True)
    shown = {*by_size[:limit], *(i for i, x in enumerate(lines) if kept(x))}
    if len(lines) <= len(shown) + 1:
        return lines, ()
    return [x for i, x in enumerate(lines) if i in shown], [x for i, x in enumerate(lines) if i not in shown]
