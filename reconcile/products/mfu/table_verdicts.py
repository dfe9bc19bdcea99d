"""``reconcile mfu --table``: explains each claim of a table; a source's convention is inferred from all its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import comb, log, prod

from ...core.number_format import probability
from .agreement import BEST, agreement, by_chance
from .claims import Row
from .closed_forms import FORMS, numerators, put_first
from .conventions import ALWAYS, CONVENTIONS, HARDWARE, RATE, Convention, Reading, chance, denominators, readings, work
from .printed_number import Printed
from .search import MOST_STATED, search
from .setup import Setup
from .training_compute import list_computes


class State(Enum):
    """What is known of a row."""

    EXPLAINED = "explained"
    CONTRADICTED = "contradicted"
    TOO_LITTLE = "not enough stated"
    NOT_READ = "not read"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row, what was found, and why.

    Attributes:
        row: The row.
        state: What is known of it.
        statement: What the claim is; '' for a row without enough numbers.
        factor: Its multiple of what the source's convention gives, 1 for an explained row without a reading; None if it has none.
        convention: How its source counts; '' if that was not found.
        agrees: How the explanation agrees with the claim's digits, one of ``agreement.BEST``; '' if nothing explains it.
        chance: The share of random claims that would be explained as well; None if nothing explains it.
        reason: Why it is not explained, or what its source states in another way; '' for neither.
        peak: The peak that the claim was divided by, where a convention alone explains it; '' otherwise.
    """

    row: Row
    state: State
    statement: str = ""
    factor: Fraction | None = None
    convention: str = ""
    agrees: str = ""
    chance: float | None = None
    reason: str = ""
    peak: str = ""


DEFINITION = "palm"
STATED = (
    (r"eq\w*\.? ?\(?3|96 ?Bsl", "megatron-eq3"),
    (r"eq\w*\.? ?\(?7|72 ?BLs", "megatron-model"),
    (r"without self-attention|no attention|^6 ?\*? ?(?:N|ND|params|parameters)\b(?!.*(?:12|attention))", "6n"),
    (r"12 ?\*? ?L|12\*layers|PaLM|Chowdhery|nanoGPT|4 ?\*? ?d_model|\+ ?12", "palm"),
)
"""Patterns of the cell ``formula_stated`` with the names of the formulas (closed_forms.py) that they state."""


def stated_formula(row: Row) -> str:
    """The formula that the row states, '' if it states none that is known here."""
    return next((name for pattern, name in STATED if re.search(pattern, row["formula_stated"])), "")


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The verdict on every row, in the order of the file; the rows of one source are read together."""
    sources: dict[str, list[Row]] = {}
    for row in rows:
        sources.setdefault(row.source, []).append(row)
    found = {v.row.number: v for group in sources.values() for v in _source(group)}
    return [found[row.number] for row in rows]


def _source(rows: Sequence[Row]) -> Iterator[Verdict]:
    """The rows of one source: the convention that explains most of them first, then the one that explains most of the rest."""
    known: dict[int, list[Reading]] = {}
    for row in rows:
        if row.wrong or row.claim is None:
            yield Verdict(row, State.NOT_READ, reason=row.wrong)
        elif row.claim.kind == "work":
            yield _explain_training(row)
        elif not (made := readings(row)):
            yield Verdict(row, State.TOO_LITTLE, reason=f"it states no {' and no '.join(list_lacking_sizes(row))}")
        else:
            known[row.number] = made
    open_ = {row.number: row for row in rows if row.number in known}
    used: list[Convention] = []
    labels: Counter[str] = Counter()
    refused: set[Convention] = set()
    while True:
        fits = _fits(open_.values(), known, refused)
        if not fits:
            break
        convention, fitting = max(fits.items(), key=lambda item: _speaks(item[0], item[1]))
        mine = [row for row in fitting if _states_formula(row, convention)]
        if not mine and count_lucky(convention, fitting, list(open_.values()), known) > LUCK:
            refused.add(convention)
            continue
        # A row that states the formula needs no other to speak for it.
        few = mine if mine and count_lucky(convention, fitting, list(open_.values()), known) > LUCK else list(fitting)
        used.append(convention)
        refused.add(convention)
        for row in few:
            del open_[row.number]
            reading = min(fitting[row], key=lambda one: (one.rank, -labels[one.denominator.label]))
            labels[reading.denominator.label] += 1
            yield _explain_by_convention(row, reading, [one for one in known[row.number] if one.convention in used])
    for row in open_.values():
        yield _open(row, known[row.number], used)


def _explain_training(row: Row) -> Verdict:
    """A row that claims the FLOPs of a training: what gives it, the simplest of those that agree best. If nothing does, the
    nearest contradicts it."""
    assert row.claim is not None
    claimed, found = row.claim.figure, list_computes(row)
    if not found:
        return Verdict(
            row, State.TOO_LITTLE, reason="it states no size with tokens, and no device-hours with a utilisation"
        )
    fits = [(BEST.index(how), one) for one in found if (how := agreement(one.flops, claimed))]
    rank, best = min(fits, key=lambda fit: fit[0], default=(0, found[0]))
    share = by_chance(claimed, [best.flops, *(one.flops for one in found)])
    if fits and share > MOST_STATED:
        return Verdict(
            row, State.TOO_LITTLE, reason=f"{best.way} gives it, and {probability(share)} of random claims as well"
        )
    if not fits:
        best = min(found, key=lambda one: abs(log(claimed.value / one.flops.value)))
        factor = claimed.value / best.flops.value
        reason = f"{best.way} gives {float(best.flops.value):.5g}, and the claim is {float(factor):.5g} times that"
        return Verdict(row, State.CONTRADICTED, best.figures, factor, best.way, "", None, reason)
    return Verdict(row, State.EXPLAINED, best.figures, Fraction(1), best.way, BEST[rank], share)


Fits = dict[Row, list[Reading]]


def _fits(rows: Iterable[Row], known: dict[int, list[Reading]], refused: set[Convention]) -> dict[Convention, Fits]:
    """The rows that agree with each convention, and how."""
    found: dict[Convention, Fits] = {}
    for row in rows:
        for one in known[row.number]:
            if one.agrees and one.convention not in refused:
                found.setdefault(one.convention, {}).setdefault(row, []).append(one)
    return found


def _speaks(convention: Convention, fitting: Fits) -> tuple[int, int, int]:
    """How many rows agree with a convention; how many of them state it or agree to the digits; and how simple it is."""
    stated = sum(4 * _states_formula(row, convention) + _says(row, convention) for row in fitting)
    digits = sum(min(one.rank for one in found) == 0 for found in fitting.values())
    return len(fitting), stated + digits, -ORDER.index(convention)


FORM = {form.name: form for form in FORMS}
ORDER = (RATE, *CONVENTIONS)
LUCK = 0.05
"""At most this number of conventions may be expected to explain as many rows of a source by luck."""


def count_lucky(convention: Convention, fitting: Fits, rows: Sequence[Row], known: dict[int, list[Reading]]) -> float:
    """How many of the conventions that these rows allow would explain as many of them if the claims meant nothing."""
    if convention == RATE:
        return 0.0
    each = [chance(row, [one for one in known[row.number] if one.convention == convention]) for row in fitting]
    possible = {one.convention for row in rows for one in known[row.number]}
    return len(possible) * comb(len(rows), len(fitting)) * prod(each)


def _states_formula(row: Row, convention: Convention) -> bool:
    """Whether the row states the formula; one that states none is taken to mean MFU as PaLM defines it."""
    stated = stated_formula(row) or ("" if row.hardware else DEFINITION)
    return convention.form is not None and convention.form.name == stated and convention.mode != ALWAYS


def _says(row: Row, convention: Convention) -> int:
    """Whether the row's cells on masks and recomputation speak for the convention."""
    name = "" if convention.form is None else convention.form.name
    causal = {"half": "causal" in name, "whole": "causal" not in name and not name.startswith("6n")}.get(
        row["causal"], False
    )
    return int(causal) + int(row.hardware and row["recompute"] == "full" and convention.mode == HARDWARE)


def _explain_by_convention(row: Row, reading: Reading, tried: Sequence[Reading]) -> Verdict:
    """A row that a convention of its source gives; ``tried`` are its values under the conventions of the source."""
    share = chance(row, list(tried))
    if reading.convention == RATE and row.claim is not None and row.claim.kind == "share" and reading.value.value > 1:
        return _above(row, reading, share)
    other = FORM[stated_formula(row)].title if stated_formula(row) and reading.convention.form is not None else ""
    differs = other and reading.convention.form is not None and reading.convention.form.name != stated_formula(row)
    reason = f"the source states {other}" if differs else ""
    return Verdict(
        row, State.EXPLAINED, describe_reading(row, reading), Fraction(1), reading.convention.title, reading.agrees, share,
        reason, reading.denominator.label,
    )  # fmt: skip


def _above(row: Row, reading: Reading, share: float) -> Verdict:
    """More than the peak: the printed rate is that of all devices, counted as one."""
    text = describe_reading(row, reading)
    if row.devices < 2:
        return Verdict(
            row, State.CONTRADICTED, text, None, "the printed rate", "", share, "no device does more than its peak"
        )
    reading_text = f"{text}: {row.devices:,} devices counted as 1, x {row.devices:,}"
    return Verdict(row, State.EXPLAINED, reading_text, Fraction(row.devices), "the printed rate", reading.agrees, share)


def _open(row: Row, every: Sequence[Reading], used: Sequence[Convention]) -> Verdict:
    """A row that no convention gives: a product of readings, or else contradicted by the convention of its source."""
    own = [one for one in every if one.convention in used] or [
        one for one in every if one.convention.form is not None and one.convention.form.name == stated_formula(row)
    ] or [one for one in every if one.convention != RATE] or list(every)  # fmt: skip
    base = min(own, key=lambda one: used.index(one.convention) if one.convention in used else 0)
    lacks = list_lacking_sizes(row)
    if lacks and base.convention != RATE:
        return Verdict(row, State.TOO_LITTLE, reason=f"it states no {' and no '.join(lacks)}")
    outcome = _product(row, base)
    if outcome is not None:
        return outcome
    assert row.claim is not None
    factor = row.claim.figure.value / base.value.value
    reason = f"{base.convention.title} gives {format_value(row, base.value)}, and the claim is {float(factor):.5g} times that"
    return Verdict(
        row, State.CONTRADICTED, describe_reading(row, base), factor, base.convention.title, "", None, reason
    )


def _product(row: Row, base: Reading) -> Verdict | None:
    """The row as a product of readings, if one is likelier than chance."""
    assert row.claim is not None
    if base.convention.form is None or row.tokens is None:
        return None
    made = numerators(row.shape)
    setup = Setup(
        devices=row.devices,
        device=base.denominator.device,
        peak=base.denominator.peak,
        tokens=row.tokens,
        numerators=put_first(base.convention.form.name, made),
        recompute="none" if row["recompute"] == "none" else "",
    )
    if row.claim.kind == "share" and setup.peak is None:
        return None
    outcome = search(row.claim, setup)
    if not outcome.explained or not outcome.best.factors:
        return None
    factors = "; ".join(f"x {float(f.factor):.5g} ({f.reading})" for f in outcome.best.factors)
    return Verdict(
        row, State.EXPLAINED, f"{describe_reading(row, base)} {factors}", outcome.best.multiple, base.convention.title,
        outcome.agrees, outcome.chance,
    )  # fmt: skip


def list_lacking_sizes(row: Row) -> list[str]:
    """What a row does not state that the formulas need."""
    found = []
    if row.tokens is None:
        found.append("throughput")
    sizes = [name for name in ("layers", "hidden", "seq") if not getattr(row.shape, name)]
    if not row.shape.params and (sizes or not row.shape.vocab):
        found.append("size of the model")
    elif sizes:
        found.append({"seq": "sequence length"}.get(sizes[0], "shape of the model"))
    if row.claim is not None and row.claim.kind == "share" and not denominators(row):
        found.append("device with a known peak")
    return found


def describe_reading(row: Row, reading: Reading) -> str:
    """``515,636 tokens/s x (6N + 12LhT = 392 GFLOPs) / (512 x 989.4 TFLOP/s of ...)``."""
    peak = reading.denominator.label
    if reading.convention.form is None:
        return f"{row.rate.text if row.rate else ''} / {peak}"
    made = work(row, reading.convention)
    assert made is not None
    assert row.tokens is not None
    again = " x 4/3" if reading.convention.again(row) else ""
    below = f"({row.devices:,} x {peak})" if peak else f"{row.devices:,}"
    return f"{row.tokens.text} tokens/s x ({made.title} = {float(made.total / 10**9):,.4g} GFLOPs){again} / {below}"


def format_value(row: Row, value: Printed) -> str:
    """A share as a percentage, a rate in TFLOP/s."""
    share = row.claim is not None and row.claim.kind == "share"
    return f"{float(100 * value.value):.4g} %" if share else f"{float(value.value / 10**12):.4g} TFLOP/s"
