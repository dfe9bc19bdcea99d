"""The scorecard's pages and CSV: one page of all verdicts, and one per family that explains those that are not exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...core import table
from ...core.number_format import format_signed, number
from ...core.registry import known_counters, title
from ...launch.environments.definitions import CURRENT
from ...launch.request import PASSES
from ...report.document import (
    Block,
    Document,
    Heading,
    Inline,
    Items,
    Picture,
    Span,
    Text,
    mark_up,
    section,
    strong,
    tabulate,
)
from .cells import Card, Cell, Verdict, text

PAGE = "README"
STEM = "scorecard"
COLUMNS = (
    "family", "layer", "pass", "counter", "version", "framework", "verdict", "counted", "ran", "times", "beside", "causes",
    "rules", "reason", "command",
)  # fmt: skip
SHOWN = tuple(verdict for verdict in Verdict if verdict not in (Verdict.OPEN, Verdict.ABSENT))
PLAIN = (Verdict.EXACT, Verdict.NOTHING)
"""Verdicts that do not open."""
LABELS = {Verdict.NOTHING: "(empty)", Verdict.PARTIAL: "1/2 counted", Verdict.FACTOR: "2 times"}
WRITTEN_BY_COMMAND = "Written by `reconcile zoo scorecard`; edit that, not this."
WHAT_A_CELL_COMPARES = (
    "Counters differ in unit and in scope: one counts biases, another one does not. So a cell is about the multiply-adds of "
    "a layer alone: those that ran there, and those of them that the counter counts. No cell is a judgement: each follows "
    "from the counter's rules, which are held to its reported numbers to residual 0. A cell that is not exact leads to its "
    "cause, and to a program that shows it. The same is in [scorecard.csv](scorecard.csv), one row per cell, and in "
    "[scorecard.html](scorecard.html), where a cell opens in place."
)


@dataclass(frozen=True)
class Board:
    """All cards, in the order of the pages. The counters are those that the cards name, not those that are known today."""

    cards: Mapping[str, Card]

    @cached_property
    def counters(self) -> tuple[str, ...]:
        """The counters of the cards: those that are known here in the order of reports, then the others."""
        names = {card.counter for card in self.cards.values()}
        return (*(name for name in known_counters() if name in names), *sorted(names - set(known_counters())))

    @cached_property
    def layers(self) -> Mapping[str, tuple[str, ...]]:
        """The layers of each family."""
        return {card.family: tuple(card.cells) for _, card in sorted(self.cards.items())}

    @cached_property
    def passes(self) -> tuple[str, ...]:
        """The passes of the cards."""
        names = {card.pass_ for card in self.cards.values()}
        return tuple(name for name in PASSES if name in names)

    def card(self, family: str, pass_: str, counter: str) -> Card | None:
        """The card; None if it has not been made."""
        return self.cards.get(f"{family} {pass_} {counter}")

    def cell(self, family: str, layer: str, pass_: str, counter: str) -> Cell | None:
        """The cell; None if it has not been made."""
        card = self.card(family, pass_, counter)
        return card.cells.get(layer) if card else None

    def cells_of(self, family: str, layer: str) -> Iterator[tuple[Card, Cell]]:
        """The cells of a layer that have been made, each with its card."""
        for pass_ in self.passes:
            for counter in self.counters:
                card = self.card(family, pass_, counter)
                if card is not None and layer in card.cells:
                    yield card, card.cells[layer]

    def some_card(self, counter: str) -> Card:
        """A card of the counter, one with versions if there is any."""
        cards = [card for card in self.cards.values() if card.counter == counter]
        return next((card for card in cards if card.versions), cards[0])

    def blind(self, family: str, pass_: str) -> dict[str, str]:
        """The counters that are blind to every layer of the family in this pass, each with its reason."""
        cards = ((name, self.card(family, pass_, name)) for name in self.counters)
        cells = {name: list(card.cells.values()) for name, card in cards if card is not None and card.cells}
        return {
            name: row[0].reason
            for name, row in cells.items()
            if all((cell.verdict, cell.reason) == (Verdict.BLIND, row[0].reason) for cell in row)
        }

    def blind_everywhere(self, pass_: str) -> dict[str, str]:
        """The counters that are blind to all families in this pass, each with a reason."""
        tables = [self.blind(family, pass_) for family in self.layers]
        return (
            {name: why for name, why in tables[0].items() if all(name in table_ for table_ in tables)} if tables else {}
        )

    def sums(self, counter: str, pass_: str) -> Counter[Verdict]:
        """How many cells of the counter have each verdict."""
        cards = (c for c in self.cards.values() if (c.counter, c.pass_) == (counter, pass_))
        return Counter(cell.verdict for card in cards for cell in card.cells.values())


def versions(card: Card) -> str:
    """``fvcore 0.1.5, torch 2.13.0``; of a counter that never ran, the version that it needs or ``not installed``."""
    known = card.versions or {card.counter: card.version or card.framework_version or "not installed"}
    return ", ".join(f"{name} {version}" for name, version in known.items())


def counted_text(cell: Cell) -> str:
    """``It counts 48 FLOP of multiply-adds, and 420 ran: loop-counted-once +372.``; without a number, the reason for that."""
    if cell.counted is None:
        return cell.reason.rstrip(".") + "."
    ran = f"and {number(cell.ran or 0)} ran"
    if cell.verdict is Verdict.ZERO and cell.counted:
        ran = f"and none of them is among the {number(cell.ran or 0)} that ran"
    ran = f"It counts {number(cell.counted)} FLOP of multiply-adds, {ran}: {causes(cell)}."
    return ran + (f" It also counts {number(cell.beside)} FLOP of other work." if cell.beside else "")


def causes(cell: Cell) -> str:
    """``shape-unknown +180, loop-counted-once +192``."""
    return ", ".join(f"{cause} {format_signed(amount)}" for cause, amount in cell.causes.items())


def command(card: Card) -> str:
    """The command that shows this card's numbers with their causes, layer by layer."""
    words = [
        f"reconcile run --model {card.family}",
        *(f"--set {name}={value}" for name, value in card.settings.items()),
    ]
    words += [f"--counter {card.counter} --from {card.counter} --to trace@{card.framework}"]
    words += [f"--device {card.device}"] if card.device != "cpu" else []
    words += ["--pass training"] if card.pass_ == "training" else []
    words += [f"--environment {card.environment}"] if card.environment != CURRENT else []
    return " ".join(words)


def program(card: Card, layer: str) -> str:
    """The command that prints a program with the bare counter alone; '' for a training step, which has none."""
    where = f" --environment {card.environment}" if card.environment != CURRENT else ""
    return f"reconcile counter reproduce {card.counter} {card.family}:{layer}{where}" if card.pass_ == PASSES[0] else ""


def commands(card: Card, layer: str, cell: Cell) -> list[str]:
    """The commands that show a cell: the program with the bare counter first, if there is one."""
    if cell.verdict in (Verdict.BLIND, Verdict.ABSENT):
        return []
    first = program(card, layer) if cell.counted is not None and opens(cell) else ""
    return [*([first] if first else []), command(card)]


def opens(cell: Cell | None) -> bool:
    """Whether the pages show more about a cell than its verdict."""
    return cell is not None and cell.verdict not in PLAIN


def describe_scorecard(board: Board) -> Document:
    """``README.md``: the counters, and a table for each family."""
    number_of = sum(len(names) for names in board.layers.values())
    families = (block for family in board.layers for block in (Heading(family), *_describe_family(board, family)))
    return Document(
        "The scorecard",
        f"{len(board.counters)} counters on the {number_of} layers of the zoo's {len(board.layers)} families, in a call of the "
        "model (forward) and in a training step.",
        (
            Text(mark_up(WHAT_A_CELL_COMPARES)),
            tabulate("verdict|meaning", ((LABELS.get(v, v.value), v.meaning) for v in SHOWN)),
            Picture("Verdicts", "The verdicts as colours, a column per layer", "", f"{STEM}.svg"),
            Heading("Counters"),
            *(block for pass_ in board.passes for block in _sum_verdicts(board, pass_)),
            *families,
        ),
        comment=WRITTEN_BY_COMMAND,
    )


def _sum_verdicts(board: Board, pass_: str) -> Iterator[Block]:
    sums = {name: board.sums(name, pass_) for name in board.counters}
    present = [v for v in Verdict if any(each[v] for each in sums.values())]
    rows = (
        (name, versions(board.some_card(name)), *(number(each[v]) if each[v] else "" for v in present))
        for name, each in sums.items()
    )
    yield Text(f"Layers by verdict, {pass_}:")
    yield tabulate("|".join(("counter|versions", *(f"{v.value}>" for v in present))), rows)
    yield from _name_blind(board.blind_everywhere(pass_))


def _describe_family(board: Board, family: str) -> Iterator[Block]:
    """A row per layer. Counters that are blind to the whole family in a pass are named below it or, if they are blind to
    the whole pass, above all families."""
    for pass_ in board.passes:
        blind = board.blind(family, pass_)
        seeing = [name for name in board.counters if name not in blind]
        here = {name: why for name, why in blind.items() if name not in board.blind_everywhere(pass_)}
        if seeing or here:
            yield Text(strong(pass_))
        if seeing:
            rows = (
                (layer, *(_link_cell(board.cell(family, layer, pass_, name), family, layer) for name in seeing))
                for layer in board.layers[family]
            )
            yield tabulate("|".join(("layer", *seeing)), rows)
        yield from _name_blind(here)


def _name_blind(counters: Mapping[str, str]) -> Iterator[Block]:
    if counters:
        yield Text("Blind: " + "; ".join(f"{name} ({why})" for name, why in counters.items()) + ".")


def _link_cell(cell: Cell | None, family: str, layer: str) -> Inline:
    if cell is None:
        return "not made yet"
    style = "strong" if cell.verdict is Verdict.EXACT else ""
    return Span(text(cell), style, f"{family}.md#{layer}" if opens(cell) else "") if text(cell) else ""


def describe_family(board: Board, family: str) -> Document:
    """``family_dense.md``: every cell that is not exact, with its causes, its rules and its commands; the exact ones by name."""
    layers = (section(layer, Items(tuple(_list_cells(board, family, layer)))) for layer in board.layers[family])
    about = Text(mark_up("[All layers](README.md). Amounts are FLOPs, 2 per multiply-add."))
    return Document(
        f"{family} on the scorecard",
        "",
        (about, *(block for blocks in layers for block in blocks)),
        comment=WRITTEN_BY_COMMAND,
    )


def _list_cells(board: Board, family: str, layer: str) -> Iterator[Inline]:
    exact = []
    for card, cell in board.cells_of(family, layer):
        if card.counter in board.blind(family, card.pass_):
            continue
        if opens(cell):
            yield strong(card.counter), f", {card.pass_}: ", *_describe_cell(card, layer, cell)
        elif cell.verdict is Verdict.EXACT:
            exact.append(f"{card.counter} ({card.pass_})")
    if exact:
        yield f"exact: {', '.join(exact)}"


def _describe_cell(card: Card, layer: str, cell: Cell) -> Iterator[str | Span]:
    yield f"{cell.verdict.value if cell.counted is None else text(cell)}. {counted_text(cell)}"
    if cell.rules:
        yield f" Evidence: {'; '.join(cell.rules)}."
    for index, line in enumerate(commands(card, layer, cell)):
        yield from (" or " if index else " Run ", Span(line, "code"))
    if commands(card, layer, cell):
        yield "."


def to_csv(board: Board) -> str:
    """``scorecard.csv``: one row per cell."""
    places = ((family, layer) for family, layers in board.layers.items() for layer in layers)
    rows = (_row(card, layer, cell) for family, layer in places for card, cell in board.cells_of(family, layer))
    return table.format_report_csv([COLUMNS, *rows])


def _row(card: Card, layer: str, cell: Cell) -> Sequence[object]:
    times = "" if cell.counted is None or not cell.ran else str(Fraction(cell.counted, cell.ran))
    amounts = ["" if value is None else value for value in (cell.counted, cell.ran)]
    return (
        card.family, layer, card.pass_, card.counter, versions(card), title(card.framework), cell.verdict.value, *amounts, times,
        cell.beside, causes(cell), "; ".join(cell.rules), cell.reason, next(iter(commands(card, layer, cell)), ""),
    )  # fmt: skip
