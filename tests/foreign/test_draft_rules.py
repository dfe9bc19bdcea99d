"""`reconcile counter draft` reads three counters without rules right, also on other layers, and noise not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconcile.adapters.counters.rulebook import DRAFT, RuleBook
from reconcile.core.errors import UsageError
from tests.foreign.installing import installed_as
from tests.programs import output_of

PACKAGE = Path(__file__).parent / "strange_counters"
POINT = "[reconcile.counters]\nstrange = reconcile_strange:COUNTERS\n"
SEEN = ("family_dense", "family_convolution", "family_norm")
HELD_OUT = ("family_attention", "family_block", "family_recurrent")
LINEAR, CONV2D = "torch.nn.modules.linear.Linear", "torch.nn.modules.conv.Conv2d"
LAYER_NORM = "torch.nn.modules.normalization.LayerNorm"

RIGHT = {
    "biases_twice": {LINEAR: "mac + 2 bias", CONV2D: "mac + 2 bias"},
    "operations": {LINEAR: "mac", LAYER_NORM: "5 input"},
    "parameters": {LINEAR: "parameters", CONV2D: "parameters"},
}
"""What tests/foreign/strange_counters counts, in a draft's words; a mac is two units of a counter of FLOPs. A norm has as many
outputs as inputs. Readings that are the same number for every layer stand beside each other, so the right one is among them."""

PROGRAM = """
import json, sys
from dataclasses import replace
from functools import cache
from reconcile.core.errors import UsageError
from reconcile.core.registry import known_counters
from reconcile.launch.runner import collect
from reconcile.work import load
from reconcile.products.authors import draft_rules as kit

load()
seen, held_out = json.loads(sys.argv[1])
counters = ("biases_twice", "operations", "parameters", "noise")

@cache
def collected(model):
    return collect(replace(kit.run_request(model=model, counters=counters), trace=False))

def take(request):
    every = collected(request.model)
    return replace(every, ledgers=tuple(x for x in every.ledgers if x.counter in request.counters))

results = {}
for counter in counters:
    drafts = kit.drafts(counter, seen, take)
    readings = {d.op: d.reading for d in drafts if d.reading is not None}
    wrong, right = [], 0
    for model in held_out:
        (ledger,) = take(kit.run_request(model=model, counters=(counter,))).ledgers
        for op, case in kit.cases_of(ledger, model):
            if op in readings:
                same = readings[op].value(case.quantities) == case.value
                right += same
                wrong += [] if same else [case.name]
    try:
        text = kit.text(known_counters()[counter], drafts)
    except UsageError as error:
        text = str(error)
    formulas = {d.op: [kit.formula(r) for r in d.readings] for d in drafts if d.reading is not None and d.reading.terms}
    results[counter] = {"formulas": formulas, "wrong": wrong, "right": right, "text": text}
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """Each counter's drafts, and how they do on other layers: a run of each family, for all counters together."""
    folder = tmp_path_factory.mktemp("drafts")
    site = installed_as(folder / "site", PACKAGE, "reconcile_strange", POINT)
    printed = output_of("-c", PROGRAM, json.dumps([SEEN, HELD_OUT]), folder=folder, paths=[site])
    found: dict[str, dict] = json.loads(printed.splitlines()[-1])
    return found


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.parametrize("counter", RIGHT)
def test_a_counter_without_rules_is_drafted_right(drafted: dict[str, dict], counter: str) -> None:
    formulas = drafted[counter]["formulas"]
    missing = {op: formulas.get(op) for op, right in RIGHT[counter].items() if right not in formulas.get(op, ())}
    assert missing == {}
    assert drafted[counter]["wrong"] == []
    assert drafted[counter]["right"] > 20  # the dense layers of three other families alone


@pytest.mark.frameworks
@pytest.mark.slow
def test_noise_gets_no_draft(drafted: dict[str, dict]) -> None:
    assert drafted["noise"]["formulas"] == {}
    assert drafted["noise"]["text"].startswith("no reading fits what noise reports")


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_draft_is_refused_as_rules(drafted: dict[str, dict]) -> None:
    text = drafted["biases_twice"]["text"]
    assert text.startswith('"""A draft of the rules of biases_twice')
    assert "never a statement's cause" in text
    with pytest.raises(UsageError, match="is a draft, which explains nothing"):
        exec(compile(text, "rules.py", "exec"), {})
    exec(
        compile(text.replace('source="draft"', 'source="C:1"').replace("{})", '{"C": "c.py"})'), "rules.py", "exec"), {}
    )


def test_a_rule_book_takes_no_draft() -> None:
    book = RuleBook("mine", "mine", {})
    with pytest.raises(UsageError, match='cite the file and the line in place of source="draft"'):
        book.rule("Linear", source=DRAFT, formula="mac")
