"""Numbers that count their own operations, and what can be done with many of them.

They also compute: tests compare their values with the framework's, so a loop over them that does the wrong work cannot
count it either. Multiply-accumulates and accumulators are counted by :class:`Accumulator` alone; everything a
:class:`Num` does outside one is an add, mul, div, cmp or special.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from reconcile.work import COMPONENTS, Work


class Tally(Counter):
    """Operations so far, by component."""

    def work(self) -> Work:
        return Work(*(self[name] for name in COMPONENTS))

    def array(self, values: Any) -> np.ndarray:
        """Plain numbers as an object array of :class:`Num`."""
        values = np.asarray(values, dtype=float)
        result = np.empty(values.shape, dtype=object)
        for index in np.ndindex(values.shape):
            result[index] = Num(float(values[index]), self)
        return result

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.array(np.zeros(shape))


class Num:
    """A float that counts what is done with it."""

    __slots__ = ("tally", "value")

    def __init__(self, value: float, tally: Tally) -> None:
        self.value, self.tally = value, tally

    def _do(self, component: str, value: float) -> Num:
        self.tally[component] += 1
        return Num(value, self.tally)

    def __add__(self, other: Num) -> Num:
        return self._do("add", self.value + _plain(other))

    def __radd__(self, other: float) -> Num:
        return self._do("add", other + self.value)

    def __sub__(self, other: Num) -> Num:
        return self._do("add", self.value - _plain(other))

    def __rsub__(self, other: float) -> Num:
        return self._do("add", other - self.value)

    def __neg__(self) -> Num:
        return self._do("add", -self.value)

    def __mul__(self, other: Num) -> Num:
        return self._do("mul", self.value * _plain(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Num) -> Num:
        return self._do("div", self.value / _plain(other))

    def max(self, other: Num) -> Num:
        return self._do("cmp", max(self.value, _plain(other)))

    def min(self, other: Num) -> Num:
        return self._do("cmp", min(self.value, _plain(other)))

    def equals(self, other: float) -> bool:
        self.tally["cmp"] += 1
        return self.value == other

    def special(self, function: Any) -> Num:
        return self._do("special", function(self.value))

    def sigmoid(self) -> Num:
        return self.special(lambda v: 1 / (1 + math.exp(-v)))

    def tanh(self) -> Num:
        return self.special(math.tanh)

    def rsqrt(self) -> Num:
        return self.special(lambda v: 1 / math.sqrt(v))


class Accumulator:
    """Starts at 0; takes products. Counted when it is made (unless it is thrown away), each product as one MAC."""

    def __init__(self, tally: Tally, counted: bool = True) -> None:
        self.tally, self.value = tally, 0.0
        tally["accumulators"] += counted

    def mac(self, a: Num, b: Num) -> None:
        self.tally["mac"] += 1
        self.value += a.value * b.value

    def num(self) -> Num:
        return Num(self.value, self.tally)


def _plain(other: Any) -> float:
    return other.value if isinstance(other, Num) else other


def values(array: np.ndarray) -> np.ndarray:
    """The floats of an array of Num."""
    return np.vectorize(lambda n: n.value, otypes=[float])(array) if array.size else np.zeros(array.shape)


def each(function: Any, *arrays: np.ndarray) -> np.ndarray:
    """``function`` of corresponding elements of arrays of one shape."""
    result = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(a[index] for a in arrays))
    return result


def total(items: Any) -> Num:
    """Sum of n numbers in n - 1 adds."""
    first, *rest = items
    for item in rest:
        first = first + item
    return first


def largest(items: Any) -> Num:
    """Maximum of n numbers in n - 1 comparisons."""
    first, *rest = items
    for item in rest:
        first = first.max(item)
    return first


def square(item: Num) -> Num:
    return item * item


def dot(tally: Tally, a: Any, b: Any) -> Num:
    """Dot product; of nothing it is 0 and takes no accumulator."""
    if len(a) == 0:
        return Num(0.0, tally)
    accumulator = Accumulator(tally)
    for x, y in zip(a, b, strict=True):
        accumulator.mac(x, y)
    return accumulator.num()
