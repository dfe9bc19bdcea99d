"""The pages of ``reconcile mfu``, and their JSON: one claim as a product of factors, or the MFU itself where none is given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from ...core.number_format import probability
from ...report.document import Document, Items, Table, tabulate
from .peaks import TERA, Device, Peak, tera
from .readings import cite_device
from .search import Outcome
from .setup import Setup

SCHEMA = 1


def describe_claim(outcome: Outcome) -> Document:
    """The claim as stated figures times factors, with the peak, the sources of the factors, and what else fits."""
    best = outcome.best
    rows = [(format_value(best.stated.value, outcome), f"stated: {formula(outcome.setup, best.peak)}")]
    for factor in best.factors:
        rows.append((f"x {number(factor.factor)}", factor.reading))
        rows += [("", f"  {name} {format_signed(amount)} per token") for name, amount in factor.causes]
    rows += [(outcome.claim.text, "claimed"), describe_remainder(outcome.remainder)]
    return Document(
        f"{outcome.claim.text} as a product of factors",
        headline(outcome),
        (tabulate_factors(rows), Items(tuple(notes(outcome)))),
        outcome.explained,
    )


def tabulate_factors(rows: Sequence[tuple[str, str]]) -> Table:
    """A table of factors, each with its reading."""
    return tabulate(">|", rows)


def describe_remainder(remainder: tuple[Fraction, Fraction]) -> tuple[str, str]:
    """The row of what the factors leave: 1 if it is within the printed digits."""
    low, high = remainder
    return ("1", "remainder") if low <= 1 <= high else (decimal((low + high) / 2), "remainder, unexplained")


def headline(outcome: Outcome) -> str:
    """The answer in a sentence: whether the claim is explained, and by which factors."""
    claim = outcome.claim.text
    readings = "; ".join(factor.reading for factor in outcome.best.factors)
    if outcome.explained:
        return f"{claim} is explained: {readings or 'it is what the stated figures give'}."
    if outcome.fits:
        gives = f"{readings} gives" if readings else "the stated figures give"
        return (
            f"{claim} is not explained: {gives} it, but what is as simple gives {probability(outcome.chance)} of random claims "
            "with as many digits."
        )
    low, high = outcome.remainder
    return f"{claim} is not explained: the nearest product leaves a factor of {decimal((low + high) / 2)}."


def formula(setup: Setup, peak: int) -> str:
    """What the stated utilisation is computed as: ``1545.38T FLOP/s / (8 x 989.5 TFLOP/s)``."""
    if setup.flops is not None:
        rate = _per_second(setup.flops.text)
    else:
        assert setup.tokens is not None
        rate = f"{setup.tokens.text} tokens/s x {setup.numerators[0].title}"
    below = [*([f"{setup.devices:,}"] if setup.devices > 1 else []), *([tera(peak)] if peak > 1 else [])]
    return " / ".join([rate, *([f"({' x '.join(below)})" if len(below) > 1 else below[0]] if below else [])])


def _per_second(text: str) -> str:
    return text if "/" in text or text.lower().endswith("flops") else f"{text} FLOP/s"


def notes(outcome: Outcome) -> list[str]:
    """The peak with its datasheet, the source of every factor, MFU and HFU, and what else fits."""
    setup, best = outcome.setup, outcome.best
    lines = []
    if setup.device is not None and setup.peak is not None:
        how = f" ({best.how})" if best.how else ""
        peak = best.peak if best.peak > 1 else setup.peak.dense
        lines.append(describe_peak(setup.device, setup.peak, peak, how))
    lines += [f"Source of x {number(factor.factor)}: {factor.source}." for factor in best.factors]
    lines += [
        f"It may be this reading as well: x {number(one.factor)} {one.reading}; {one.source}." for one in outcome.also
    ]
    if outcome.mfu is not None:
        lines.append(f"MFU {share(outcome.mfu)}" + (f", HFU {share(outcome.hfu)}." if outcome.hfu is not None else "."))
    if outcome.agrees:
        others = outcome.fits - 1
        more = (
            "no other product fits"
            if not others
            else f"{others} other product{'s' * (others > 1)} fit{'s' * (others == 1)}"
        )
        lines.append(f"It agrees {outcome.agrees}; {more}; by chance {probability(outcome.chance)}.")
    else:
        lines.append(
            f"No product of up to two factors fits; all of them fit {probability(outcome.chance)} of random claims."
        )
    return lines


def describe_peak(device: Device, peak: Peak, flops: int, how: str = "") -> str:
    """The sentence on the peak that a utilisation divides by."""
    return f"Peak: {tera(flops)}{how}, {peak.dtype} dense, {device.title}; {cite_device(device, peak)}."


def describe_setup(setup: Setup) -> Document:
    """The MFU that the stated figures give, without a claim. The setup has a peak."""
    assert setup.peak is not None
    peak = setup.peak.dense
    lines = () if setup.device is None else (describe_peak(setup.device, setup.peak, peak),)
    return Document("MFU", f"MFU {share(setup.utilisation_at(peak).value)} = {formula(setup, peak)}.", (Items(lines),))


def data_of_setup(setup: Setup) -> str:
    """The page of ``describe_setup`` as JSON. Its ``flops_per_second`` is the peak."""
    assert setup.peak is not None
    mfu = str(setup.utilisation_at(setup.peak.dense).value)
    return json.dumps({"schema": SCHEMA, "mfu": mfu, "flops_per_second": setup.peak.dense}, indent=1) + "\n"


def data(outcome: Outcome) -> str:
    """The page of ``describe_claim`` as JSON, exact numbers as strings."""
    setup, best = outcome.setup, outcome.best
    low, high = outcome.remainder
    content = {
        "schema": SCHEMA,
        "claimed": outcome.claim.text,
        "state": "explained" if outcome.explained else "not explained",
        "mfu": None if outcome.mfu is None else str(outcome.mfu),
        "hfu": None if outcome.hfu is None else str(outcome.hfu),
        "stated": str(best.stated.value),
        "factors": [
            {
                "factor": str(factor.factor),
                "reading": factor.reading,
                "source": factor.source,
                "causes": {name: str(amount) for name, amount in factor.causes},
            }
            for factor in best.factors
        ],
        "also": [{"factor": str(one.factor), "reading": one.reading, "source": one.source} for one in outcome.also],
        "remainder": {"low": str(low), "high": str(high)},
        "agrees": outcome.agrees,
        "others": max(0, outcome.fits - 1),
        "by_chance": f"{outcome.chance:.3g}",
        "peak": None
        if setup.device is None or setup.peak is None
        else {
            "device": setup.device.title,
            "dtype": setup.peak.dtype,
            "flops_per_second": str(best.peak if best.peak > 1 else setup.peak.dense),
            "printed": best.how,
            "datasheet": cite_device(setup.device, setup.peak),
        },
    }
    return json.dumps(content, indent=1) + "\n"


def number(value: Fraction) -> str:
    """A factor: ``8``, ``1/2``, or five digits with the fraction where it is long."""
    if value.denominator == 1:
        return f"{value.numerator:,}"
    whole = str(value)
    return whole if len(whole) <= 7 else decimal(value)


def decimal(value: Fraction) -> str:
    """Five digits of a number."""
    return f"{float(value):.5g}"


def format_signed(value: Fraction) -> str:
    """An amount of FLOPs with a sign."""
    return f"{int(value):+,}" if value.denominator == 1 else f"{float(value):+,.2f}"


def share(value: Fraction) -> str:
    """A ratio as a percentage: ``19.52 %``; a small one with two digits: ``0.0022 %``."""
    return f"{float(100 * value):.2f} %" if value >= Fraction(1, 1000) or not value else probability(float(value))


def format_value(value: Fraction, outcome: Outcome) -> str:
    """A share as a percentage, a rate in TFLOP/s."""
    return share(value) if outcome.claim.kind == "share" else f"{float(value / TERA):,.6g} TFLOP/s"
