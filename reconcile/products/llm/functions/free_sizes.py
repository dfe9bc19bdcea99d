"""The sizes of a configuration that may vary, as products of free ones, and their values beside the user's own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....adapters.counters.formulas.config_fields import FIELDS

WINDOW = "w"
TENSOR_SIZES = (
    "k", "n", "h", "d", "f", "V", "E", "a", "fe", "fs", "rq", "rkv", "drope", "dnope", "dv", "hi", "di", "topk",
    "lk", "lkd", "lv", "lvd",
)  # fmt: skip
LETTERS = {**{letter: FIELDS[letter] for letter in TENSOR_SIZES}, WINDOW: ("sliding_window",)}
"""The fields that are sizes of tensors, by the letters of formulas, a divisor before what it divides. Others count layers, or
choose among kinds of them."""
DIVIDED = (("k", "n"), ("n", "h"), ("lk", "lv"))
"""Sizes of which a model, and many a formula, divides the second by the first."""
CHOSEN = {WINDOW, "topk"}
"""Sizes that choose among the keys of a sequence: which of both is larger decides what runs."""
FAR = 301
"""How many steps the farthest values of a size are from the user's: beyond the multiples to which sizes are rounded up."""
MOST = 10**12
"""A size that no other bounds stays below this."""
HEADS = ("k", "n", "n/k", "a", "E", "hi", "lk", "lv", "lv/lk")
"""Sizes that are numbers of heads or of experts; others are widths, of which a model takes halves and quarters."""
FEWEST = 11
"""The smallest prime of a value, so that small factors of a count are no sizes."""


@dataclass(frozen=True, slots=True)
class FreeSize:
    """A size that varies by itself.

    Attributes:
        name: Its letter, or the name of its field; that of a quotient is ``n/k``.
        own: Its value in the user's configuration.
        step: Its values are multiples of this: a power of 2 that divides the user's value, times what else a model asks for.
    """

    name: str
    own: int
    step: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The free sizes of a configuration, and the fields that are their products.

    Attributes:
        free: The free sizes; the last are the batch and the tokens of a sequence.
        fields: For each field of the configuration, the indices of the free sizes whose product it is.
    """

    free: tuple[FreeSize, ...]
    fields: Mapping[str, tuple[int, ...]]

    @property
    def own(self) -> tuple[int, ...]:
        """The user's value of each free size."""
        return tuple(size.own for size in self.free)

    def settings(self, at: Sequence[int]) -> dict[str, int]:
        """The value of each field at a point."""
        return {field: math.prod(at[i] for i in indices) for field, indices in self.fields.items()}

    def primes(self, number: int) -> list[tuple[int, ...]]:
        """Points at which no two free sizes have a prime above 7 in common, nor two points: near the user's own, but for a small
        batch, and a short sequence where nothing is chosen from it."""
        taken, columns = set[int](), []
        chosen = CHOSEN & {size.name for size in self.free}
        for size in reversed(self.free):
            about = size.own // size.step if size.name != "T" or chosen else FEWEST
            primes = list(itertools.islice((p for p in _list_primes_near(about) if p not in taken), number))
            taken.update(primes)
            columns.append([prime * size.step for prime in primes])
        return list(zip(*reversed(columns), strict=True))

    def near(self, number: int) -> list[list[int]]:
        """Values of each free size near the user's, which are none of them, and on its side of every choice among keys."""
        return [_list_values(size.own, size.step, *self._bounds(size), number, size.own >= 16) for size in self.free]

    def small(self, number: int) -> list[list[int]]:
        """Small values of each free size, in the order of the user's own: a number of floating point holds their products."""
        lines = []
        for size in self.free:
            step = 2 - size.own % 2
            low, high = (math.isqrt(bound) // 2 for bound in self._bounds(size))
            start = math.isqrt(size.own) // 2 // step * step
            line = _list_values(start, step, low, high, number + 1, size.own >= FAR)
            lines.append([value for value in line if value != size.own])
        return lines

    def _bounds(self, size: FreeSize) -> tuple[int, int]:
        """The values between which a size may lie: where windows choose among the keys of a sequence, none passes another."""
        among = [each.own for each in self.free if each.name in {*CHOSEN, "T"} and each is not size]
        if size.name not in {*CHOSEN, "T"}:
            return 1, MOST
        is_equal = size.own in among and size.name != "T"
        below = [own for own in among if own < size.own] + [size.own] * is_equal
        above = [own for own in among if own > size.own] + [size.own] * (size.own in among and not is_equal)
        low = (max(below) + size.own + 1) // 2 if below else 1
        return low, (min(above) + size.own) // 2 if above else MOST


def read_sizes(settings: Mapping[str, Any], batch: int, seq: int, only: frozenset[str] | None = None) -> Sizes:
    """The sizes of a configuration's fields, without those that are no whole number above 1; ``only`` some of them."""
    fields = {}
    for letter, names in LETTERS.items():
        name = next((name for name in names if isinstance(settings.get(name), int)), "")
        if name and settings[name] > 1 and (only is None or name in only):
            fields[letter] = name
    free: dict[str, FreeSize] = {}
    products: dict[str, tuple[str, ...]] = {}
    for letter, name in fields.items():
        parts: tuple[str, ...] = ()
        own = int(settings[name])
        for small, large in DIVIDED:
            if letter == large and small in products and own % settings[fields[small]] == 0:
                parts, own, letter = products[small], own // settings[fields[small]], f"{large}/{small}"
        if own > 1:
            free[letter] = FreeSize(letter, own, _step_of(letter, int(settings[name]), settings))
            parts = (*parts, letter)
        products[large_of(letter)] = parts
    if products.get("n") == ("k",):  # each head has keys of its own
        free["k"] = replace(free["k"], name="n")
    free["B"] = FreeSize("B", batch, 1)
    free["T"] = FreeSize("T", seq, math.gcd(seq, 128))
    index = {letter: i for i, letter in enumerate(free)}
    return Sizes(
        tuple(free.values()),
        {fields[letter]: tuple(index[part] for part in parts) for letter, parts in products.items()},
    )


def _list_values(own: int, step: int, low: int, high: int, number: int, is_wide: bool) -> list[int]:
    """Values between two bounds, none of them ``own``, multiples of ``step`` from it if there are enough; where it
    ``is_wide`` some of the first ones are far apart, so that a size which is rounded up shows."""
    while step > 1 and (high - low) // step <= number:
        step //= 2
    above = [own + step * i for i in range(1, 2 * number) if own + step * i <= high]
    below = [own - step * i for i in range(1, 2 * number) if low <= own - step * i > 1]
    line = (above or below)[:number] if len(above) >= number or not below else (above + below)[:number]
    far = [own + step * i for i in (FAR // 2 + 1, FAR) if own + step * i <= high and is_wide]
    return [*line[:2], *far, *line[2:]]


def large_of(letter: str) -> str:
    """The letter of a size, ``n`` of ``n/k``."""
    return letter.partition("/")[0]


def _step_of(letter: str, own: int, settings: Mapping[str, Any]) -> int:
    """What the values of a size are multiples of: experts fall into groups, a head has halves and quarters."""
    groups = settings.get("n_group")
    grouped = groups if letter == "E" and isinstance(groups, int) and groups and own % groups == 0 else 1
    most = 1 if own < 64 and letter in HEADS else 128 if own > 4096 else 16
    return math.lcm(math.gcd(own, most), grouped)


def _list_primes_near(number: int) -> Iterator[int]:
    """Primes in the order of their distance from a number."""
    for distance in range(max(number, FEWEST) + 10**6):
        for candidate in {number + distance, number - distance}:
            if candidate >= FEWEST and all(candidate % d for d in range(2, math.isqrt(candidate) + 1)):
                yield candidate
