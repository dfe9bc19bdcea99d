"""`reconcile counter draft` reads counters without rules right, also on other layers, and noise not at all."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod

import pytest

from reconcile.adapters.counters.rulebook import DRAFT, RuleBook
from reconcile.core.errors import UsageError
from reconcile.core.records import FLOP, MAC, Entry, Ledger, Sighting
from reconcile.core.registry import known_counters
from reconcile.engine.settle import Collected
from reconcile.launch.request import RunRequest
from reconcile.products.authors import draft_rules as kit
from tests.drift.takes import NN, module

LINEAR, CONV2D = f"{NN}linear.Linear", f"{NN}conv.Conv2d"
SEEN, HELD_OUT = ("family_dense", "family_convolution"), "family_attention"
SIZES = {
    SEEN[0]: [(2, 7, 5, True), (3, 4, 9, False), (6, 11, 2, True), (5, 3, 8, False)],
    SEEN[1]: [(1, 3, 10, True), (4, 2, 6, True), (2, 5, 7, False)],
    HELD_OUT: [(7, 13, 4, True), (3, 17, 6, False)],
}
"""Rows, inputs, outputs and bias of the layers of each model. A convolution of 1 x 1 has as many on a square of 3 x 3."""
Count = Callable[[Sighting], int]


def layers(model: str) -> list[Sighting]:
    made = []
    for number, (rows, inner, outer, biased) in enumerate(SIZES[model]):
        bias = [outer] if biased else None
        sizes = {"in_features": inner, "out_features": outer, "weight": [outer, inner], "bias": bias}
        made.append(module(f"dense{number}", "linear.Linear", (rows, inner), (rows, outer), **sizes))
        sizes = {"in_channels": inner, "groups": 1, "weight": [outer, inner, 1, 1], "bias": bias}
        made.append(module(f"conv{number}", "conv.Conv2d", (rows, inner, 3, 3), (rows, outer, 3, 3), **sizes))
    return made


def outputs(seen: Sighting) -> int:
    return prod(seen.op.outputs[0].shape or ())


def macs(seen: Sighting) -> int:
    return outputs(seen) * int(seen.op.attrs["weight"][1])


def parameters(seen: Sighting) -> int:
    """All of a layer's at every position of its output."""
    out, inner = seen.op.attrs["weight"][:2]
    return outputs(seen) // out * (out * inner + sum(seen.op.attrs["bias"] or ()))


COUNTERS: dict[str, tuple[str, Count, dict[str, str]]] = {
    # its unit, what it counts, and the same in a draft's words: a mac is two units of a counter of FLOPs
    "biases_twice": (
        MAC, lambda s: macs(s) + 2 * outputs(s) * bool(s.op.attrs["bias"]), dict.fromkeys((LINEAR, CONV2D), "mac + 2 bias")
    ),
    "operations": (FLOP, lambda s: 2 * macs(s) if s.op.op == LINEAR else 0, {LINEAR: "mac"}),
    "parameters": (MAC, parameters, dict.fromkeys((LINEAR, CONV2D), "parameters")),
    "noise": (MAC, lambda s: random.Random(repr(s)).randrange(1, 10**6), {}),
}  # fmt: skip


def take(request: RunRequest) -> Collected:
    (counter,) = request.counters
    unit, count, _ = COUNTERS[counter]
    seen = tuple(layers(request.model))
    entries = tuple(Entry(s.entry, s.entry, s.op.op, count(s), 1) for s in seen)
    return Collected(
        {}, (), (Ledger(counter, "torch", unit, "cpu", {}, sum(e.value for e in entries), entries, seen, {}, ()),)
    )


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    thop = known_counters()["thop"]
    known = {name: thop._replace(name=name, unit=unit) for name, (unit, _, _) in COUNTERS.items()}
    monkeypatch.setattr(kit, "known_counters", lambda: known)
    monkeypatch.setattr(kit, "run_request", lambda model, counters: RunRequest(model, {}, counters=counters))


@pytest.mark.parametrize("counter", [name for name in COUNTERS if name != "noise"])
def test_a_counter_without_rules_is_drafted_right(counter: str) -> None:
    made = {draft.op: draft for draft in kit.drafts(counter, SEEN, take)}
    for op, words in COUNTERS[counter][2].items():
        assert words in [kit.formula(reading) for reading in made[op].readings]
    (ledger,) = take(RunRequest(HELD_OUT, {}, counters=(counter,))).ledgers
    assert isinstance(ledger, Ledger)
    wrong = [
        case.name
        for op, case in kit.cases_of(ledger, HELD_OUT)
        if (reading := made[op].reading) is None or reading.value(case.quantities) != case.value
    ]
    assert wrong == []


def test_noise_gets_no_draft() -> None:
    with pytest.raises(UsageError, match="no reading fits what noise reports"):
        kit.draft_of("noise", SEEN, take)


def test_a_draft_is_refused_as_rules() -> None:
    """A draft that cites its source is a module of rules."""
    text = kit.draft_of("biases_twice", SEEN, take)
    with pytest.raises(UsageError, match="is a draft, which explains nothing"):
        exec(compile(text, "rules.py", "exec"), {})
    cited = text.replace(f'source="{DRAFT}"', 'source="C:1"').replace("{})", '{"C": "c.py"})')
    exec(compile(cited, "rules.py", "exec"), {})
    with pytest.raises(UsageError, match='cite the file and the line in place of source="draft"'):
        RuleBook("mine", "mine", {}).rule("Linear", source=DRAFT, formula="mac")
