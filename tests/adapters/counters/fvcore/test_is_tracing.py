"""Models whose code asks torch.jit.is_tracing(), or whether two inputs are one tensor, which they are not in a trace: what fvcore
counts because of the answer, and what it misses, have a cause.

The input is (5, 8): a layer of 8 features does 5 * 8 * 8 = 320 multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import reconcile
from reconcile.core.causes import Cause, State
from reconcile.core.records import TWO_TENSORS
from tests.adapters.counters.small_nets import Does, Takes

LAYER = 5 * 8 * 8


def layers() -> dict[str, nn.Module]:
    return {name: nn.Linear(8, 8, bias=False) for name in ("first", "second")}


def asks(answered: Callable[[Any, torch.Tensor, bool], torch.Tensor]) -> Does:
    """Two layers; ``answered(model, x, is_traced)`` takes them."""
    return Does(lambda model, x: answered(model, x, torch.jit.is_tracing()), **layers())


def asks_twice(answered: Callable[..., torch.Tensor]) -> Takes:
    """The same of ``answered(model, x, y)``, both of which may be in a list."""
    return Takes(lambda model, given: answered(model, *(given if len(given) == 2 else given[0])), **layers())


def fewer(model: Any, x: torch.Tensor, traced: bool) -> torch.Tensor:
    x = model.first(x)
    return x if traced else model.second(x)


def more(model: Any, x: torch.Tensor, traced: bool) -> torch.Tensor:
    x = model.first(x)
    return model.second(x @ model.second.weight) if traced else x * 2


def others(model: Any, x: torch.Tensor, traced: bool) -> torch.Tensor:
    return model.first(model.first(x)) if traced else model.second(model.first(x))


WAYS = {
    # what fvcore counts, what runs, and the multiply-adds of each cause by layer
    "fewer": (fewer, 1, 2, {(Cause.CALL_NOT_SEEN, "second"): LAYER}),
    "more": (more, 3, 1, {(Cause.UNTAKEN_BRANCH, "(model)"): -LAYER, (Cause.UNTAKEN_BRANCH, "second"): -LAYER}),
    "others": (others, 2, 2, {(Cause.UNTAKEN_BRANCH, "first"): -LAYER, (Cause.CALL_NOT_SEEN, "second"): LAYER}),
}


def run(model: nn.Module) -> Any:
    return reconcile.run(torch=lambda: (model, (torch.ones(5, 8),)), counters=["fvcore"])


@pytest.mark.parametrize("name", WAYS)
def test_what_the_answer_decides_has_a_cause(name: str) -> None:
    answered, counted, ran, amounts = WAYS[name]
    real = torch.jit.is_tracing
    result = run(asks(answered)).result
    assert torch.jit.is_tracing is real
    (statement,) = result.statements
    assert (statement.from_total, statement.to_total, statement.residual) == (2 * counted * LAYER, 2 * ran * LAYER, 0)
    assert {(a.cause, a.layer): a.amount for a in statement.adjustments} == {k: 2 * v for k, v in amounts.items()}


def test_a_question_that_decides_nothing_changes_nothing() -> None:
    (statement,) = run(asks(lambda model, x, traced: model.second(model.first(x)))).result.statements
    assert (statement.state, statement.adjustments) == (State.EQUAL, ())


def test_a_difference_that_is_not_of_the_answer_stays_a_residual() -> None:
    """It asks, and runs the same whatever the answer is: another call than the first runs less."""
    calls: list[int] = []

    def answered(model: Any, x: torch.Tensor, _: bool) -> torch.Tensor:
        calls.append(1)
        return model.first(x) if len(calls) > 1 else model.second(model.first(x))

    (statement,) = run(asks(answered)).result.statements
    assert (statement.state, abs(statement.residual)) == (State.UNEXPLAINED, 2 * LAYER)
    assert statement.adjustments == ()


def test_a_model_that_is_not_traced_as_it_runs_stays_a_residual() -> None:
    def answered(model: Any, x: torch.Tensor, traced: bool) -> torch.Tensor:
        x = model.first(x)
        if traced:
            return x
        if torch._C._get_tracing_state():
            raise ValueError("not in a trace")
        return model.second(x)

    (statement,) = run(asks(answered)).result.statements
    assert (statement.state, statement.residual) == (State.UNEXPLAINED, 2 * LAYER)


def more_of_two(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return model.first(x) if x is y else model.first(x) + model.second(y)


def others_of_two(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return model.first(model.second(x)) if x is y else model.second(model.second(y))


def asks_then(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return model.first(x) if x is y and not torch.jit.is_tracing() else model.second(model.first(x) + y)


def asks_both(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    first = model.first(x) if x is y else model.second(model.first(x))
    return first if torch.jit.is_tracing() else model.second(first)


IS, ASKS = True, False
"""Whether the answer is that the inputs are one tensor, or that nothing is traced."""
WAYS_OF_TWO = {
    # what fvcore counts, what runs, and the multiply-adds of each cause by layer and answer
    "more": (more_of_two, 2, 1, {(Cause.UNTAKEN_BRANCH, "second", IS): -LAYER}),
    "others": (
        others_of_two,
        2,
        2,
        {(Cause.UNTAKEN_BRANCH, "second", IS): -LAYER, (Cause.CALL_NOT_SEEN, "first", IS): LAYER},
    ),
    "and then whether it is traced": (asks_then, 2, 1, {(Cause.UNTAKEN_BRANCH, "second", ASKS): -LAYER}),
    "and whether it is traced": (
        asks_both,
        2,
        2,
        {(Cause.UNTAKEN_BRANCH, "second", IS): -LAYER, (Cause.CALL_NOT_SEEN, "second", ASKS): LAYER},
    ),
}


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("name", WAYS_OF_TWO)
def test_what_one_tensor_given_twice_decides_has_a_cause(name: str, listed: bool) -> None:
    answered, counted, ran, amounts = WAYS_OF_TWO[name]
    x = torch.ones(5, 8)
    inputs = ([x, x],) if listed else (x, x)
    (statement,) = reconcile.run(torch=asks_twice(answered), inputs=inputs, counters=["fvcore"]).result.statements
    assert (statement.from_total, statement.to_total, statement.residual) == (2 * counted * LAYER, 2 * ran * LAYER, 0)
    found = {
        (line.cause, line.layer, TWO_TENSORS in evidence.seen[0].attrs): line.amount
        for line in statement.adjustments
        for evidence in line.evidence
    }
    assert found == {way: 2 * macs for way, macs in amounts.items()}


def test_two_views_of_one_tensor_are_two_tensors() -> None:
    x = torch.ones(5, 8)
    run = reconcile.run(torch=asks_twice(more_of_two), inputs=(x, x[:]), counters=["fvcore"])
    (statement,) = run.result.statements
    assert (statement.state, statement.to_total, statement.adjustments) == (State.EQUAL, 4 * LAYER, ())
