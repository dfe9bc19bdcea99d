"""The page of ``reconcile formula conform``: for each function where it is right, and which of its terms differ elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ...core.number_format import multiple, number
from ...report.document import Block, Document, Heading, Inline, Items, Text, tabulate
from .comparison import Quote
from .functions.cells import Cell, Verdict, judge


def describe_cells(names: Sequence[str], cells: Sequence[Cell], refused: Sequence[Cell], note: str) -> Document:
    """The page of these functions.

    Args:
        names: The functions.
        cells: A configuration's cells one after another.
        refused: Configurations for which no function has a number.
        note: What the configurations and the lengths are, and the versions of packages, in a sentence.
    """
    traced = [cell for cell in cells if cell.quotes]
    lost = [cell for cell in cells if not cell.quotes]
    verdicts = {
        name: [judge(quote) for cell in traced for quote in cell.quotes if quote.name == name] for name in names
    }
    blocks: list[Block] = [Text(note)]
    if len(names) > 1:
        blocks += [Heading("All functions"), _tabulate_functions(names, traced)]
    for name in names:
        blocks += [Heading(name), tabulate("configuration|tokens>|of what ran>|why", _list_rows(name, traced))]
        terms = _list_terms(name, traced)
        blocks += [Items(tuple(terms))] if terms else []
    blocks += [Items(tuple(_list_reasons("not traced", lost)))] if lost else []
    blocks += [Items(tuple(_list_reasons("no function has a number", refused)))] if refused else []
    wrong = {Verdict.WRONG, Verdict.UNEXPLAINED}
    good = all(Verdict.RIGHT in found and not wrong & set(found) for found in verdicts.values())
    return Document(f"{', '.join(names)} beside what runs", _sum_up(verdicts), tuple(blocks), good)


def _sum_up(verdicts: dict[str, list[Verdict]]) -> str:
    """``mine is right in 3 cells of 12, wrong in 8, refuses 1.``"""
    said = []
    for name, found in verdicts.items():
        counts = {verdict: found.count(verdict) for verdict in Verdict}
        parts = [f"right in {counts[Verdict.RIGHT]} of {len(found)} cells", f"wrong in {counts[Verdict.WRONG]}"]
        parts += [f"unexplained in {counts[Verdict.UNEXPLAINED]}"] if counts[Verdict.UNEXPLAINED] else []
        parts += [f"without a number in {counts[Verdict.REFUSES]}"] if counts[Verdict.REFUSES] else []
        said.append(f"{name} is {', '.join(parts)}.")
    return " ".join(said)


def _tabulate_functions(names: Sequence[str], cells: Sequence[Cell]) -> Block:
    """What ran, and the number of each function with its ratio to that."""
    rows = []
    for cell in cells:
        quotes = {quote.name: quote for quote in cell.quotes}
        counted = [quote.step for quote in quotes.values() if quote.step]
        spread = f"{max(counted) / min(counted):.2f}" if len(counted) > 1 else ""
        shown = [_show_number(cell, quotes[name].step) if quotes[name].step else "none" for name in names]
        rows.append(
            (
                cell.configuration,
                number(cell.seq),
                _show_number(cell, cell.ran) if cell.ran else "not traced",
                *shown,
                spread,
            )
        )
    return tabulate(f"FLOPs per token|tokens>|what ran>|{'|'.join(f'{name}>' for name in names)}|spread>", rows)


def _list_rows(name: str, cells: Iterable[Cell]) -> list[tuple[Inline, ...]]:
    """A row for the lengths of a configuration at which the same differs."""
    found = [(cell, quote) for cell in cells for quote in cell.quotes if quote.name == name]
    rows: list[tuple[Inline, ...]] = []
    for (configuration, _), group in groupby(
        found, lambda each: (each[0].configuration, frozenset(each[1].terms or ()))
    ):
        (first, quote), *others = group
        last, other = others[-1] if others else (first, quote)
        shown = [
            multiple(each.step, cell.ran or 0)
            for cell, each in ((first, quote), (last, other))
            if each.step is not None
        ]
        lengths = " to ".join(dict.fromkeys((number(first.seq), number(last.seq))))
        rows.append((configuration, lengths, " to ".join(dict.fromkeys(shown)), _describe_quote(quote)))
    return rows


def _list_terms(name: str, cells: Iterable[Cell]) -> list[str]:
    """Each difference with the configurations in which it is, that of most first, and each reason for which there is no number;
    with its lengths if it is not at all."""
    found: dict[str, dict[str, list[int]]] = {}
    lengths: dict[str, list[int]] = {}
    for cell in cells:
        lengths.setdefault(cell.configuration, []).append(cell.seq)
        for quote in cell.quotes:
            for line in (quote.terms or ()) + ((quote.reason,) if quote.reason else ()) if quote.name == name else ():
                found.setdefault(line, {}).setdefault(cell.configuration, []).append(cell.seq)
    lines = []
    for line, places in sorted(found.items(), key=lambda each: -len(each[1])):
        names = [
            each + (f" at {', '.join(map(number, some))}" if some != lengths[each] else "")
            for each, some in places.items()
        ]
        lines.append(f"{line}: {'; '.join(names) if any(' at ' in each for each in names) else ', '.join(names)}.")
    return lines


def _show_number(cell: Cell, flops: int | None) -> str:
    return number(round((flops or 0) / (cell.batch * cell.seq)))


def _describe_quote(quote: Quote) -> str:
    """``exact``, ``no number``, or the causes of what differs."""
    if quote.step is None:
        return "no number"
    return ", ".join([*quote.causes, *(["residual"] if quote.residual else [])]) or "exact"


def _list_reasons(what: str, cells: Iterable[Cell]) -> list[str]:
    """Configurations by the reason for which they have no cell."""
    reasons: dict[str, dict[str, None]] = {}
    for cell in cells:
        reasons.setdefault(cell.reason.rstrip("."), {})[cell.configuration] = None
    return [f"{', '.join(names)}: {what}: {reason}." for reason, names in reasons.items()]
