"""What ran, as polynomials of the sizes of a configuration: each product of a trace, from two traces of the same model at other
sizes.

The free sizes of both traces are primes apart, so the factors of a count are its sizes. A sum of sizes, such as that of a
product that computes queries, keys and values at once, is found among short sums. The trace at the user's own sizes proves each
product: one that is none of its polynomial's value there has no polynomial.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ....adapters.counters.bridge import sum_of
from ....core.number_format import number
from ....core.records import RECOMPUTATION, Trace
from ...formula.polynomial import Polynomial, Powers

Place = tuple[str, str, str]
"""The layer, the op and the phase of a product."""
NUMBER = re.compile(r"\.\d+(?=\.|$)")
JOINED = "several kernels"
"""The op of products that are summed."""
MULTIPLES = 128
"""The denominators that a multiple in a sum may have: a sequence is cut into chunks."""
SHIFTS = (*range(1, 8), -1)
"""What a convolution along a sequence computes more than its tokens, or less."""


@dataclass(frozen=True, slots=True)
class Product:
    """Products of one layer and phase, of the same op on the same shapes.

    Attributes:
        layer: The layer.
        op: The op.
        phase: The phase.
        flops: FLOPs of a step.
        polynomial: The same as a polynomial of the free sizes; None if it is none that was found.
    """

    layer: str
    op: str
    phase: str
    flops: int
    polynomial: Polynomial | None


def find_products(
    own: Trace, others: Sequence[tuple[Sequence[int], Trace]], names: Sequence[str], at: Sequence[int]
) -> list[Product]:
    """The products of a trace, without those that are computed again.

    Args:
        own: The trace at the user's sizes.
        others: Two traces at other sizes (``Sizes.primes``), with these.
        names: The names of the free sizes.
        at: The user's sizes.
    """
    listed = _join_kernels([_list_products(trace) for trace in (own, *(trace for _, trace in others))])
    numbers = [{place: len(counts) for place, counts in each.items()} for each in listed]
    other = {find_pattern(place) for each in numbers for place, _ in each.items() ^ numbers[0].items()}
    mine, *theirs = (_number_products(each, other) for each in listed)
    points, known, found = [*(point for point, _ in others), at], {}, []
    for key, flops in mine.items():
        counts = tuple(tuple(each.get(key, ())) for each in (*theirs, mine))
        if counts not in known:
            sums = [sum(each) for each in counts]
            polynomial = _find_polynomial(sums, points, names) if all(sums) else None
            known[counts] = polynomial or _find_sum_of_kinds(counts, points, names)
        found.append(Product(*key[0], sum(flops), known[counts]))
    return found


def _list_products(trace: Trace) -> dict[Place, list[int]]:
    """FLOPs of each product, by layer, op and phase."""
    found: dict[Place, list[int]] = {}
    for op in trace.ops:
        flops = 2 * sum_of([op]).mac if op.phase != RECOMPUTATION else 0
        if flops:
            found.setdefault((op.layer, op.op, op.phase), []).append(flops)
    return found


def _join_kernels(listed: Sequence[dict[Place, list[int]]]) -> list[dict[Place, list[int]]]:
    """The same with one sum for each layer and phase that has other ops in each trace: attention is one kernel on a device, and
    several products on meta."""
    ops = [_list_ops(each) for each in listed]
    other = {key for key in ops[0] if all(key in each for each in ops) and len({each[key] for each in ops}) > 1}
    joined: list[dict[Place, list[int]]] = []
    for each in listed:
        made: dict[Place, list[int]] = {}
        for (layer, op, phase), counts in each.items():
            if (layer, phase) in other:
                made.setdefault((layer, JOINED, phase), [0])[0] += sum(counts)
            else:
                made[layer, op, phase] = counts
        joined.append(made)
    return joined


def _list_ops(places: Iterable[Place]) -> dict[tuple[str, str], frozenset[str]]:
    """The ops of each layer and phase."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for layer, op, phase in places:
        found[layer, phase] = found.get((layer, phase), frozenset()) | {op}
    return found


def find_pattern(place: Place) -> Place:
    """The place with * for numbers in the path of its layer: that of each of a list of layers."""
    layer, op, phase = place
    return NUMBER.sub(".*", layer), op, phase


def _number_products(listed: Mapping[Place, list[int]], other: Container[Place]) -> dict[tuple[Place, int], list[int]]:
    """FLOPs by place and number there. For the patterns in ``other``, of which there are other numbers of products at other
    sizes (a loop over parts of a sequence, a list of experts), by pattern: those of each product."""
    found: dict[tuple[Place, int], list[int]] = {}
    for place, counts in listed.items():
        pattern = find_pattern(place)
        for i, flops in enumerate(counts):
            key = (pattern, 0) if pattern in other else (place, i)
            found.setdefault(key, []).append(flops)
    return found


def _find_polynomial(
    counts: Sequence[int], points: Sequence[Sequence[int]], names: Sequence[str], shifts: Sequence[int] = SHIFTS
) -> Polynomial | None:
    """The polynomial that has these values at these points, of a monomial times a short sum, and times T + 3 or the like.

    The first two points tell it, the last one proves it.
    """
    most = _find_powers(counts, points[:-1])
    fewer = (tuple(p - (i == axis) for i, p in enumerate(most)) for axis, power in enumerate(most) if power)
    for powers in (most, *fewer):  # a sum may by chance be divided by the prime of a size
        rest = [Fraction(count, _value(powers, point)) for count, point in zip(counts, points, strict=True)]
        terms = {(0,) * len(names): rest[0]} if len(set(rest)) == 1 else _find_sum(rest, points)
        if terms is not None:
            return Polynomial(
                tuple(names), {tuple(a + b for a, b in zip(powers, more, strict=True)): c for more, c in terms.items()}
            )
    tokens = names.index("T")
    for shift in shifts:
        if all(count % (point[tokens] + shift) == 0 for count, point in zip(counts, points, strict=True)):
            whole = [count // (point[tokens] + shift) for count, point in zip(counts, points, strict=True)]
            rest_of = _find_polynomial(whole, points, names, ())
            if rest_of is not None:
                longer = {tuple(p + (i == tokens) for i, p in enumerate(each)): c for each, c in rest_of.terms.items()}
                return Polynomial(tuple(names), {**{p: c * shift for p, c in rest_of.terms.items()}, **longer})
    return None


def _find_sum_of_kinds(
    counts: Sequence[Sequence[int]], points: Sequence[Sequence[int]], names: Sequence[str]
) -> Polynomial | None:
    """The polynomial of products that are others at other sizes, such as those of a loop: for each kind of product a monomial, or
    one times so many tokens, more or less. Kinds are told by their FLOPs at the first two points, in the order of the program;
    the sum at the last point proves them all."""
    first, second = (list(dict.fromkeys(each)) for each in counts[:2])
    tokens = names.index("T")
    terms: dict[Powers, Fraction] = {}
    for pair in zip(first, second, strict=False):
        sums = [count * each.count(count) for count, each in zip(pair, counts[:2], strict=True)]
        powers = _find_powers(sums, points[:2])
        one, two = (Fraction(count, _value(powers, point)) for count, point in zip(sums, points[:2], strict=True))
        slope = (one - two) / (points[0][tokens] - points[1][tokens])
        start = one - slope * points[0][tokens]
        if slope < 0 or MULTIPLES % slope.denominator or start.denominator > 1:
            return None
        longer = tuple(power + (i == tokens) for i, power in enumerate(powers))
        for each, c in ((powers, start), (longer, slope)):
            terms[each] = terms.get(each, Fraction(0)) + c
    terms = {powers: c for powers, c in terms.items() if c}
    is_proved = sum(c * _value(powers, points[-1]) for powers, c in terms.items()) == sum(counts[-1])
    return Polynomial(tuple(names), terms) if terms and len(first) == len(second) and is_proved else None


def _value(powers: Powers, point: Sequence[int]) -> int:
    """The monomial at a point."""
    return math.prod(x**power for x, power in zip(point, powers, strict=True))


def _find_powers(counts: Sequence[int], points: Sequence[Sequence[int]]) -> Powers:
    """How often each size divides the counts at all of these points."""
    return tuple(
        min(_exponent(count, size) for count, size in zip(counts, column, strict=False))
        for column in zip(*points, strict=True)
    )


def _exponent(count: int, size: int) -> int:
    """How often the largest prime of a size divides a count."""
    prime = max(p for p in _list_primes(size))
    power = 0
    while count and count % prime == 0:
        count, power = count // prime, power + 1
    return power


def _list_primes(number: int) -> Iterable[int]:
    """The prime factors of a number."""
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            yield divisor
            number //= divisor
        else:
            divisor += 1
    yield number


def _find_sum(values: Sequence[Fraction], points: Sequence[Sequence[int]]) -> Mapping[Powers, Fraction] | None:
    """Two monomials of up to two sizes, or one and a number, with multiples that the first two values determine; or the sum of
    three sizes, times a number."""
    axes = range(len(points[0]))
    single = {tuple(int(i == axis) for i in axes): [point[axis] for point in points] for axis in axes}
    monomials = {(0,) * len(axes): [1 for _ in points]} | single
    for a, b in itertools.combinations_with_replacement(axes, 2):
        monomials[tuple(int(i == a) + int(i == b) for i in axes)] = [point[a] * point[b] for point in points]
    first, second, own = values
    for (p, (x, y, x_own)), (q, (v, w, v_own)) in itertools.combinations(monomials.items(), 2):
        determinant = x * w - y * v
        if determinant:
            c, d = (first * w - second * v) / determinant, (second * x - first * y) / determinant
            if (
                c > 0 < d
                and MULTIPLES % c.denominator == MULTIPLES % d.denominator == 0
                and c * x_own + d * v_own == own
            ):
                return {p: c, q: d}
    for three in itertools.combinations(single, 3):
        sums = [sum(single[powers][i] for powers in three) for i in range(len(points))]
        if len({value / total for value, total in zip(values, sums, strict=True)}) == 1:
            return dict.fromkeys(three, values[0] / sums[0])
    return None


def describe_unsized(products: Iterable[Product]) -> list[str]:
    """What ran in products of which no polynomial was found, a sentence for each op of a layer. Whether a formula counts it is
    not known: it is part of the residual."""
    sums: dict[tuple[str, str], int] = {}
    for product in products:
        if product.polynomial is None:
            place = (product.op, NUMBER.sub(".*", product.layer))
            sums[place] = sums.get(place, 0) + product.flops
    return [
        f"residual: {number(flops)} FLOPs of {op} ran, which are no short sum of the configuration's sizes: whether the formula "
        f"counts them is not known ({layer or 'the model'})"
        for (op, layer), flops in sums.items()
    ]
