"""The scorecard's pages, of cells made by hand, and the command that writes them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.core.registry import known_counters
from reconcile.products.scorecard import page as scorecard_page
from reconcile.products.scorecard import picture as scorecard_picture
from reconcile.products.scorecard import report as pages
from reconcile.products.scorecard import run as scoring
from reconcile.products.scorecard.cells import Card, Cell, Verdict
from reconcile.products.scorecard.run import Batch
from reconcile.report.document.markdown import to_markdown
from reconcile.report.pictures import charts as pictures

# The pages and the command.


def toy(verdict: Verdict = Verdict.FACTOR, **fields: Any) -> pages.Board:
    """One counter on one layer."""
    cell = Cell(
        verdict, **{"counted": 12, "ran": 8, "causes": {"formula-differs": -4}, "rules": ("a|b (x.py:1)",), **fields}
    )
    card = scoring._card("family_dense", "forward", known_counters()["thop"], {"dense": cell}, {"thop": "1"})
    return pages.Board({card.name: card})


def test_a_cell_opens_to_its_cause_its_rule_and_the_programs() -> None:
    board = toy(beside=3)
    assert "| dense | [3/2 times](family_dense.md#dense) |" in to_markdown(pages.describe_scorecard(board))
    page = to_markdown(pages.describe_family(board, "family_dense"))
    assert (
        "It counts 12 FLOP of multiply-adds, and 8 ran: formula-differs -4. It also counts 3 FLOP of other work."
        in page
    )
    assert "a\\|b (x.py:1)" in page
    for text in (page, scorecard_page.to_html(board)):
        assert "reconcile counter reproduce thop family_dense:dense" in text
        assert "reconcile run --model family_dense --counter thop --from thop --to trace@torch" in text
    (row,) = csv.DictReader(io.StringIO(pages.to_csv(board)))
    assert (row["verdict"], row["times"], row["counted"], row["ran"], row["beside"]) == (
        "factor",
        "3/2",
        "12",
        "8",
        "3",
    )


def test_a_training_cell_names_the_training_step_and_no_program() -> None:
    (card,) = toy().cards.values()
    elsewhere = replace(card, environment="thop")
    assert pages.program(elsewhere, "dense") == "reconcile counter reproduce thop family_dense:dense --environment thop"
    training = replace(elsewhere, pass_="training", device="meta", settings={"batch": "4"})
    assert pages.program(training, "dense") == ""
    assert pages.command(training) == (
        "reconcile run --model family_dense --set batch=4 --counter thop --from thop --to trace@torch --device meta "
        "--pass training --environment thop"
    )


@pytest.mark.parametrize("verdict", [Verdict.ABSENT, Verdict.FAILS])
def test_what_has_no_number_is_never_zero(verdict: Verdict) -> None:
    board = toy(verdict, counted=None, ran=None, causes={}, rules=(), reason="thop <is> not here")
    assert f"[{verdict.value}](family_dense.md#dense)" in to_markdown(pages.describe_scorecard(board))
    assert "thop &lt;is> not here." in to_markdown(pages.describe_family(board, "family_dense"))
    assert "thop &lt;is&gt; not here." in scorecard_page.to_html(board)
    (row,) = csv.DictReader(io.StringIO(pages.to_csv(board)))
    assert (row["counted"], row["ran"], row["times"], row["reason"]) == ("", "", "", "thop <is> not here")
    assert row["command"].startswith("reconcile run") is (verdict is Verdict.FAILS)
    assert "reproduce" not in to_markdown(pages.describe_family(board, "family_dense")) + scorecard_page.to_html(board)


def test_a_blind_counter_is_named_once() -> None:
    (card,) = toy().cards.values()
    blind = {"dense": Cell(Verdict.BLIND, reason="it sees a call only")}
    rest = [replace(card, pass_="training", family=family, cells=blind) for family in ("family_dense", "family_norm")]
    sentence = "Blind: thop (it sees a call only)."
    everywhere = to_markdown(pages.describe_scorecard(pages.Board({c.name: c for c in (card, *rest)})))
    assert (everywhere.count(sentence), everywhere.count("**training**")) == (1, 0)
    seen = replace(rest[1], cells=card.cells)
    somewhere = to_markdown(pages.describe_scorecard(pages.Board({c.name: c for c in (card, rest[0], seen)})))
    assert (somewhere.count(sentence), somewhere.count("**training**")) == (1, 2)


def test_a_counter_that_is_not_known_here_stays_on_the_page() -> None:
    (card,) = toy().cards.values()
    gone = replace(card, counter="gone")
    board = pages.Board({c.name: c for c in (gone, card)})
    assert board.counters == ("thop", "gone")
    assert "reconcile counter reproduce gone family_dense:dense" in to_markdown(
        pages.describe_family(board, "family_dense")
    )


def test_the_command_keeps_valid_cells_and_exits_with_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Batch] = []
    cells = {"dense": Cell(Verdict.EXACT, 8, 8)}

    def make(batches: Any, *_more: Any) -> dict[str, Card]:
        made.extend(batches)
        return {
            card.name: card
            for batch in batches
            for name in batch.counters
            for card in [scoring._card(batch.family, batch.pass_, known_counters()[name], cells, {})]
        }

    monkeypatch.setattr(scoring, "make", make)
    monkeypatch.setattr(pictures, "require", lambda: None)
    monkeypatch.setattr(scorecard_picture, "to_svg", lambda board: f"<svg>{len(board.cards)}</svg>")
    args = ["zoo", "scorecard", "--counter", "thop", "--case", "family_dense", "--out", str(tmp_path), "--quiet"]
    first = CliRunner().invoke(cli, [*args, "--pass", "forward"])
    assert (first.exit_code, len(made)) == (0, 1), first.output
    assert "1 of 1 cards made, 0 kept" in first.stdout
    second = CliRunner().invoke(cli, args)
    assert "1 of 2 cards made, 1 kept" in second.stdout
    assert [batch.pass_ for batch in made] == ["forward", "training"]
    CliRunner().invoke(cli, [*args, "--counter", "onnx_tool", "--pass", "forward"])
    made.clear()
    CliRunner().invoke(cli, ["zoo", "scorecard", *args[4:]])
    named = {name for batch in made for name in batch.counters}
    assert {"fvcore", "onnx_tool"} <= named, (
        "a counter that has cells stays on the scorecard, others live beside the frameworks"
    )
    assert "calflops" not in named
    files = Counter(file.suffix for file in tmp_path.iterdir())
    assert files == {".md": 2, ".csv": 1, ".html": 1, ".svg": 1, ".json": 1}
    for verdict, code in ((Verdict.ABSENT, 3), (Verdict.OPEN, 1)):
        cells["dense"] = Cell(verdict, reason="why")
        (tmp_path / "scorecard.json").unlink()
        assert CliRunner().invoke(cli, args).exit_code == code
    wrong = CliRunner().invoke(cli, ["zoo", "scorecard", "--case", "family_dens", "--out", str(tmp_path)])
    assert (wrong.exit_code, "Did you mean family_dense" in wrong.stderr) == (2, True)
    foreign = CliRunner().invoke(cli, ["zoo", "scorecard", "--counter", "xla@lowered", "--out", str(tmp_path)])
    assert foreign.exit_code == 2
    assert foreign.stderr == "Error: xla@lowered counts models of JAX, and no layer of the zoo is made there.\n"
