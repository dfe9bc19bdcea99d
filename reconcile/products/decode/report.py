"""Text output of ``reconcile decode``: the verdict, the readings with their arithmetic, variants, and missing data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...core.number_format import number, probability
from ...core.records import FLOP, MAC
from .printed_figure import PrintedFigure
from .readings import Candidate
from .search import Decoded
from .variants import Hit

VALUES, READINGS, PLACES, ALIKE = 5, 3, 3, 4
"""How many different numbers, readings of each, environments of a reading and numbers that the figure cannot tell from the best
one are shown without --verbose."""

HOW_BRANCHES_ARE_FUSED = (
    "Its own modules fuse their branches so, as timm.utils.model.reparameterize_model does. To run it, name a function that "
    "returns that."
)
"""The sentence that says how a fused form is made."""


def format_decoded(decoded: Decoded, *, quiet: bool = False, verbose: bool = False) -> list[str]:
    """What to print: the verdict, the readings with their arithmetic, and what could not be looked at.

    With ``quiet`` it is one line, with the simplest reading in it.
    """
    lines = [verdict(decoded)]
    if quiet:
        return [f"{lines[0]} {decoded.matches[0].what}." if decoded.matches else lines[0]]
    lines += _readings(decoded, verbose)
    lines += _by_chance(decoded)
    if not decoded.matches:
        lines += ["", f"It is {decoded.distance}."]
    if verbose and decoded.near:
        lines += ["", "Nearest candidates that it is not:"]
        lines += [f"  {c.value:,}  {c.what} [{_places(c, verbose)}]" for c in decoded.near]
    if not decoded.matches or (decoded.cut and decoded.merged):
        lines += _format_work_that_ran(decoded)
    if not decoded.matches or decoded.doubtful or verbose:
        lines += ["", f"Looked at: {', '.join(dict.fromkeys(decoded.environments))}."]
        lines += [f"Not looked at: {note}" for note in decoded.notes]
    left_out = [f"Left out: {note}" for note in decoded.left_out]
    return lines + (["", *left_out] if left_out else [])


def _by_chance(decoded: Decoded) -> list[str]:
    """The sentence that says how many random figures would be explained."""
    if not decoded.matches or decoded.chance is None:
        return []
    digits = "1 digit" if decoded.figure.length == 1 else f"{decoded.figure.length} digits"
    return [
        "",
        f"Of random figures of {digits}, between a tenth and ten times the multiply-adds that ran, {probability(decoded.chance)} "
        f"are explained too, each by one of these {decoded.searched:,} candidates.",
    ]


def of_variants(
    found: Sequence[Hit], ran: int, chance: float | None, wanted: PrintedFigure, look: Callable[[Sequence[str]], str]
) -> list[str]:
    """What other sizes, settings and forms of the network have the figure, with the command that ``look`` makes of their words;
    and how often one of the ``ran`` variants would have a figure that means nothing."""
    lines = []
    for hit in found[:READINGS]:
        reading = f"{number(hit.reading.value)}: {hit.reading.what}"
        where = f" Look there: {look(hit.variant.words)}" if hit.variant.words else f" {HOW_BRANCHES_ARE_FUSED}"
        lines.append(f"The network {hit.variant.what} has {reading}.{where}")
    if lines and chance is not None:
        digits = "1 digit" if wanted.length == 1 else f"{wanted.length} digits"
        lines.append(
            f"It may be another network's figure: of random figures of {digits}, {probability(chance)} are found among the {ran} "
            "variants that ran."
        )
    return lines


def _format_work_that_ran(decoded: Decoded) -> list[str]:
    """The multiply-adds that ran, for a figure that nothing explains."""
    macs = [f"{value:,}" for value in dict.fromkeys(c.value for c in decoded.plain)]
    if len(macs) != 1 or decoded.figure.exact:
        return ["", f"The work that ran is {' or '.join(macs)} MACs."] if macs else []
    mantissa, _, power = f"{decoded.plain[0].value:.{decoded.figure.length - 1}e}".partition("e")
    return ["", f"The work that ran is {macs[0]} MACs, which round to {mantissa}e{int(power)}."]


def verdict(decoded: Decoded) -> str:
    """One line: explained, ambiguous or not explained."""
    figure, count, values = decoded.figure, len(decoded.matches), decoded.values
    name = f"{figure.digits:,}" if figure.exact else figure.text
    if not decoded.matches:
        meets = "is this number" if figure.exact else "rounds to it" + ("" if figure.few else ", or is cut off to it")
        rounded = figure.exact and figure.digits and figure.digits % 1000 == 0
        hint = f" If it is rounded, write it so: {_round_value(figure.digits)}." if rounded else ""
        return f"{name} for {decoded.model} is not explained: none of {decoded.searched:,} candidates {meets}.{hint}"
    unit = {MAC: "MACs", FLOP: "FLOPs"}.get(figure.counts, "")
    other = f" No reading in {unit} agrees; these are in another unit." if decoded.other_unit else ""
    if decoded.doubtful and not decoded.ambiguous:
        return (
            f"{name} for {decoded.model} may be explained. It is neither the total of a counter that was looked at nor that of "
            f"the work that ran, so this reading may be a coincidence:{other}"
        )
    if decoded.cut and decoded.merged:
        return f"{name} for {decoded.model} is explained if its digits are cut off and not rounded:{other}"
    if figure.exact or decoded.merged:
        return f"{name} for {decoded.model} is explained:{other}"
    how = "have these digits, the rest cut off (none rounds to them)" if decoded.cut else "round to it"
    if count == 1:
        how = how.replace("have", "has", 1) if decoded.cut else "rounds to it"
    held = f"{count} candidate{'s' if count > 1 else ''} {how}"
    if decoded.ambiguous:
        numbers = f"{len(values)} different numbers"
        return f"{name} for {decoded.model} is ambiguous: {held}, {numbers}.{other} The simplest first:"
    return f"{name} for {decoded.model} is explained: {held}{', all' if count > 1 else ','} {values[0]:,}:{other}"


def _round_value(value: int) -> str:
    digits = str(value).rstrip("0")
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{mantissa}e{len(str(value)) - 1}"


def _readings(decoded: Decoded, verbose: bool) -> Iterator[str]:
    """For each number the readings of the lowest rank and the next; with ``verbose`` all."""
    shown = 0
    for value in decoded.values if verbose else decoded.values[:VALUES]:
        same = [c for c in decoded.matches if c.value == value]
        best = same if verbose else [c for c in same if c.rank <= same[0].rank + 1][:READINGS]
        shown += len(best)
        yield ""
        yield f"  {value:,}"
        for candidate in best:
            yield f"    {candidate.what}"
            if candidate.how:
                yield f"      {candidate.how}"
            if candidate.note:
                yield f"      {candidate.note}"
            yield f"      {_places(candidate, verbose)}"
    if decoded.merged:
        first: dict[int, Candidate] = {}
        for candidate in decoded.matches:
            first.setdefault(candidate.value, candidate)
        others = [f"{c.value:,} ({c.what})" for c in first.values()][1:]
        if others:
            more = len(others) - (len(others) if verbose else ALIKE)
            listed = others if verbose else others[:ALIKE]
            yield ""
            yield f"  Its digits do not tell this from {'; '.join(listed)}" + (
                f"; and {more} more." if more > 0 else "."
            )
        return
    rest = len(decoded.matches) - shown
    if rest:
        yield ""
        yield f"  {rest} more {'readings' if rest > 1 else 'reading'}: --verbose"


def _places(candidate: Candidate, verbose: bool) -> str:
    held = candidate.where if verbose else candidate.where[:PLACES]
    more = len(candidate.where) - len(held)
    return "; ".join(held) + (f"; and {more} more" if more else "")
