"""Subtracts what ran from what a formula counts, monomial by monomial, and names the cause of each difference.

Neither side has seen the number that the formula gives at the user's sizes. Two monomials that are the same number there, such
as h^2 and h n d in a model whose heads together are as wide as it is, are no difference.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ....core.causes import Cause
from ....core.records import FORWARD
from ...formula.polynomial import Polynomial, Powers, format_fraction
from .free_sizes import WINDOW, Sizes
from .trace_terms import NUMBER, Product

STEP = 3
"""The passes of a training step: forward, and the gradients of both factors of a product."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between a formula and what ran.

    Attributes:
        cause: Why they differ.
        terms: What the formula counts, ``12 B T h V``, and what ran; '' for nothing.
        amount: FLOPs of a step to add to the formula's to arrive at what ran.
        layers: The layers whose products it is, ``model.layers.*.mlp`` for those of a list; () if none ran.
    """

    cause: Cause
    terms: tuple[str, str]
    amount: Fraction
    layers: tuple[str, ...]

    @property
    def text(self) -> str:
        """``counts 12 B T V h where 6 B T V h ran (lm_head)``."""
        counted, ran = self.terms
        where = f" ({', '.join(self.layers)})" if self.layers else ""
        if not ran:
            return f"counts {counted}, which did not run"
        return f"counts {counted} where {ran} ran{where}" if counted else f"has no term for {ran}{where}"


@dataclass(slots=True)
class _Side:
    """The coefficients of what ran: of a step, of its forward pass alone, and the layers of each monomial."""

    all: dict[Powers, Fraction]
    forward: dict[Powers, Fraction]
    layers: dict[Powers, list[str]]


def find_differences(
    formula: Polynomial,
    products: Sequence[Product],
    sizes: Sizes,
    layers: int,
    training: bool,
    held: Sequence[str] = (),
) -> tuple[Difference, ...]:
    """The differences, the largest first.

    Args:
        formula: What the formula counts.
        products: What ran.
        sizes: The sizes of both.
        layers: The number of layers, which stands as L in coefficients.
        training: Whether a training step ran.
        held: The sizes that have the user's value in the formula, and so in what ran.
    """
    ran = _collect(products, [i for i, size in enumerate(sizes.free) if size.name in held], sizes.own)
    delta = {p: formula.terms.get(p, Fraction(0)) - ran.all.get(p, Fraction(0)) for p in {**formula.terms, **ran.all}}
    show = _Printer(sizes, layers)
    delta = _cancel(delta, show)
    found = []
    for plus, minus in _pair(delta, formula, ran, show):
        cause = _name_pair(plus, minus, show)
        amount = -delta[plus] * show.value(plus) - delta[minus] * show.value(minus)
        texts = show.terms((plus, delta[plus]), (minus, -delta[minus]), ran.layers[minus])
        found.append(Difference(cause, texts, amount, _merge(ran.layers[minus])))
        del delta[plus], delta[minus]
    windowed = any(c and show.exponent(p, WINDOW) for p, c in delta.items())
    ratios = {formula.terms.get(p, Fraction(0)) / c for p, c in ran.all.items()}
    times = next(iter(ratios)) if len(ratios) == 1 else Fraction(1)
    halved = any(c == -ran.all.get(p, 0) / 2 and show.exponent(p, "T") > 1 for p, c in delta.items() if c)
    for powers, c in delta.items():
        if c:
            cause = (
                _name(powers, c, ran, show, windowed, halved, training)
                if times == 1
                else _name_multiple(times, training)
            )
            counted, there = c + ran.all.get(powers, Fraction(0)), ran.all.get(powers, Fraction(0))
            texts = show.terms((powers, counted), (powers, there), ran.layers.get(powers, []))
            found.append(Difference(cause, texts, -c * show.value(powers), _merge(ran.layers.get(powers, []))))
    return tuple(sorted(found, key=lambda each: -abs(each.amount)))


def find_predictions(formula: Polynomial, plain: Polynomial, sizes: Sizes) -> tuple[Difference, ...]:
    """What a formula counts for layers that predict further tokens and that the model lacks.

    Args:
        formula: What the formula counts.
        plain: What it counts where the configuration states no such layers.
        sizes: The sizes of both.
    """
    show = _Printer(sizes, 1)
    more = {
        p: formula.terms.get(p, Fraction(0)) - plain.terms.get(p, Fraction(0)) for p in {**formula.terms, **plain.terms}
    }
    listed = sorted(((p, c) for p, c in more.items() if c), key=lambda term: -term[1] * show.value(term[0]))
    text = " + ".join(show.terms((p, c), (p, Fraction(0)), ())[0] for p, c in listed)
    amount = -sum((c * show.value(p) for p, c in listed), Fraction(0))
    return (Difference(Cause.PREDICTION_LAYERS_COUNTED, (text, ""), amount, ()),) if listed else ()


def _collect(products: Iterable[Product], held: Sequence[int], own: Sequence[int]) -> _Side:
    """What ran by monomial, with the user's value of each size that is held."""
    side = _Side({}, {}, {})
    for product in products:
        for powers, c in product.polynomial.terms.items() if product.polynomial is not None else ():
            c *= math.prod(own[i] ** powers[i] for i in held)
            left = tuple(0 if i in held else power for i, power in enumerate(powers))
            side.all[left] = side.all.get(left, Fraction(0)) + c
            side.forward[left] = side.forward.get(left, Fraction(0)) + (c if product.phase == FORWARD else 0)
            side.layers.setdefault(left, []).append(product.layer)
    return side


def _cancel(delta: Mapping[Powers, Fraction], show: _Printer) -> dict[Powers, Fraction]:
    """Without what is as much on both sides: monomials of the same number of tokens that are the same number for the user."""
    left = dict(delta)
    for plus in [p for p, c in delta.items() if c > 0]:
        for minus in [p for p, c in delta.items() if c < 0]:
            if show.tokens(plus) == show.tokens(minus) and show.value(plus) == show.value(minus):
                both = min(left[plus], -left[minus])
                left[plus], left[minus] = left[plus] - both, left[minus] + both
    for plus, minus in itertools.product(
        delta, delta
    ):  # a field that a formula does not read is a size by another name
        is_opposite = left[plus] > 0 and left[plus] * show.value(plus) == -left[minus] * show.value(minus)
        if is_opposite and show.tokens(plus) == show.tokens(minus):
            left[plus] = left[minus] = Fraction(0)
    return {powers: c for powers, c in left.items() if c}


def _pair(
    delta: Mapping[Powers, Fraction], formula: Polynomial, ran: _Side, show: _Printer
) -> list[tuple[Powers, Powers]]:
    """Monomials that stand for each other: one did not run, the other is not counted, and they have the coefficient, the tokens
    and another size in common."""
    pairs, taken = [], set[Powers]()
    missing = [p for p, c in delta.items() if c < 0 and p not in formula.terms]
    for plus in [p for p, c in delta.items() if c > 0 and p not in ran.all]:
        others = [p for p in missing if delta[p] == -delta[plus] and p not in taken and show.have_in_common(p, plus)]
        if len(others) == 1:
            taken.add(others[0])
            pairs.append((plus, others[0]))
    return pairs


def _name_pair(plus: Powers, minus: Powers, show: _Printer) -> Cause:
    """The cause of a monomial in the place of another."""
    if show.exponent(plus, "E") > show.exponent(minus, "E"):
        return Cause.ALL_EXPERTS_COUNTED
    free = [dict(zip(show.names, powers, strict=True)) for powers in (plus, minus)]
    if "d" in free[0] and free[0]["d"] < free[1]["d"] and free[0].get("h/n", 0) > free[1].get("h/n", 0):
        return Cause.WIDTH_ASSUMED
    return Cause.FORMULA_DIFFERS


def _name(
    powers: Powers, c: Fraction, ran: _Side, show: _Printer, windowed: bool, halved: bool, training: bool
) -> Cause:
    """The cause of the difference ``c`` in the coefficient of one monomial."""
    there = ran.all.get(powers, Fraction(0))
    counted = there + c
    attention = show.exponent(powers, "T") + show.exponent(powers, WINDOW) > 1
    if training and there and counted and counted == STEP * ran.forward[powers]:
        return Cause.BACKWARD_ASSUMED
    if (attention and windowed) or (not there and show.exponent(powers, WINDOW)):
        return Cause.ATTENTION_WINDOWED
    if attention and not counted:
        return Cause.ATTENTION_LEFT_OUT
    if attention and counted == there / 2:
        return Cause.ATTENTION_HALVED
    if not there and halved and show.times(powers, "T") in ran.all:
        return Cause.ATTENTION_HALVED
    if show.exponent(powers, "V") and show.exponent(powers, "h"):
        if c == 2 * (STEP if training else 1):
            return Cause.LOOKUP_AS_PRODUCT
        return Cause.FORMULA_DIFFERS if counted else Cause.HEAD_LEFT_OUT
    if not there and not attention and show.width(powers) == 1:
        return Cause.PARAMETERS_AS_PRODUCTS
    return Cause.FORMULA_DIFFERS


def _name_multiple(times: Fraction, training: bool) -> Cause:
    """The cause where a formula counts all that ran so many times."""
    again = training and times == Fraction(STEP + 1, STEP)
    return Cause.RECOMPUTATION_ASSUMED if again else Cause.FORMULA_DIFFERS


def _merge(layers: Iterable[str]) -> tuple[str, ...]:
    """Layers, those of a list as one."""
    return tuple(dict.fromkeys(NUMBER.sub(".*", layer) or "the model" for layer in layers))


class _Printer:
    """Monomials of free sizes as those of the configuration's letters, and their values for the user."""

    def __init__(self, sizes: Sizes, layers: int) -> None:
        self.names = [size.name for size in sizes.free]
        self.own, self.layers = sizes.own, layers

    def value(self, powers: Powers) -> int:
        """The monomial at the user's sizes."""
        return math.prod(x**power for x, power in zip(self.own, powers, strict=True))

    def letters(self, powers: Powers) -> dict[str, int]:
        """The exponent of each letter: of ``n/k``, n over k. Where no field states d, it is ``h/n``."""
        free = dict(zip(self.names, powers, strict=True))
        found: dict[str, int] = {}
        quotients = {name: power for name, power in free.items() if "/" in name and power}
        for name, power in free.items():
            if "/" not in name and power:
                found[name] = found.get(name, 0) + power
        for name in sorted(quotients, key=lambda each: each != "n/k"):
            power, (large, small) = quotients[name], name.split("/")
            heads = min(power, max(found.get(small, found.get("k", 0) if small == "n" else 0), 0))
            whole = heads if name == "h/n" and "d" not in self.names else power
            below = small if small in found or "n/k" in quotients or small in self.names else "k"
            found[large] = found.get(large, 0) + whole
            found[below] = found.get(below, 0) - whole
            if power > whole:
                found["d"] = found.get("d", 0) + power - whole
        return {letter: power for letter, power in found.items() if power}

    def exponent(self, powers: Powers, letter: str) -> int:
        """The exponent of a letter."""
        return self.letters(powers).get(letter, 0)

    def tokens(self, powers: Powers) -> tuple[int, int]:
        """The exponents of the batch and of the tokens of a sequence."""
        return self.exponent(powers, "B"), self.exponent(powers, "T")

    def width(self, powers: Powers) -> int:
        """How many sizes are multiplied beside those of the input."""
        return sum(power for letter, power in self.letters(powers).items() if letter not in ("B", "T"))

    def have_in_common(self, first: Powers, second: Powers) -> bool:
        """Whether two monomials have the tokens and a further size in common."""
        both = {letter for letter in self.letters(first) if letter in self.letters(second)} - {"B", "T"}
        return self.tokens(first) == self.tokens(second) and bool(both)

    def times(self, powers: Powers, letter: str) -> Powers:
        """The monomial times one more size of the input."""
        axis = self.names.index(letter)
        return tuple(power + (i == axis) for i, power in enumerate(powers))

    def terms(
        self, counted: tuple[Powers, Fraction], ran: tuple[Powers, Fraction], layers: Sequence[str]
    ) -> tuple[str, str]:
        """``6 L B T^2 n d``: coefficients with their monomials, '' for one of 0. The number of layers is taken out of both if
        the products are of that many layers."""
        many = self.layers > 1 and all((c / self.layers).denominator == 1 for _, c in (counted, ran))
        many = many and len({found[0] for found in map(NUMBER.findall, layers) if found}) in (self.layers, 0)
        many = many and (not layers or any(map(NUMBER.search, layers)))
        first, second = (self._term(p, c / self.layers if many else c, many) if c else "" for p, c in (counted, ran))
        return first, second

    def _term(self, powers: Powers, c: Fraction, many: bool) -> str:
        exponents = self.letters(powers)
        order = ["B", "T", *sorted(set(exponents) - {"B", "T"})]
        shown = [
            letter + (f"^{exponents[letter]}" if exponents[letter] != 1 else "")
            for letter in order
            if letter in exponents
        ]
        return " ".join([format_fraction(c), *(["L"] if many else []), *shown])
