"""What else a figure may be that no reading of its model has: variants of it, relatives in the table, versions in the zoo."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.records import MAC
from reconcile.products.audit import hints
from reconcile.products.audit.cell import reading_to_json
from reconcile.products.audit.claims import Claim
from reconcile.products.audit.verdict import State, Verdict
from reconcile.products.decode.readings import REPORTED, WORK, Candidate
from reconcile.products.sweep.cells import Cell
from reconcile.products.sweep.small_models import HEADLESS, OF_CONFIGURATION

ROOT = Path(__file__).resolve().parents[3]
A0, A1, FUSED = 1_512_581_120, 2_626_488_320, 2_363_967_488


def row(number: int, model: str, figure: str, macs: int, state: State = State.OPEN) -> Verdict:
    claim = Claim(number, model, "1,3,224,224", figure, "GMACs")
    return Verdict(claim, state, macs=macs, reason="too small by 10 %" if state is State.OPEN else "")


def ran(what: str, value: int, fused: bool = False) -> dict[str, Any]:
    reading = {"value": value, "rank": WORK, "unit": MAC, "what": "macs", "how": "", "note": "", "family": ""}
    return {"what": what, "fused": fused, "readings": [reading]}


def reason(figure: str, outcome: dict[str, Any], *others: Verdict) -> str:
    cells = {1: Cell("a", factories={"torch": "net:make"}, arguments={"width": 3}, inputs=(("", (1, 3), ""),))}
    verdicts = [row(1, "timm:repvgg_a1", figure, A1), *others]
    first, *_ = hints.add_hints(verdicts, {1: outcome}, {**dict.fromkeys((2, 3), cells[1]), **cells})
    found, look, command = first.reason.partition(". Look further: ")
    assert (look, shlex.split(command)[:4]) == (
        ". Look further: ",
        ["reconcile", "decode", "--torch", "net:make(width=3)"],
    )
    assert shlex.split(command)[4:] == ["--input", "1,3", f"{figure} GMACs"]
    return found


def test_the_reason_names_the_variant_and_its_chance() -> None:
    outcome = {"variants": [ran("at 192", 1_929_664_384), ran("in its fused (deploy) form", FUSED, fused=True)]}
    said = reason("2.36", outcome)
    assert said.startswith(
        "too small by 10 %. The network in its fused (deploy) form has 2,363,967,488: macs. Of random"
    )
    assert said.endswith("among 2 variants and relatives")
    assert reason("2.5", outcome) == "too small by 10 %"
    assert reason("2.36", {}) == "too small by 10 %"


def test_what_a_random_figure_would_be_is_not_named() -> None:
    """Each variant takes log(1.05 / 0.95) / log(100) of the figures of one digit and two of about log(2.05 / 1.95) / log(100)."""
    several = [ran(f"at {n}", round(n * 1e8)) for n in range(10, 20)]
    share = math.log(1.95 / 0.95) / math.log(100)
    assert share > hints.MOST
    assert reason("1.5", {"variants": several}) == "too small by 10 %"
    assert "at 15 has" in reason("1.5", {"variants": several[5:6]})


def test_the_counter_that_a_row_names_is_read_for_that_row_alone() -> None:
    rows = [
        Claim(1, "net:make", figure="1", counter="thop 0.1 or PtFLOPs"),
        Claim(2, "net:make", figure="1", counter="x"),
    ]
    cells = dict.fromkeys((1, 2), Cell("a", factories={"torch": "net:make"}))
    counters = hints.list_named_counters(hints.select_claims(rows, cells[1], cells, cells), cells[1])
    assert counters == ("thop", "ptflops@pytorch", "ptflops@aten")
    other = replace(cells[1], arguments={"architectures": "Net"})  # without its head
    assert hints.select_claims(rows, other, {1: other}, cells) == []
    counted = reading_to_json(Candidate(7, REPORTED, MAC, "thop, as reported", counter="thop"))
    whole: dict[str, Any] = {"readings": [reading_to_json(Candidate(5, WORK, MAC, "macs"))]}
    more = {"readings": [*whole["readings"], counted]}
    found = hints.add_counted(rows, {1: whole, 2: whole}, {1: more, 2: more})
    assert (found[1]["readings"], found[2]) == ([*whole["readings"], counted], whole)


def test_a_counter_that_did_not_run_says_why() -> None:
    lost = {"counter": "thop", "reported": None, "reason": "thop is not installed."}
    first = replace(row(1, "net:make", "1", A1), claim=Claim(1, "net:make", figure="1", claim="GMACs", counter="thop"))
    (found,) = hints.add_hints([first], {1: {"counters": [lost]}}, {1: Cell("a", factories={"torch": "net:make"})})
    assert "thop did not run: thop is not installed. Look further" in found.reason


def test_a_class_with_a_head_is_made_without_it() -> None:
    made = f"NetForX{OF_CONFIGURATION}NetConfig(){HEADLESS}Net"
    first = replace(row(1, "transformers:NetConfig", "2.36", A1), made=made)
    cells = hints.again([first], {1: Cell("a", arguments={"layers": 3})})
    assert cells[1].arguments == {"layers": 3, "architectures": "Net"}
    outcome = {"readings": ran("", FUSED)["readings"], "variants": [ran("at 192", A0)]}
    (found,) = hints.add_hints([first], {1: outcome}, cells)
    assert f"as Net, without a head has {FUSED:,}" in found.reason
    assert "among 2 variants" in found.reason


def test_a_number_of_parameters_does_not_run_again() -> None:
    (parameters,) = rows = [replace(row(1, "resnet50", "4.09", 0))]
    assert hints.again(rows, {1: Cell("a")}) == {}
    assert hints.add_hints(rows, {}, {}) == [parameters]


def test_a_relative_in_the_table_is_named() -> None:
    a0 = row(2, "timm:repvgg_a0", "1.51", A0, State.EXPLAINED)
    stranger = row(3, "timm:resnet50", "1.51", A0 + 1, State.EXPLAINED)
    said = reason("1.51", {}, a0, stranger)
    assert "timm:repvgg_a0 1,3,224,224 of the same family runs 1,512,581,120 MACs" in said
    assert "resnet50" not in said
    assert "among 1 variants and relatives" in said


@pytest.mark.parametrize(
    "model", ["resnet50", "keras.applications:ResNet50", "keras.applications:ResNet50(classes=1000)"]
)
def test_a_version_in_the_zoo_is_named(model: str) -> None:
    """ResNet-50 with its stride in the 3x3 of a block: 4,089,184,256 multiply-adds."""
    (found,) = hints.add_hints([row(1, model, "4.09", 3_857_973_248)], {}, {1: Cell("a", model="resnet50")})
    assert "resnet50_v1_5 of the zoo, another version of it, runs 4,089,184,256 MACs (torch)" in found.reason


def test_only_rows_that_are_open_run_again_once_for_a_model() -> None:
    cells = {1: Cell("a"), 2: Cell("b"), 3: Cell("a")}
    rows = [row(1, "a", "1", 5), row(2, "b", "1", 5, State.EXPLAINED), row(3, "a", "2", 5)]
    assert hints.again(rows, cells) == {1: Cell("variants of a"), 3: Cell("variants of a")}
    done = hints.add_hints(rows, {}, cells)
    assert done[1] == rows[1]


@pytest.mark.parametrize(
    ("name", "model", "is_one"),
    [
        ("timm:repvgg_a0 1,3,224,224", "timm:repvgg_b1", True),
        ("timm:resnet50(num_classes=10)", "timm:resnet101", True),
        ("timm:repvgg_a0", "timm:repvgg_a0", False),
        ("timm:repvgg_a0", "torchvision:repvgg_b1", False),
        ("resnet50", "resnet101", False),
    ],
)
def test_families(name: str, model: str, is_one: bool) -> None:
    assert hints.are_related(name, model) is is_one
