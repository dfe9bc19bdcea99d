"""The scorecard's cells: verdicts by hand, cells from closed forms, and the committed pages from their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docs.built import committed
from reconcile.core.causes import Cause
from reconcile.core.conventions import MATMUL
from reconcile.core.records import Ledger
from reconcile.core.registry import known_counters
from reconcile.engine.ledger import reconcile_ledger
from reconcile.engine.settle import Collected
from reconcile.launch.environments.definitions import CURRENT
from reconcile.launch.runner import collect
from reconcile.model_zoo.loading import load_pair, pair_path
from reconcile.products.authors.conform import families
from reconcile.products.scorecard import cells as score
from reconcile.products.scorecard import picture as scorecard_picture
from reconcile.products.scorecard import report as pages
from reconcile.products.scorecard import run as scoring
from reconcile.products.scorecard.cells import Cell, Verdict
from reconcile.products.scorecard.run import Batch
from reconcile.report.document.markdown import to_markdown
from tests.drift.takes import committed as committed_take
from tests.zoo.family_forms import macs

ROOT = Path(__file__).parents[3]
PAGE = Path("reports/scorecard/README.md")
CARDS = score.read_cards()
BOARD = pages.Board(CARDS)
STALE = "stale: run `make scorecard` and commit what changed"
DEFAULT = tuple(name for name, counter in known_counters().items() if counter.default)
PROFILER = "tf.profiler@function"


@pytest.mark.parametrize(
    ("ran", "causes", "verdict"),
    [
        (8, {}, Verdict.EXACT),
        (0, {}, Verdict.NOTHING),
        (8, {Cause.OP_NOT_COUNTED: 8}, Verdict.ZERO),
        (8, {Cause.OP_NOT_COUNTED: 2}, Verdict.PARTIAL),
        (8, {Cause.FORMULA_DIFFERS: 4}, Verdict.FACTOR),
        (8, {Cause.RECOUNTED: -8}, Verdict.FACTOR),
        (8, {Cause.DEAD_OP: -2, Cause.BODY_NOT_ENTERED: 8}, Verdict.ZERO),  # it counts 2, and nothing of what ran
        (8, {Cause.DEAD_OP: -8, Cause.BODY_NOT_ENTERED: 8}, Verdict.ZERO),  # equal by chance
        (8, {Cause.FORMULA_DIFFERS: 0}, Verdict.FACTOR),  # two errors that cancel are no exact count
        (0, {Cause.DEAD_OP: -8}, Verdict.FACTOR),
    ],
)
def test_a_verdict_follows_from_the_causes(ran: int, causes: dict[Cause, int], verdict: Verdict) -> None:
    assert score.verdict(ran, causes) is verdict


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell(Verdict.EXACT, 8, 8), "exact"),
        (Cell(Verdict.PARTIAL, 6, 8), "3/4 counted"),
        (Cell(Verdict.FACTOR, 12, 8), "3/2 times"),
        (Cell(Verdict.FACTOR, 1200, 0), "1,200 of 0"),
        (Cell(Verdict.NOTHING, 0, 0), ""),
        (Cell(Verdict.FAILS, reason="it broke"), "fails"),
    ],
)
def test_a_factor_is_an_exact_fraction(cell: Cell, text: str) -> None:
    assert score.text(cell) == text


def test_cards_come_back_from_the_file_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "cards.json"
    assert score.read_cards(path) == {}
    some = dict([*CARDS.items()][::40])
    path.write_text(score.dump(some.values()))
    assert score.read_cards(path) == some


# The committed scorecard.


@pytest.mark.slow
def test_the_page_is_made_of_the_cells() -> None:
    text = committed(PAGE, to_markdown(pages.describe_scorecard(BOARD)))
    assert (ROOT / PAGE).read_text() == text, f"{PAGE} is {STALE}"


@pytest.mark.frameworks  # it draws with matplotlib
def test_the_picture_has_every_cell() -> None:
    """The name of each shape has its verdict and how many cells it stands for."""
    board = pages.Board({name: card for name, card in CARDS.items() if card.counter in ("thop", "fvcore", PROFILER)})
    held = {
        (pass_, name, verdict.value.replace(" ", "-")): number
        for pass_ in board.passes
        for name in board.counters
        for verdict, number in board.sums(name, pass_).items()
    }
    shapes = re.findall(r'id="(forward|training)-(\d+)-([a-z-]+)-(\d+)"', str(scorecard_picture.to_svg(board)))
    assert {(pass_, board.counters[int(row)], verdict): int(count) for pass_, row, verdict, count in shapes} == held


@pytest.mark.parametrize("family", families())
def test_what_ran_forward_has_a_closed_form(family: str) -> None:
    bricks = load_pair(pair_path(family)).module.BRICKS
    sides = {"tf": 0, "torch": 1, "onnx": 1}
    wrong = []
    for card in (c for c in CARDS.values() if (c.family, c.pass_) == (family, "forward") and c.framework in sides):
        for brick in bricks:
            ran = 2 * 2 * macs(brick.name, brick.shape)[sides[card.framework]]  # 2 samples, 2 FLOPs per multiply-add
            if card.cells[brick.name].ran not in (ran, None):
                wrong.append((card.counter, brick.name, card.cells[brick.name].ran, ran))
    assert wrong == []


def same(cell: Cell) -> Cell:
    """Without the names of rules: those of a graph's nodes depend on what else ran in the process."""
    return replace(cell, rules=())


AGAIN = ("family_recurrent", "family_attention", "family_control")
"""Families that `make slow` looks at again: loops, heads and hooks. `make fresh` looks at all others."""


def again() -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow if name in AGAIN else pytest.mark.heavy) for name in families()]


def cells_that_add_up(collected: Collected) -> Iterator[tuple[str, str, Cell]]:
    """Each counter's cell of each layer, after its sum was compared with what the counter reports there."""
    align = collected.declared_layers
    traces = {trace.framework: trace for trace in collected.traces}
    for ledger in collected.ledgers:
        assert isinstance(ledger, Ledger)
        reported = reconcile_ledger(ledger, traces[ledger.framework], align, MATMUL).cells
        for layer, cell in score.cells(collected, ledger.counter, [row[0] for row in collected.meta["layers"]]).items():
            assert (cell.counted or 0) + cell.beside == reported.get(layer, 0), (ledger.counter, layer, cell)
            yield ledger.counter, layer, cell


def test_the_cells_of_a_network_add_up() -> None:
    """gru_demo as it is committed: fvcore counts nothing of its GRU, flop_counter all."""
    cells = {(counter, layer): cell for counter, layer, cell in cells_that_add_up(committed_take())}
    assert cells["fvcore", "gru"].verdict is Verdict.ZERO
    assert {cells["flop_counter", layer].verdict for layer in ("conv", "gru", "dense")} == {Verdict.EXACT}


@pytest.mark.frameworks
@pytest.mark.parametrize("family", again())
def test_a_family_run_again_gives_cells_that_add_up(collecting: Any, family: str) -> None:
    wrong = []
    for counter, layer, cell in cells_that_add_up(collecting(family)):
        held = CARDS[f"{family} forward {counter}"].cells[layer]
        if same(cell) != same(held):
            wrong.append((counter, layer, cell, held))
    assert wrong == [], f"the cells of {family} are {STALE}"


@pytest.mark.frameworks
@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", again())
def test_a_training_step_run_again_gives_its_cells(family: str) -> None:
    seeing = tuple(name for name in DEFAULT if not known_counters()[name].blind)
    wrong = []
    for card in scoring.measure(
        Batch(family, "training", CURRENT, seeing), lambda _environment, request: collect(request)
    ):
        held = CARDS[card.name].cells
        wrong += [(card.counter, layer) for layer, cell in card.cells.items() if same(cell) != same(held[layer])]
    assert wrong == [], f"the cells of {family} are {STALE}"
