"""The scorecard: verdicts by hand, cells from closed forms, only stale cells again, and the committed pages from their cells."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.align.alignment import Alignment
from reconcile.cli import cli
from reconcile.core.causes import Cause, State
from reconcile.core.conventions import MATMUL
from reconcile.core.errors import UsageError
from reconcile.core.records import Layer, Ledger
from reconcile.core.registry import known_counters
from reconcile.engine.ledger import reconcile_ledger
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.gallery import run as gallery
from reconcile.kit.conform import families
from reconcile.launch.environments.interpreters import EnvironmentError_
from reconcile.launch.environments.named import CURRENT
from reconcile.launch.runner import collect
from reconcile.model_zoo.loading import load_pair, pair_path
from reconcile.scorecard import cells as score
from reconcile.scorecard import markdown as pages
from reconcile.scorecard import page as scorecard_page
from reconcile.scorecard import picture as scorecard_picture
from reconcile.scorecard import run as scoring
from reconcile.scorecard.cells import Card, Cell, Verdict
from reconcile.scorecard.run import Batch
from tests.zoo.choice import FAMILIES, chosen
from tests.zoo.family_forms import macs

FOLDER = Path(__file__).parents[2] / "reports" / "scorecard"
CARDS = score.read()
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
        (8, {Cause.SHAPE_UNKNOWN: 2, Cause.LOOP_COUNTED_ONCE: 4}, Verdict.PARTIAL),
        (8, {Cause.FORMULA_DIFFERS: 4}, Verdict.FACTOR),
        (8, {Cause.RECOUNTED: -8}, Verdict.FACTOR),
        (8, {Cause.DEAD_OP: -2, Cause.BODY_NOT_ENTERED: 8}, Verdict.ZERO),  # it counts 2, and nothing of what ran
        (8, {Cause.DEAD_OP: -8, Cause.BODY_NOT_ENTERED: 8}, Verdict.ZERO),  # equal by chance
        (8, {Cause.DEAD_OP: -2, Cause.OP_NOT_COUNTED: 2}, Verdict.FACTOR),  # equal by chance
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
        (Cell(Verdict.FACTOR, 32, 8), "4 times"),
        (Cell(Verdict.FACTOR, 1200, 0), "1,200 of 0"),
        (Cell(Verdict.NOTHING, 0, 0), ""),
        (Cell(Verdict.FAILS, reason="it broke"), "fails"),
    ],
)
def test_a_factor_is_an_exact_fraction(cell: Cell, text: str) -> None:
    assert score.text(cell) == text


def test_every_verdict_has_a_meaning_and_a_colour() -> None:
    assert [v for v in Verdict if not v.meaning or v not in scorecard_picture.COLOURS] == []


def test_causes_are_of_work_left_out_never_run_or_neither() -> None:
    assert sorted(score.LEFT_OUT & score.NEVER_RAN) == []


def test_cards_come_back_from_the_file_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "cards.json"
    assert score.read(path) == {}
    path.write_text(score.dump(CARDS.values()))
    assert score.read(path) == CARDS


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 99, "rows": {}}', '{"schema": 1, "rows": {"a": {}}}'])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cards.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="Make it again with `reconcile zoo scorecard`"):
        score.read(path)


# Which cells run again.


def kept(**changes: Any) -> dict[str, Card]:
    """Cards of two counters and two families as they would be made now; ``changes`` are in thop's on family_dense."""
    cards = {}
    for family in ("family_dense", "family_norm"):
        for name in ("thop", "fvcore"):
            card = scoring._card(family, "forward", known_counters()[name], {}, {})
            cards[card.name] = replace(card, **changes) if (family, name) == ("family_dense", "thop") else card
    return cards


def batches(cards: dict[str, Card]) -> list[Batch]:
    return scoring.stale(("thop", "fvcore"), ("family_dense", "family_norm"), ("forward",), cards)


def test_what_is_made_is_not_made_again() -> None:
    assert batches(kept()) == []


@pytest.mark.parametrize("changed", ["source", "code", "version", "framework_version"])
def test_one_change_makes_one_card_again(changed: str) -> None:
    assert batches(kept(**{changed: "other"})) == [Batch("family_dense", "forward", CURRENT, ("thop",))]


def test_what_was_not_installed_is_tried_again() -> None:
    absent = {"dense": Cell(Verdict.ABSENT, reason="not here")}
    assert batches(kept(cells=absent)) == [Batch("family_dense", "forward", CURRENT, ("thop",))]


def test_all_counters_of_an_environment_run_together() -> None:
    two = ("thop", "fvcore")
    assert batches({}) == [Batch(family, "forward", CURRENT, two) for family in ("family_dense", "family_norm")]


def test_a_counter_with_requirements_or_recipe_runs_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(known_counters())
    known["fvcore"] = known["fvcore"]._replace(requirements=("fvcore==9",))
    monkeypatch.setattr(scoring, "known_counters", lambda: known)
    made = scoring.stale(("thop", "fvcore", "tf.profiler@session", PROFILER), ("family_dense",), ("forward",), {})
    assert [(batch.environment, batch.counters) for batch in made] == [
        (CURRENT, ("thop", PROFILER)), ("fvcore", ("fvcore",)), (CURRENT, ("tf.profiler@session",)),
    ]  # fmt: skip


def test_the_code_of_a_counter_is_its_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one_counter", "other_counter"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def code() -> str:
        scoring.code_of.cache_clear()
        return scoring.code_of("one_counter")

    before = code()
    (tmp_path / "other_counter" / "rules.py").write_text("x = 1\n")
    assert code() == before
    (tmp_path / "one_counter" / "rules.py").write_text("x = 1\n")
    assert code() != before


# Runs.


def stopping(model: str, request: Any) -> Collected:
    """thop stops with an error at the whole family and at ``einsum_dense``; it is not installed at ``embedding``."""
    layer = Path(request.model).stem
    states = {"family_dense": (State.FAILED, "boom"), "einsum_dense": (State.FAILED, "an einsum"),
              "dense": (State.NOT_COMPARABLE, "a dense"), "embedding": (State.SKIPPED, "thop is not installed")}  # fmt: skip
    if layer not in states:
        raise UsageError(f"no {layer}")
    state, reason = states[layer]
    return Collected({"layers": []}, (), (Missing("thop", "torch", state, reason),))


def test_a_counter_that_stops_at_a_family_runs_layer_by_layer() -> None:
    (card,) = scoring.measure(Batch("family_dense", "forward", CURRENT, ("thop",)), stopping)
    seen = {layer: (cell.verdict, cell.reason) for layer, cell in card.cells.items()}
    assert list(seen) == list(scoring.layers_of("family_dense"))
    assert seen["einsum_dense"] == (Verdict.FAILS, "an einsum")
    assert seen["dense"] == (Verdict.BLIND, "a dense")
    assert seen["embedding"] == (Verdict.ABSENT, "thop is not installed")
    assert seen["dense_map"] == (Verdict.FAILS, "no dense_map")


def test_a_model_that_cannot_run_is_no_error_of_the_counter() -> None:
    """The Keras of an environment may lack a layer: then neither the trace nor the counter has a number, for one reason."""
    reason = "AttributeError: no attribute 'RMSNormalization'"
    absent = tuple(Missing(name, "tf", State.FAILED, reason) for name in ("trace@tf", "keras_flops"))
    cells = score.cells(Collected({"layers": []}, absent[:1], absent[1:]), "keras_flops", ("rms",))
    assert cells == {"rms": Cell(Verdict.BLIND, reason=f"the model cannot run there: {reason}")}
    other = replace(absent[1], reason="boom")
    cells = score.cells(Collected({"layers": []}, absent[:1], (other,)), "keras_flops", ("rms",))
    assert cells == {"rms": Cell(Verdict.FAILS, reason="boom")}


def test_without_its_environment_a_counter_runs_nowhere() -> None:
    runs = []

    def take(environment: str, _request: Any) -> Collected:
        runs.append(environment)
        raise EnvironmentError_("there is no uv")

    (card,) = scoring.measure(Batch("family_dense", "forward", "thop", ("thop",)), take)
    seen = {(cell.verdict, cell.counted, cell.reason) for cell in card.cells.values()}
    assert seen == {(Verdict.ABSENT, None, "its environment cannot be made: there is no uv")}
    assert runs == ["thop"]


def test_a_blind_counter_does_not_run() -> None:
    def take(_environment: str, _request: Any) -> Collected:
        raise AssertionError("it ran")

    (card,) = scoring.measure(Batch("family_dense", "training", CURRENT, ("thop",)), take)
    reasons = {(cell.verdict, cell.reason) for cell in card.cells.values()}
    assert reasons == {(Verdict.BLIND, "it sees the forward pass only")}


@pytest.mark.parametrize("family", families())
def test_a_layer_alone_is_a_pair(family: str, tmp_path: Path) -> None:
    for layer in scoring.layers_of(family):
        file = tmp_path / f"{layer}.py"
        file.write_text(scoring.ONE_LAYER.format(family=family, layer=layer))
        assert [row.name for row in load_pair(str(file)).layers] == [layer]


# The committed scorecard.


def test_the_pages_are_made_of_the_cells() -> None:
    texts = {"README.md": pages.to_markdown(BOARD), "scorecard.csv": pages.to_csv(BOARD)}
    texts["scorecard.html"] = scorecard_page.to_html(BOARD)
    texts |= {f"{family}.md": pages.family_page(BOARD, family) for family in BOARD.layers}
    wrong = [name for name, text in texts.items() if (FOLDER / name).read_text() != text]
    assert wrong == [], f"reports/scorecard is {STALE}"
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted([*texts, "scorecard.svg"])


@pytest.mark.frameworks  # it draws with matplotlib
def test_the_picture_has_every_cell() -> None:
    """The name of each shape has its verdict and how many cells it stands for."""
    drawn = [cells_in(text) for text in ((FOLDER / "scorecard.svg").read_text(), str(scorecard_picture.to_svg(BOARD)))]
    held = {
        (pass_, name, verdict.value.replace(" ", "-")): number
        for pass_ in BOARD.passes
        for name in BOARD.counters
        for verdict, number in BOARD.sums(name, pass_).items()
    }
    assert drawn == [held, held], f"scorecard.svg is {STALE}"


def cells_in(svg: str) -> dict[tuple[str, str, str], int]:
    """How many cells of a verdict a row of a picture has."""
    shapes = re.findall(r'id="(forward|training)-(\d+)-([a-z-]+)-(\d+)"', svg)
    return {(pass_, BOARD.counters[int(row)], verdict): int(number) for pass_, row, verdict, number in shapes}


def test_every_counter_has_every_layer_of_the_zoo_in_both_passes() -> None:
    wrong = [
        (family, pass_, name)
        for family in families()
        for pass_ in ("forward", "training")
        for name in BOARD.counters
        if (card := BOARD.card(family, pass_, name)) is None or tuple(card.cells) != scoring.layers_of(family)
    ]
    assert wrong == [], f"the cards of these are {STALE}"
    assert set(DEFAULT) <= set(BOARD.counters)


def test_every_number_is_explained() -> None:
    cells = [(card.name, layer, cell) for card in CARDS.values() for layer, cell in card.cells.items()]
    assert [case for case in cells if case[2].verdict is Verdict.OPEN] == []
    unsummed = [c for c in cells if c[2].counted is not None and c[2].counted + sum(c[2].causes.values()) != c[2].ran]
    assert unsummed == []


def test_the_cells_of_a_call_add_up_to_the_totals_in_the_gallery() -> None:
    wrong = []
    for family in families():
        for name, total in ((name, cell.total) for name, cell in gallery.read()[family].cells.items()):
            cells = CARDS[f"{family} forward {name}"].cells.values()
            if sum((cell.counted or 0) + cell.beside for cell in cells) != total:
                wrong.append((family, name, total))
    assert wrong == []


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


@pytest.mark.parametrize(
    ("counter", "family", "layer", "text"),
    [
        ("thop", "dense", "einsum_dense", "zero"),  # no module
        ("thop", "transposed", "transposed2d_no_bias", "4 times"),  # stride 2: four outputs per input, kernel 2
        ("thop", "transposed", "transposed2d_gaps", "9 times"),  # stride 3
        ("fvcore", "recurrent", "gru", "zero"),
        ("flop_counter", "recurrent", "lstm", "zero"),
        ("flop_counter", "recurrent", "gru", "exact"),
        ("thop", "recurrent", "gru", "exact"),
        ("thop", "control", "two_parents", "9 times"),  # three paths: three hooks, each sum added three times
        (PROFILER, "dense", "dense", "exact"),
        (PROFILER, "recurrent", "gru", "zero"),  # the body of a While; what it counts never ran
        ("tf.profiler@frozen", "recurrent", "gru", "4/35 counted"),  # 1 of 5 steps, 4 inputs of 4 + 3
        ("mmengine", "recurrent", "gru", "zero"),
        ("calflops", "recurrent", "gru", "exact"),
        ("calflops@macs", "recurrent", "gru", "zero"),
        ("deepspeed@macs", "recurrent", "lstm", "zero"),
        ("torch.profiler", "convolution", "conv1d", "zero"),
        ("onnx_tool", "transposed", "transposed2d_gaps", "27/4 times"),  # as thop, but 3 outputs in place of 4 inputs
        ("tf.profiler@runmeta", "recurrent", "gru", "6/5 times"),  # five steps and one more that no output depends on
    ],
)
def test_known_cells(counter: str, family: str, layer: str, text: str) -> None:
    cell = BOARD.cell(f"family_{family}", layer, "forward", counter)
    assert cell is not None
    assert score.text(cell) == text


def same(cell: Cell) -> Cell:
    """Without the names of rules: those of a graph's nodes depend on what else ran in the process."""
    return replace(cell, rules=())


@pytest.mark.frameworks
@pytest.mark.parametrize("family", chosen(families(), FAMILIES))
def test_a_family_run_again_gives_cells_that_add_up(collecting: Any, family: str) -> None:
    collected = collecting(family)
    align = Alignment([Layer.from_list(row) for row in collected.meta["layers"]])
    traces = {trace.framework: trace for trace in collected.traces}
    wrong = []
    for ledger in collected.ledgers:
        assert isinstance(ledger, Ledger)
        now = score.cells(collected, ledger.counter, scoring.layers_of(family))
        reported = reconcile_ledger(ledger, traces[ledger.framework], align, MATMUL).cells
        held = CARDS[f"{family} forward {ledger.counter}"].cells
        for layer, cell in now.items():
            if same(cell) != same(held[layer]) or (cell.counted or 0) + cell.beside != reported.get(layer, 0):
                wrong.append((ledger.counter, layer, cell, held[layer], reported.get(layer, 0)))
    assert wrong == [], f"the cells of {family} are {STALE}"


@pytest.mark.frameworks
@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", chosen(families(), ("family_dense",)))
def test_a_training_step_run_again_gives_its_cells(family: str) -> None:
    seeing = tuple(name for name in DEFAULT if not known_counters()[name].blind)
    wrong = []
    for card in scoring.measure(
        Batch(family, "training", CURRENT, seeing), lambda _environment, request: collect(request)
    ):
        held = CARDS[card.name].cells
        wrong += [(card.counter, layer) for layer, cell in card.cells.items() if same(cell) != same(held[layer])]
    assert wrong == [], f"the cells of {family} are {STALE}"


@pytest.mark.frameworks
def test_a_layer_alone_has_the_cell_that_it_has_in_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """thop is made to stop at the family, and one layer is looked at."""
    monkeypatch.setattr(scoring, "layers_of", lambda _family: ("einsum_dense",))

    def take(_environment: str, request: Any) -> Collected:
        if request.model == "family_dense":
            raise UsageError("the family stops")
        return collect(request)

    (card,) = scoring.measure(Batch("family_dense", "forward", CURRENT, ("thop",)), take)
    assert card.cells["einsum_dense"] == BOARD.cell("family_dense", "einsum_dense", "forward", "thop")
    assert card.versions == CARDS[card.name].versions


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
    assert "| dense | [3/2 times](family_dense.md#dense) |" in pages.to_markdown(board)
    page = pages.family_page(board, "family_dense")
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
    assert f"[{verdict.value}](family_dense.md#dense)" in pages.to_markdown(board)
    assert "thop &lt;is> not here." in pages.family_page(board, "family_dense")
    assert "thop &lt;is&gt; not here." in scorecard_page.to_html(board)
    (row,) = csv.DictReader(io.StringIO(pages.to_csv(board)))
    assert (row["counted"], row["ran"], row["times"], row["reason"]) == ("", "", "", "thop <is> not here")
    assert row["command"].startswith("reconcile run") is (verdict is Verdict.FAILS)
    assert "reproduce" not in pages.family_page(board, "family_dense") + scorecard_page.to_html(board)


def test_a_zero_says_what_it_counts_instead() -> None:
    cell = Cell(Verdict.ZERO, 2, 8, {"dead-op": -2, "body-not-entered": 8})
    text = (
        "It counts 2 FLOP of multiply-adds, and none of them is among the 8 that ran: dead-op -2, body-not-entered +8."
    )
    assert pages.counted(cell) == text
    assert pages.counted(replace(cell, counted=0)).startswith("It counts 0 FLOP of multiply-adds, and 8 ran:")


def test_a_blind_counter_is_named_once() -> None:
    (card,) = toy().cards.values()
    blind = {"dense": Cell(Verdict.BLIND, reason="it sees a call only")}
    rest = [replace(card, pass_="training", family=family, cells=blind) for family in ("family_dense", "family_norm")]
    sentence = "Blind: thop (it sees a call only)."
    everywhere = pages.to_markdown(pages.Board({c.name: c for c in (card, *rest)}))
    assert (everywhere.count(sentence), everywhere.count("**training**")) == (1, 0)
    seen = replace(rest[1], cells=card.cells)
    somewhere = pages.to_markdown(pages.Board({c.name: c for c in (card, rest[0], seen)}))
    assert (somewhere.count(sentence), somewhere.count("**training**")) == (1, 2)


def test_a_counter_that_is_not_known_here_stays_on_the_page() -> None:
    (card,) = toy().cards.values()
    gone = replace(card, counter="gone")
    board = pages.Board({c.name: c for c in (gone, card)})
    assert board.counters == ("thop", "gone")
    assert "reconcile counter reproduce gone family_dense:dense" in pages.family_page(board, "family_dense")


@pytest.mark.frameworks  # it draws with matplotlib
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
