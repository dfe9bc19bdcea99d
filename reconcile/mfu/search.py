"""The simplest product of readings that gives a claim, how many others do, and how often chance would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

from ..decode.chance import covered
from .printed import Claim, Printed
from .readings import FAR, Factor, singles
from .setup import Setup

MOST = 0.008
"""A product is no explanation if products as simple explain more than this share of random claims."""
PAIR = 1
"""What a second factor costs."""
SCALE = 10**15
"""Shares are at least this fine where their logarithms are taken."""
DIGITS, ROUNDING, CUT = "to the printed digits", "within the rounding of the inputs", "cut off, not rounded"
BEST = (DIGITS, ROUNDING, CUT)
"""The ways in which a claim agrees, the best first."""


@dataclass(frozen=True)
class Product:
    """Stated times factors, with the peak as ``peak`` prints it; ``how`` says how it is printed."""

    stated: Printed
    peak: int
    how: str
    factors: tuple[Factor, ...]

    @property
    def cost(self) -> int:
        """Simpler products cost less."""
        return sum(f.cost for f in self.factors) + PAIR * max(0, len(self.factors) - 1)

    @cached_property
    def multiple(self) -> Fraction:
        """All factors together."""
        made = Fraction(1)
        for one in self.factors:
            made *= one.factor
        return made

    @cached_property
    def value(self) -> Printed:
        """What the claim should be."""
        return Printed("", self.stated.value * self.multiple, self.stated.half * self.multiple)

    def agrees(self, claimed: Printed) -> str:
        """How the claim agrees with it, '' if it does not."""
        value = self.value
        if claimed.low <= value.value <= claimed.high:
            return DIGITS
        if claimed.low <= value.high and value.low <= claimed.high:
            return ROUNDING
        low, high = claimed.cut
        return CUT if claimed.half and low <= value.value < high else ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``best`` explains the claim if ``explained``; otherwise it is the nearest product, or one that chance explains as well.

    ``fits`` is how many products agree with the claim, and ``chance`` the share of random claims that a product as simple does.
    ``also`` are other single readings that agree: a factor of 2 has several.
    """

    claim: Claim
    setup: Setup
    explained: bool
    best: Product
    agrees: str
    fits: int
    chance: float
    also: tuple[Factor, ...] = ()

    @property
    def remainder(self) -> tuple[Fraction, Fraction]:
        """Claimed over the product, as an interval: explained claims have 1 in it."""
        value, claimed = self.best.value, self.claim.figure
        return claimed.low / value.high, claimed.high / value.low

    @property
    def mfu(self) -> Fraction | None:
        """The utilisation as stated, without the factors; None without a peak."""
        if self.setup.peak is None:
            return None
        peak = self.best.peak if self.best.peak > 1 else self.setup.peak.dense
        return self.setup.stated(peak).value

    @property
    def hfu(self) -> Fraction | None:
        """The same with recomputed activations, where the setup says whether any are."""
        if self.mfu is None or self.setup.recompute not in ("none", "full"):
            return None
        return self.mfu * (Fraction(4, 3) if self.setup.recompute == "full" else 1)


def products(setup: Setup, share: bool) -> list[Product]:
    """Every product of up to two factors, the simplest first; each multiple once, by its simplest reading."""
    found = singles(setup, share)
    pairs = [
        (one, other)
        for one, other in combinations(sorted(found, key=lambda f: f.cost), 2)
        if one.kind != other.kind and one.factor * other.factor != 1
    ]
    prints = setup.prints if share else ((1, ""),)
    # The zeros at the end of a throughput may be rounded digits: 9,600 tokens/s.
    peak, how = prints[0]
    rounded = Product(setup.rounded(peak), peak, how, ())
    chains: list[tuple[Factor, ...]] = [(), *((one,) for one in found), *pairs]
    kept: dict[Fraction, list[Product]] = {}
    for chain in chains:
        made = [Product(setup.stated(peak), peak, how, chain) for peak, how in prints]
        before = kept.get(made[0].multiple)
        if before is None or made[0].cost < before[0].cost:
            kept[made[0].multiple] = made
    stated, *others = kept.values()
    return [*stated, rounded, *sorted((p for group in others for p in group), key=lambda p: p.cost)]


def search(claim: Claim, setup: Setup, made: Sequence[Product] = ()) -> Outcome:
    """What the claim is. The stated value itself needs no luck; a product has to be likelier than chance.

    ``made`` are the products of the setup, if they are known already.
    """
    share = claim.kind == "share"
    made = made or products(setup, share)
    fitting = [(p, how) for p in made if (how := p.agrees(claim.figure))]
    fitting.sort(key=lambda item: (item[0].cost, BEST.index(item[1])))
    if not fitting:
        near = min(made, key=lambda p: _apart(p, claim.figure) + Fraction(p.cost, 100))
        return Outcome(claim, setup, False, near, "", 0, by_chance(claim.figure, made))
    best, how = fitting[0]
    also = tuple(dict.fromkeys(one for one in singles(setup, share) if _also(one, best, claim.figure)))
    chance = by_chance(claim.figure, made[: made.index(best) + 1])
    several = len({p.multiple for p, _ in fitting})
    return Outcome(claim, setup, not best.factors or chance <= MOST, best, how, several, chance, also)


def _also(one: Factor, best: Product, claimed: Printed) -> bool:
    """Whether this reading alone agrees, too."""
    alone = Product(best.stated, best.peak, best.how, (one,))
    return len(best.factors) == 1 and one != best.factors[0] and one.cost <= FAR and bool(alone.agrees(claimed))


def _apart(product: Product, claimed: Printed) -> Fraction:
    quotient = claimed.value / product.value.value
    return max(quotient, 1 / quotient) - 1


def by_chance(claimed: Printed, made: Sequence[Product]) -> float:
    """The share of random claims of as many digits that one of these products agrees with.

    Random: the logarithm is even between a tenth and ten times the stated value.
    """
    if not claimed.half:
        return 0.0
    digits = significant(claimed)
    ranges = []
    for product in made:
        value = product.value
        unit = Fraction(10) ** (_size(value.value) - digits + 1)
        # A claim rounds to its product, or is cut off from it.
        low, high = value.low - unit / 2, value.high + unit / 2
        ranges.append((float(low * SCALE), float(high * SCALE)))
    return covered(ranges, max(1, int(made[0].stated.value * SCALE)))


def significant(claimed: Printed) -> int:
    """The digits of a printed number: 156.18 % has 5."""
    return len(str(int(claimed.value / (2 * claimed.half))))


def _size(value: Fraction) -> int:
    """The power of ten of the first digit."""
    power = len(str(int(value))) - 1 if value >= 1 else -len(str(int(1 / value)))
    while Fraction(10) ** (power + 1) <= value:
        power += 1
    while Fraction(10) ** power > value:
        power -= 1
    return power
