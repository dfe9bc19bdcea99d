"""The page of ``reconcile decode``: the verdict, the readings with their arithmetic, variants, and missing data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...core.number_format import format_count, number, probability
from ...core.records import FLOP, MAC
from ...report.document import Block, Code, Document, Items, Text
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


def describe_decoded(decoded: Decoded, *, verbose: bool = False) -> Document:
    """The verdict, the readings with their arithmetic, and what could not be looked at."""
    blocks: list[Block] = [Code("\n".join(lines)) for lines in _list_readings(decoded, verbose)]
    blocks += map(Text, _list_others(decoded, verbose))
    if decoded.matches and decoded.chance is not None:
        blocks.append(
            Text(
                f"Of random figures of {_name_digits(decoded.figure)}, between a tenth and ten times the multiply-adds that ran, "
                f"{probability(decoded.chance)} are explained too, each by one of these {decoded.searched:,} candidates."
            )
        )
    if not decoded.matches:
        blocks.append(Text(f"It is {decoded.distance}."))
    if verbose and decoded.near:
        near = (f"{c.value:,}  {c.what} [{_places(c, verbose)}]" for c in decoded.near)
        blocks += [Text("Nearest candidates that it is not:"), Items(tuple(near))]
    if not decoded.matches or (decoded.cut and decoded.merged):
        blocks += map(Text, _describe_work_that_ran(decoded))
    if not decoded.matches or decoded.doubtful or verbose:
        looked = f"Looked at: {', '.join(dict.fromkeys(decoded.environments))}."
        blocks.append(Items((looked, *(f"Not looked at: {note}" for note in decoded.notes))))
    blocks.append(Items(tuple(f"Left out: {note}" for note in decoded.left_out)))
    return Document(verdict(decoded), "", tuple(blocks), bool(decoded.matches))


def summarize(decoded: Decoded) -> str:
    """The verdict with the simplest reading, in a line."""
    return f"{verdict(decoded)} {decoded.matches[0].what}." if decoded.matches else verdict(decoded)


def _name_digits(figure: PrintedFigure) -> str:
    return "1 digit" if figure.length == 1 else f"{figure.length} digits"


def describe_variants(
    found: Sequence[Hit], ran: int, chance: float | None, wanted: PrintedFigure, look: Callable[[Sequence[str]], str]
) -> list[Block]:
    """What other sizes, settings and forms of the network have the figure, with the command that ``look`` makes of their words;
    and how often one of the ``ran`` variants would have a figure that means nothing."""
    blocks: list[Block] = []
    for hit in found[:READINGS]:
        has = f"The network {hit.variant.what} has {number(hit.reading.value)}: {hit.reading.what}."
        if hit.variant.words:
            blocks += [Text(f"{has} Look there:"), Code(look(hit.variant.words), "sh")]
        else:
            blocks.append(Text(f"{has} {HOW_BRANCHES_ARE_FUSED}"))
    if blocks and chance is not None:
        blocks.append(
            Text(
                f"It may be another network's figure: of random figures of {_name_digits(wanted)}, {probability(chance)} are "
                f"found among the {format_count(ran, 'variant')} that ran."
            )
        )
    return blocks


def _describe_work_that_ran(decoded: Decoded) -> list[str]:
    """The multiply-adds that ran, for a figure that nothing explains."""
    macs = [f"{value:,}" for value in dict.fromkeys(c.value for c in decoded.plain)]
    if len(macs) != 1 or decoded.figure.exact:
        return [f"The work that ran is {' or '.join(macs)} MACs."] if macs else []
    mantissa, _, power = f"{decoded.plain[0].value:.{decoded.figure.length - 1}e}".partition("e")
    return [f"The work that ran is {macs[0]} MACs, which round to {mantissa}e{int(power)}."]


def verdict(decoded: Decoded) -> str:
    """One line: explained, ambiguous or not explained."""
    figure, count, values = decoded.figure, len(decoded.matches), decoded.values
    name = f"{figure.digits:,}" if figure.exact else figure.text
    if not decoded.matches:
        meets = "is this number" if figure.exact else "rounds to it" + ("" if figure.few else ", or is cut off to it")
        rounded = figure.exact and figure.digits and figure.digits % 1000 == 0
        hint = f" If it is rounded, write it so: {_round_value(figure.digits)}." if rounded else ""
        tried = format_count(decoded.searched, "candidate")
        return f"{name} for {decoded.model} is not explained: none of {tried} {meets}.{hint}"
    unit = {MAC: "MACs", FLOP: "FLOPs"}.get(figure.counts, "")
    other = f" Its label is wrong: the number is {decoded.matches[0].unit}s, not {unit}." if decoded.other_unit else ""
    end = f".{other}" if other else ":"
    if decoded.doubtful and not decoded.ambiguous:
        return (
            f"{name} for {decoded.model} may be explained. It is neither the total of a counter that was looked at nor that of "
            f"the work that ran, so this reading may be a coincidence{end}"
        )
    if decoded.cut and decoded.merged:
        return f"{name} for {decoded.model} is explained if its digits are cut off and not rounded{end}"
    if figure.exact or decoded.merged:
        return f"{name} for {decoded.model} is explained{end}"
    how = "have these digits, the rest cut off (none rounds to them)" if decoded.cut else "round to it"
    if count == 1:
        how = how.replace("have", "has", 1) if decoded.cut else "rounds to it"
    held = f"{count} candidate{'s' if count > 1 else ''} {how}"
    if decoded.ambiguous:
        numbers = f"{len(values)} different numbers"
        return f"{name} for {decoded.model} is ambiguous: {held}, {numbers}.{other} The simplest first:"
    return f"{name} for {decoded.model} is explained: {held}{', all' if count > 1 else ','} {values[0]:,}{end}"


def _round_value(value: int) -> str:
    digits = str(value).rstrip("0")
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{mantissa}e{len(str(value)) - 1}"


def _list_shown(decoded: Decoded, verbose: bool) -> list[list[Candidate]]:
    """For each number the readings of the lowest rank and the next; with ``verbose`` all."""
    each = [[c for c in decoded.matches if c.value == value] for value in decoded.values]
    few = [[c for c in same if c.rank <= same[0].rank + 1][:READINGS] for same in each[:VALUES]]
    return each if verbose else few


def _list_readings(decoded: Decoded, verbose: bool) -> Iterator[list[str]]:
    """The lines of each number that is shown: its readings, with their arithmetic."""
    for same in _list_shown(decoded, verbose):
        lines = [f"  {same[0].value:,}"]
        for c in same:
            lines += [f"    {c.what}", *(f"      {line}" for line in (c.how, c.note, _places(c, verbose)) if line)]
        yield lines


def _list_others(decoded: Decoded, verbose: bool) -> Iterator[str]:
    """The numbers that the figure does not tell from the best one, or how many readings are not shown."""
    if decoded.merged:
        first: dict[int, Candidate] = {}
        for candidate in decoded.matches:
            first.setdefault(candidate.value, candidate)
        others = [f"{c.value:,} ({c.what})" for c in first.values()][1:]
        listed = others if verbose else others[:ALIKE]
        more = len(others) - len(listed)
        if others:
            yield f"Its digits do not tell this from {'; '.join(listed)}" + (f"; and {more} more." if more else ".")
    elif rest := len(decoded.matches) - sum(map(len, _list_shown(decoded, verbose))):
        yield f"{rest} more {'readings' if rest > 1 else 'reading'}: --verbose"


def _places(candidate: Candidate, verbose: bool) -> str:
    held = candidate.where if verbose else candidate.where[:PLACES]
    more = len(candidate.where) - len(held)
    return "; ".join(held) + (f"; and {more} more" if more else "")
