"""torch.profiler nested in a program's own step: the same execution, beside the profiler alone around the same code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import reconcile
from reconcile.adapters.counters.torch_profiler import COUNTERS, FORMULAS
from reconcile.adapters.counters.torch_profiler.rules import BOOK
from reconcile.core.causes import Cause, State
from reconcile.products.steps.count import Step
from tests.products.steps import nets

NAME = COUNTERS[0].name
BOTH = ("flop_counter", NAME)
SUMS = {"aten::add", "aten::mul"}


def mlp() -> Callable[[], Any]:
    """Two micro-batches, clipping and AdamW."""
    model = nets.mlp()
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        for _ in range(2):
            functional.cross_entropy(model(nets.rows()), nets.classes()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def convolutions() -> Callable[[], Any]:
    """One whose padding is numbers, and one in groups whose padding is a name: the profiler counts nothing of that."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=2, padding="same"),
        nn.Flatten(), nn.Linear(8 * 36, 5),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step() -> None:
        functional.cross_entropy(model(torch.randn(4, 3, 6, 6)), torch.arange(4)).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def transformer(**options: Any) -> Callable[[], Any]:
    """One step of a small language model."""
    model = nets.Transformer(layers=1, **options)
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)

    def step() -> None:
        nets.cross_entropy(model, nets.tokens()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


STEPS: dict[str, Callable[[], Callable[[], Any]]] = {
    "mlp": mlp,
    "convolutions": convolutions,
    "transformer": transformer,
    "reentrant": lambda: transformer(saved="reentrant"),
    "non-reentrant": lambda: transformer(saved="other"),
    "lora": lambda: transformer(lora=True),
}


def alone(step: Callable[[], Any]) -> Counter[str]:
    """What the profiler counts around this code without us, by the name of the event."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, with_flops=True, record_shapes=True) as profiler:
        step()
    counted: Counter[str] = Counter()
    for event in profiler.events():
        counted[event.name] += int(event.flops or 0)
    return +counted


def state(step: Step, counter: str = NAME) -> tuple[State, int | None, str]:
    """The state of a counter's statement, its residual, and why there is none."""
    (statement,) = (s for s in step.result.statements if s.from_ == counter)
    return statement.state, statement.residual, statement.reason


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("transformer", "non-reentrant", "lora")))
        for name in STEPS
    ],
)
def test_the_same_products_as_alone_and_residual_0(name: str) -> None:
    step = STEPS[name]()
    step()  # a second step is as the third: the optimizer has its state
    counted = nets.counted(step, counters=BOTH)
    for counter in BOTH:
        assert state(counted, counter)[:2] in [(State.EXPLAINED, 0), (State.EQUAL, 0)], state(counted, counter)
    expected = alone(step)
    found: Counter[str] = Counter()
    (ledger,) = (x for x in counted.collected.ledgers if x.counter == NAME)
    for sighting in ledger.sightings:
        for kind, *_, times in sighting.op.attrs["events"]:
            found[kind] += times * sighting.op.calls
    assert ledger.total >= sum(expected.values())
    assert set(found) - SUMS <= set(FORMULAS)
    sums = sum(e.value for e in ledger.entries if e.op in ("aten.add", "aten.mul"))
    products = {kind: flops for kind, flops in expected.items() if kind not in SUMS}
    assert ledger.total - sums == sum(products.values())


def test_two_micro_batches_by_hand() -> None:
    step = mlp()
    step()
    counted = nets.counted(step, counters=(NAME,))
    assert [x.total for x in counted.result.ledgers] == [
        2 * nets.MLP_STEP + 2
    ]  # clipping: a sum and a product of one number
    assert dict(counted.causes[NAME])[Cause.OUTSIDE_CONVENTION.value] == -2


def test_gradients_of_a_convolution_are_not_counted() -> None:
    step = convolutions()
    step()
    counted = nets.counted(step, counters=(NAME,))
    first, second = 2 * 4 * 36 * 9 * 3 * 8, 2 * 4 * 36 * 9 * 8 * 8 // 2
    left_out = first + 3 * second  # the weights of the first, and all of the second: its padding is a name
    assert dict(counted.causes[NAME])[Cause.OP_NOT_COUNTED.value] == left_out


def test_it_is_asked_for() -> None:
    assert [x.counter for x in nets.counted(mlp()).result.ledgers] == ["flop_counter"]


def test_a_profiler_of_the_program_around_the_step() -> None:
    step = mlp()
    counted: list[Step] = []
    found = alone(lambda: counted.append(nets.counted(step, counters=BOTH)))
    assert found["aten::mm"], "the program's own profiler goes on"
    assert state(counted[0]) == (State.NOT_COMPARABLE, None, state(counted[0])[2])
    assert "the program has a torch.profiler of its own" in state(counted[0])[2]
    assert state(counted[0], "flop_counter")[:2] == (State.EQUAL, 0)


def test_a_profiler_of_the_program_within_the_step() -> None:
    step = mlp()
    found: list[Counter[str]] = []
    counted = nets.counted(lambda: found.append(alone(step)), counters=BOTH)
    assert found[0]["aten::addmm"], "the program's own profiler runs"
    assert "the program has a torch.profiler of its own" in state(counted)[2]
    assert not torch.autograd._profiler_enabled()


@pytest.mark.parametrize("outer", [(NAME,), pytest.param(("flop_counter",), marks=pytest.mark.slow)])
def test_contexts_in_each_other_say_so(outer: tuple[str, ...]) -> None:
    step = mlp()
    with reconcile.count(counters=outer) as around:
        inner = nets.counted(step, counters=(NAME,))
    assert "two contexts of reconcile record the step" in state(inner)[2]
    if NAME in outer:
        assert "two contexts of reconcile record the step" in state(around)[2]


def test_an_op_of_its_own_event_without_a_trace_is_unexplained() -> None:
    def step() -> None:
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():
            torch.ones(2, 3) @ torch.ones(3, 4)
        torch.ones(1) + 1

    counted = nets.counted(step, counters=(NAME,))
    assert state(counted)[:2] == (State.UNEXPLAINED, -2 * 2 * 3 * 4)


def test_the_formulas_are_those_of_the_rules() -> None:
    assert {rule.op for rule in BOOK.rules() if rule.op.startswith("aten::")} == set(FORMULAS)
