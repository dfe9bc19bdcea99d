"""The entry of a model card and the disclosure of a training step: whole, by their schemas, and without a withheld number."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from reconcile.core.conventions import BUILT_IN
from reconcile.core.errors import UsageError
from reconcile.core.records import FORWARD, INPUT_GRADIENT, LOSS, OPTIMIZER, TRAINING, WEIGHT_GRADIENT
from reconcile.engine.answer import Answer
from reconcile.engine.verdict import verdict
from reconcile.products.cards import formats as cards
from reconcile.report import reports
from tests.report import samples
from tests.report.samples import NASTY, PAIRED, SAMPLES

COMMAND = "reconcile run --model steps --pass training"


def read(result: Answer, command: str = COMMAND) -> dict[str, Any]:
    """The card as a YAML reader has it."""
    front = next(iter(yaml.safe_load_all(f"---\nlicense: mit\n{cards.to_card(result, command)}---\n# A model\n")))
    assert list(front) == ["license", "flops"]
    found: dict[str, Any] = front["flops"]
    return found


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_card_says_what_the_verdict_says(sample: Any) -> None:
    result = sample()
    entry = read(result)
    jsonschema.validate(entry, cards.schema("card"))
    said = verdict(result)
    assert [(n["flops"], n["macs"], tuple(n["frameworks"])) for n in entry["numbers"]] == [
        (f.flops, f.macs, f.frameworks) for f in said.figures
    ]
    assert [(w["framework"], w["reason"]) for w in entry["withheld"]] == [
        (w.framework, w.reason) for w in said.withheld
    ]


def test_the_operations_of_a_step_by_phase() -> None:
    result = samples.trained()
    data = json.loads(cards.to_disclosure(result, COMMAND))
    jsonschema.validate(data, cards.schema("disclosure"))
    (step,) = data["steps"]
    first, second = 2 * samples.FIRST, 2 * samples.SECOND
    assert step["by_phase"] == {
        FORWARD: first + second, LOSS: 0, INPUT_GRADIENT: second, WEIGHT_GRADIENT: first + second, OPTIMIZER: 0,
    }  # fmt: skip
    assert step["operations"] == 2 * first + 3 * second == sum(step["by_phase"].values())
    assert step["operations"] == sum(term["count"] * term["weight"] for term in step["terms"].values())
    readings = {name: c.flops(sum(samples.STEP_WORK.values(), cards.ZERO)) for name, c in BUILT_IN.items()}
    assert step["range"] == {"low": min(readings.values()), "high": max(readings.values()), "conventions": readings}


@pytest.mark.parametrize("sample", [*PAIRED, samples.with_a_hole])
@pytest.mark.parametrize("make", [cards.to_card, cards.to_disclosure])
def test_what_is_withheld_is_nowhere(sample: Any, make: Any) -> None:
    """No total of a trace for which the verdict gives no number, nor any part of it that is as long."""
    result = replace(sample(), pass_=TRAINING)
    said = verdict(result)
    given = {str(figure.flops) for figure in said.figures} | {str(figure.macs) for figure in said.figures}
    text = make(result, COMMAND)
    data = json.loads(text) if text.startswith("{") else yaml.safe_load(text)["flops"]
    jsonschema.validate(data, cards.schema("disclosure" if "steps" in data else "card"))
    withheld = {one.framework for one in said.withheld}
    for trace in result.traces:
        if withheld & {"", trace.framework}:
            for total in trace.totals.values():
                assert str(total) in given or not re.search(rf"(?<!\d){total}(?!\d)", text.replace(",", ""))
    for step in data.get("steps", ()):
        gone = bool(withheld & {"", step["framework"]})
        assert (step["operations"] is None) == (step["range"] is None) == (step["withheld"] is not None) == gone
        assert not gone or not (step["by_phase"] or step["terms"])


def test_an_amount_beside_a_withheld_number_breaks_the_schema() -> None:
    result = replace(samples.incomplete(), pass_=TRAINING)
    data = cards.disclosure(result)
    step = next(step for step in data["steps"] if step["withheld"])
    for field, value in (
        ("operations", 5),
        ("by_phase", {"forward": 5}),
        ("terms", {"mac": {"count": 1, "weight": 2}}),
    ):
        wrong = {**data, "steps": [{**step, field: value}]}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, cards.schema("disclosure"))


def test_there_is_no_disclosure_of_a_call() -> None:
    with pytest.raises(UsageError, match="add --pass training"):
        cards.disclosure(samples.clean())


def test_names_are_data(tmp_path: Path) -> None:
    """A name is one string in either file, whatever it holds, and sends nothing to a terminal."""
    result = replace(samples.trained(), model=NASTY, params={"torch": NASTY})
    entry = read(result, NASTY)
    data = json.loads(cards.to_disclosure(result, NASTY))
    assert entry["model"] == data["model"]
    assert "<script>alert(1)</script>" in entry["model"]
    assert "\x1b" not in entry["model"] + entry["command"] + data["command"]


def test_their_files_are_no_reports_of_the_run(tmp_path: Path) -> None:
    """A folder with a disclosure has no JSON report."""
    texts = reports.render(samples.trained(), ("md", "card", "disclosure"))
    assert sorted(texts) == ["card.yaml", "disclosure.json", "md"]
    for end in texts:
        (tmp_path / f"steps.{end}").touch()
    assert reports.find_formats(tmp_path, "steps") == ("md",)
