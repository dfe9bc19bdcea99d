"""``reconcile formula conform``: several functions on several configurations and lengths, each traced once, and their page."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from reconcile.core.causes import Cause
from reconcile.core.errors import UsageError
from reconcile.core.records import Trace
from reconcile.products.llm import conform
from reconcile.products.llm.comparison import Quote
from reconcile.products.llm.conform import choose_known, fill_cells, list_configurations, remember, run_forked
from reconcile.products.llm.conform_page import describe_cells
from reconcile.products.llm.functions.cells import Cell, Verdict, fill_cell, judge
from reconcile.products.llm.functions.explain import Functions
from reconcile.report.document import Items, Table

LENGTHS = (48, 80)
WRONG = Quote("mine", 90, {Cause.HEAD_LEFT_OUT.value: 10}, 0, terms=("head-left-out: no head",))
RIGHT, NONE = Quote("mine", 100, {}, 0, terms=()), Quote("mine", None, {}, None, "it raised", terms=())


def make_cell(name: str, seq: int, *quotes: Quote) -> Cell:
    return Cell(name, 1, seq, True, 100, quotes)


def test_tasks_run_in_processes_and_what_ends_them_is_said() -> None:
    tasks = {
        "here": os.getpid,
        "raises": lambda: 1 // 0,
        "dies": lambda: os._exit(3),
        "hangs": lambda: time.sleep(60),
        "large": lambda: "x" * 10**6,
    }
    begun = time.monotonic()
    found = {name: (value, why) for name, value, why in run_forked(tasks, 2, 3)}
    assert time.monotonic() - begun < 30
    assert found["here"][0] not in (None, os.getpid())
    assert found["large"] == ("x" * 10**6, "")
    reasons = {name: why for name, (value, why) in found.items() if value is None}
    assert set(reasons) == {"raises", "dies", "hangs"}
    assert "ZeroDivisionError" in reasons["raises"]
    assert len(set(reasons.values())) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_task_ends_with_the_process_that_started_it() -> None:
    """The starter is killed, and the pipe that its task holds open ends."""
    code = """if 1:
        import sys, time
        from reconcile.products.llm.conform import run_forked
        def task():
            print("runs", flush=True)
            time.sleep(60)
        list(run_forked({"task": task}, 1, 60))
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "runs\n"
        begun = time.monotonic()
        starter.kill()
        assert starter.stdout.read() == ""
        assert time.monotonic() - begun < 30


def test_a_configuration_is_a_file_or_a_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two files of one name, and a type that is none, are refused."""
    types = SimpleNamespace(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES={"small": "", "broken": ""})
    monkeypatch.setitem(sys.modules, "transformers.models.auto.modeling_auto", types)
    monkeypatch.setattr(conform, "make_default", lambda name, longest: {"small": {"longest": longest}}[name])
    files = [tmp_path / folder / "mine.json" for folder in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text('{"model_type": "small"}')
    assert list_configurations((), 80) == {"small": {"longest": 80}}
    assert list_configurations([str(files[0]), "small"], 80) == {
        "mine": {"model_type": "small"},
        "small": {"longest": 80},
    }
    for wrong, said in (
        (list(map(str, files)), "mine"),
        (["broken"], "broken"),
        ([str(tmp_path / "none.json")], "none.json"),
    ):
        with pytest.raises(UsageError, match=said):
            list_configurations(wrong, 80)


@pytest.mark.parametrize(("kinds", "layers"), [([], 4), (["a"] * 9, 4), (["a"] * 5 + ["b"] * 9, 6), (["a", "b"], 2)])
def test_a_default_has_a_layer_of_each_kind(kinds: list[str], layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(num_hidden_layers=len(kinds) or 9, layer_types=kinds, max_position_embeddings=8)
    config.get_text_config = lambda: config
    auto = SimpleNamespace(AutoConfig=SimpleNamespace(for_model=lambda _type, **_sizes: config))
    monkeypatch.setitem(sys.modules, "transformers", auto)
    expected = {"model_type": "small", "num_hidden_layers": layers, "max_position_embeddings": 80}
    assert conform.make_default("small", 80) == expected


def test_a_default_whose_lists_must_be_as_long_as_its_layers_states_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ["a", "b"] * 4

    def make(_type: str, num_hidden_layers: int = 8, block_type: list[str] = kinds) -> SimpleNamespace:
        if len(block_type) != num_hidden_layers:
            raise ValueError("as many as layers")
        config = SimpleNamespace(num_hidden_layers=num_hidden_layers, layer_types=block_type)
        config.to_dict = lambda: {"block_type": block_type, "num_hidden_layers": num_hidden_layers, "others": [1, 2]}
        config.get_text_config = lambda: config
        return config

    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoConfig=SimpleNamespace(for_model=make)))
    expected = {"model_type": "small", "num_hidden_layers": 4, "block_type": kinds[:4]}
    assert conform.make_default("small", 80) == expected


@pytest.mark.parametrize(
    ("quote", "verdict"),
    [
        (RIGHT, Verdict.RIGHT),
        (WRONG, Verdict.WRONG),
        (NONE, Verdict.REFUSES),
        (replace(RIGHT, residual=1), Verdict.UNEXPLAINED),
        (
            replace(RIGHT, causes={Cause.FORMULA_DIFFERS.value: 0}),
            Verdict.WRONG,
        ),  # two differences that offset each other
    ],
)
def test_verdicts(quote: Quote, verdict: Verdict) -> None:
    assert judge(quote) is verdict


def test_configurations_that_no_function_knows_are_left_out_and_the_others_spread() -> None:
    """Of six known ones of nine, three: the first, the third and the fifth."""

    def even(config: Any, batch: int, seq: int) -> int:
        return 0 if config["n"] % 3 == 2 else 7

    every = {f"c{n}": {"n": n} for n in range(9)}
    asked = Functions(
        {"mine": even}, {}, 1, 48, True, False, lambda *_: pytest.fail("traced"), lambda settings: settings
    )
    chosen, refused = choose_known(every, asked, 3)
    assert list(chosen) == ["c0", "c3", "c6"]
    assert [cell.configuration for cell in refused] == ["c2", "c5", "c8"]
    assert len(choose_known(every, asked, 0)[0]) == 6
    assert fill_cell("c2", replace(asked, settings={"n": 2})).ran is None


def test_rows_are_lengths_that_differ_alike_and_terms_name_their_configurations() -> None:
    cells = [
        make_cell("one", 48, RIGHT), make_cell("one", 80, RIGHT), make_cell("two", 48, WRONG), make_cell("two", 80, RIGHT),
        make_cell("three", 48, NONE), Cell("four", 1, 48, True, None, (), "it took more than 3 seconds"),
    ]  # fmt: skip
    page = describe_cells(["mine"], cells, [], "")
    (table,) = (block for block in page.blocks if isinstance(block, Table))
    assert [row[:3] for row in table.rows] == [
        ("one", "48 to 80", "1"), ("two", "48", "0.9000"), ("two", "80", "1"), ("three", "48", "")
    ]  # fmt: skip
    items = [str(item) for block in page.blocks if isinstance(block, Items) for item in block.items]
    assert [item.split(": ")[-1] for item in items if "head" in item] == ["two at 48."]
    assert [item for item in items if "four" in item and "3 seconds" in item]
    assert not page.good
    assert describe_cells(["mine"], cells[:2], [], "").good
    assert not describe_cells(["mine"], [make_cell("three", 48, NONE)], [], "").good
    several = describe_cells(["mine", "other"], [make_cell("one", 48, WRONG, replace(RIGHT, name="other"))], [], "")
    first = next(block for block in several.blocks if isinstance(block, Table))
    assert first.rows == (("one", "48", "2", "2", "2", "1.11"),)


def test_a_command_below_one_that_is_no_group() -> None:
    from reconcile.cli import cli

    with click.Context(cli) as ctx:
        for words, name, rest in (
            (["formula", "conform", "a.py:f"], "formula conform", 1),
            (["formula", "--at", "B=1"], "formula", 2),
        ):
            _, command, left = cli.resolve_command(ctx, words)
            assert command is not None
            assert (command.name, len(left)) == (name, rest)


@pytest.mark.frameworks
def test_cells_are_filled_in_order_and_each_trace_is_taken_once() -> None:
    pytest.importorskip("torch")
    from tests.products.llm.small_decoders import SETTINGS, Config, closed_form, make_function, take

    def right(config: Any, batch: int, seq: int) -> Any:
        return make_function(closed_form(vars(config)))(config, batch, seq)

    def headless(config: Any, batch: int, seq: int) -> Any:
        terms = [term for term in closed_form(vars(config)) if term.place != "head"]
        return make_function(terms)(config, batch, seq)

    names = ["experts", "grouped heads"]
    asked = Functions({"right": right, "headless": headless}, {}, 1, LENGTHS[0], True, False, take, Config)
    chosen = {name: SETTINGS[name] for name in names}
    told: list[str] = []
    cells = list(fill_cells(chosen, asked, LENGTHS, 300, told.append))
    assert len(told) == 2
    assert [(cell.configuration, cell.seq) for cell in cells] == [(name, seq) for name in names for seq in LENGTHS]
    for cell in cells:
        assert [judge(quote) for quote in cell.quotes] == [Verdict.RIGHT, Verdict.WRONG]
        config = Config(SETTINGS[cell.configuration])
        head = 6 * cell.seq * config.hidden_size * config.vocab_size
        assert (cell.ran, cell.quotes[1].causes) == (right(config, 1, cell.seq), {Cause.HEAD_LEFT_OUT.value: head})

    taken = list[tuple[int, int]]()

    def note(settings: Mapping[str, Any], batch: int, seq: int) -> Trace:
        taken.append((batch, seq))
        return take(settings, batch, seq)

    noted = remember(note)
    for seq in LENGTHS:  # two traces of the step, and two at other sizes for both
        fill_cell("experts", replace(asked, settings=SETTINGS["experts"], seq=seq, take=noted))
    assert len(taken) == 4
