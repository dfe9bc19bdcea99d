"""The cells of the scorecard: the verdict on every counter on every layer of the zoo's families, from its multiply-adds.

Counters differ in unit and in scope: one counts biases, another one does not. So a cell compares multiply-adds alone. The
counter's bridge is booked as in any statement (engine/booking.py), with every other component left out. What remains is what
the counter does to the multiply-adds of that layer, cause by cause. Amounts are FLOPs under ``matmul``: 2 per multiply-add.
The cells of a family's layers are a card; ``dump`` and ``read_cards`` are the writer and the reader of ``scorecard.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...adapters.counters.bridge import Item, view
from ...core.causes import ORDER, Cause, Effect, State
from ...core.conventions import MATMUL
from ...core.number_format import number
from ...core.work import PRODUCT_COMPONENTS
from ...engine.booking import book, flops_per_unit, own_value
from ...engine.ledger import build_bridge, reconcile_ledger
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...engine.traces import layer_work
from ...model_zoo import loading
from ..gallery.rows import read_rows as read_rows
from ..gallery.rows import write_lines

FILE = Path(loading.HERE) / "scorecard.json"
SCHEMA = 1
MAKE_SCORECARD_AGAIN = "Make it again with `reconcile zoo scorecard`."
RULES = 4
"""The most rules that a cell names."""


class Verdict(str, Enum):
    """What a cell says, and a sentence on it for reports; the members are in the order of legends."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Verdict:
        made = str.__new__(cls, value)
        made._value_, made.meaning = value, meaning
        return made

    EXACT = "exact", "It counts exactly the multiply-adds that ran."
    PARTIAL = "partial", "It leaves out some of the multiply-adds that ran."
    ZERO = "zero", "It counts none of the multiply-adds that ran."
    FACTOR = "factor", "It counts a wrong number of multiply-adds: a formula, a repetition, or ops that never ran."
    FAILS = "fails", "It stops with an error."
    BLIND = "blind", "It cannot count this pass or this model, and says so."
    OPEN = "open", "Its number is not explained here."
    ABSENT = "not installed", "It is not installed where the scorecard was made."
    NOTHING = "nothing", "No multiply-adds ran, and it counts none: the cell says nothing about the counter."


WITHOUT_NUMBER = {
    State.FAILED: Verdict.FAILS,
    State.NOT_COMPARABLE: Verdict.BLIND,
    State.SKIPPED: Verdict.ABSENT,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One counter on one layer in one pass.

    ``counted`` and ``ran`` are FLOPs of multiply-adds, None if there is no number; ``causes`` are the amounts to add to
    ``counted`` to arrive at ``ran``, in booking order. ``beside`` is what the counter counts of this layer besides
    multiply-adds, in FLOPs (one MAC is 2 of them). ``rules`` name the rules behind the causes, each with its source, or
    say why there is none; ``reason`` says why there is no number.
    """

    verdict: Verdict
    counted: int | None = None
    ran: int | None = None
    causes: Mapping[str, int] = field(default_factory=dict)
    beside: int = 0
    rules: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One counter on all layers of one family in one pass. The four fields of ``key`` decide whether it is still valid.

    Attributes:
        family: The family of layers.
        pass_: The pass.
        counter: The counter's name.
        framework: Its framework.
        unit: Its unit, MAC or FLOP.
        source: The hash of the family's files.
        code: The hash of the counter's folder.
        version: The counter's requirement, or the version that is installed at home.
        framework_version: The version of the framework that is installed at home.
        versions: Versions by package, as the counter itself reported them.
        settings: The pair's settings that differ from its own.
        device: Where the counter ran.
        environment: The environment in which it ran.
        cells: What it does to each layer, by layer.
    """

    family: str
    pass_: str
    counter: str
    framework: str
    unit: str
    source: str
    code: str
    version: str
    framework_version: str
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    device: str
    environment: str
    cells: Mapping[str, Cell]

    @property
    def name(self) -> str:
        """The card's place in the file."""
        return f"{self.family} {self.pass_} {self.counter}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """If any of these differs, the card is measured again."""
        return self.source, self.code, self.version, self.framework_version


def verdict(ran: int, causes: Mapping[Cause, int]) -> Verdict:
    """The verdict on a layer in which ``ran`` FLOPs of multiply-adds ran; ``causes`` lead there from the counted FLOPs."""
    if not causes:
        return Verdict.EXACT if ran else Verdict.NOTHING
    counted = ran - sum(causes.values())
    never_ran = -sum(amount for cause, amount in causes.items() if cause.record.effect is Effect.NEVER_RAN)
    if ran and counted == never_ran:
        return Verdict.ZERO
    return Verdict.PARTIAL if {cause.record.effect for cause in causes} == {Effect.LEFT_OUT} else Verdict.FACTOR


def cells(collected: Collected, counter: str, layers: Sequence[str]) -> dict[str, Cell]:
    """The cells of one counter by layer, from what a run of its family, or of a layer alone, collected."""
    record = next(
        (x for x in collected.ledgers if counter in (getattr(x, "counter", ""), getattr(x, "name", ""))), None
    )
    if record is None:
        reason = "the model does not exist in the counter's framework"
        return dict.fromkeys(layers, Cell(Verdict.BLIND, reason=reason))
    traces = {trace.framework: trace for trace in collected.traces}
    if isinstance(record, Missing):
        trace = traces.get(record.framework)
        if isinstance(trace, Missing) and trace.reason == record.reason:
            return dict.fromkeys(layers, Cell(Verdict.BLIND, reason=f"the model cannot run there: {record.reason}"))
        return dict.fromkeys(layers, Cell(WITHOUT_NUMBER.get(record.state, Verdict.FAILS), reason=record.reason))
    trace = traces[record.framework]
    if isinstance(trace, Missing):
        return dict.fromkeys(layers, Cell(Verdict.OPEN, reason=f"there is no trace: {trace.reason}"))
    align = collected.declared_layers
    work = layer_work(trace, align, MATMUL)
    reconciled = reconcile_ledger(record, trace, align, MATMUL)
    why = {residual.layer: residual.reason for residual in reversed(reconciled.residuals)}
    items: dict[str, list[Item]] = {}
    for item in build_bridge(view(record), trace).items:
        items.setdefault(align.layer(record.framework, item.layer), []).append(item)
    return {layer: _cell(items.get(layer, []), work.get(layer, 0), record.unit, why.get(layer, "")) for layer in layers}


def _cell(items: Iterable[Item], ran: int | None, unit: str, open_: str) -> Cell:
    if ran is None:
        return Cell(Verdict.OPEN, reason="how many multiply-adds ran is unknown")
    if open_:
        return Cell(Verdict.OPEN, ran=ran, reason=open_)
    causes: dict[Cause, int] = {}
    rules: dict[str, None] = {}
    beside = 0
    for item in items:
        products = replace(item, counted=item.counted.only(PRODUCT_COMPONENTS), ran=item.ran.only(PRODUCT_COMPONENTS))
        others = own_value(item.counted, unit) - own_value(products.counted, unit)
        beside += others * flops_per_unit(unit) * item.seen
        for booking in book(products, unit, MATMUL):
            causes[booking.cause] = causes.get(booking.cause, 0) + booking.amount
            if item.rule:
                rules[f"{item.rule} ({item.source})"] = None
            elif item.formula:
                rules[item.formula] = None
    ordered = {cause: causes[cause] for cause in sorted(causes, key=lambda cause: ORDER[cause])}
    counted = ran - sum(causes.values())
    named = tuple(rules)[:RULES]
    amounts = {cause.value: amount for cause, amount in ordered.items()}
    return Cell(verdict(ran, ordered), counted, ran, amounts, beside, named)


def text(cell: Cell) -> str:
    """A cell as a few words: ``exact``, ``zero``, ``4/7 counted`` or ``4 times``; '' where no multiply-adds ran."""
    if cell.verdict is Verdict.PARTIAL:
        return f"{_fraction(cell)} counted"
    if cell.verdict is Verdict.FACTOR:
        if cell.counted is not None and not cell.ran:
            return f"{number(cell.counted)} of 0"
        return f"{_fraction(cell)} times"
    return "" if cell.verdict is Verdict.NOTHING else cell.verdict.value


def _fraction(cell: Cell) -> str:
    assert cell.counted is not None
    assert cell.ran is not None
    return str(Fraction(cell.counted, cell.ran))


def dump(cards: Iterable[Card]) -> str:
    """The text of ``scorecard.json``: cards by name, a line each."""
    rows = {
        card.name: {**asdict(card), "cells": {layer: _plain(cell) for layer, cell in card.cells.items()}}
        for card in cards
    }
    return write_lines(SCHEMA, rows)


def _plain(cell: Cell) -> dict[str, Any]:
    """The verdict, and the fields that differ from an empty cell's."""
    empty = asdict(Cell(cell.verdict))
    return {name: value for name, value in asdict(cell).items() if name == "verdict" or value != empty[name]}


def read_cards(path: Path = FILE) -> dict[str, Card]:
    """The cards in this file; none if there is no such file. Raises UsageError if it cannot be read."""
    return read_rows(path, Card, MAKE_SCORECARD_AGAIN)
