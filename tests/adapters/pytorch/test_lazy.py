"""A model whose outputs are computed when they are taken: what ran is counted, or it is said that nobody knows; never 0."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

import reconcile
from reconcile.core.errors import NotInResult, UsageError
from tests.adapters.counters.small_nets import Does

ROWS, WIDE, NARROW, ITEMS = 4, 16, 32, 3
ITEM = 2 * ROWS * WIDE * NARROW


def lazy(make: Callable[..., Any]) -> nn.Module:
    """It gives what ``make(linear, x)`` gives."""
    return Does(lambda m, x: make(m.linear, x), linear=nn.Linear(WIDE, NARROW, bias=False))


def items(linear, x):
    for _ in range(ITEMS):
        yield linear(x)


async def awaited(linear, x):
    return linear(x)


def submitted(linear, x):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(linear, x)


@dataclass
class Outputs:
    hidden: Any
    rest: Any


class Asked:
    """An output that computes when it is asked for something."""

    def __init__(self, linear, x):
        self.linear, self.x = linear, x

    def __iter__(self):
        return items(self.linear, self.x)


class Kept:
    """An output that keeps a generator."""

    def __init__(self, linear, x):
        self.items = items(linear, x)


TAKEN = {
    "generator": (items, ITEMS),
    "in a tuple": (lambda linear, x: (items(linear, x), 1), ITEMS),
    "in a set": (lambda linear, x: {items(linear, x)}, ITEMS),
    "in a mapping": (lambda linear, x: {"outputs": [items(linear, x)]}, ITEMS),
    "in a dataclass": (lambda linear, x: Outputs(linear(x), items(linear, x)), 1 + ITEMS),
    "in a generator": (lambda linear, x: (items(linear, each) for each in (x, x)), 2 * ITEMS),
    "map": (lambda linear, x: map(linear, [x] * ITEMS), ITEMS),
    "zip": (lambda linear, x: zip(items(linear, x), items(linear, x), strict=True), 2 * ITEMS),
    "a future of torch": (lambda linear, x: torch.jit.fork(linear, x), 1),
    "a function beside a tensor": (lambda linear, x: (linear(x), partial(linear, x)), 1),
}


def ran(make: Callable[..., Any], **options: Any) -> reconcile.Run:
    return reconcile.run(torch=lazy(make), inputs=(torch.ones(ROWS, WIDE),), **options)


@pytest.mark.parametrize("name", TAKEN)
def test_what_an_output_gives_is_of_the_call(name: str) -> None:
    make, count = TAKEN[name]
    found = ran(make, counters=("flop_counter", "thop"))
    assert [figure.flops for figure in found.result.verdict.figures] == [count * ITEM]
    assert {ledger.normalised_total for ledger in found.result.ledgers} == {count * ITEM}
    assert found.exit_code == 0


def test_a_future_is_waited_for() -> None:
    """Another thread computes it, which FlopCounterMode does not see."""
    (trace,) = ran(submitted, counters=("flop_counter",)).result.traces
    assert trace.totals["matmul"] == ITEM


def test_a_training_step_trains_what_a_generator_gives() -> None:
    found = ran(items, counters=("flop_counter",), pass_="training")
    assert found.result.traces[0].totals["matmul"] == 2 * ITEMS * ITEM  # forward, and the weight's gradient


@pytest.mark.parametrize(
    "make", [awaited, partial, lambda linear, x: [lambda: linear(x)], lambda linear, x: (linear(x), awaited(linear, x))]
)
@pytest.mark.filterwarnings("ignore:coroutine")
def test_what_nobody_calls_is_refused(make: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=r"^the model returns a (function|coroutine), which computes nothing"):
        ran(make, counters=("flop_counter",))


@pytest.mark.parametrize("way", ["forward", "training"])
@pytest.mark.parametrize("make", [Asked, Kept, lambda linear, x: (x * 2, Kept(linear, x))])
def test_what_an_object_would_compute_is_never_0(make: Callable[..., Any], way: str) -> None:
    with pytest.raises(
        UsageError, match=r"^the model returns a (Asked|generator in an object), which computes nothing"
    ):
        ran(make, counters=("flop_counter",), pass_=way)


def test_an_object_in_which_everything_is_computed_is_an_output() -> None:
    class Done:
        def __init__(self, linear, x):
            self.hidden = linear(x)

    assert ran(Done, counters=("flop_counter",)).result.traces[0].totals["matmul"] == ITEM


@pytest.mark.parametrize("make", [items, Kept, lambda linear, x: (linear(x), {"rest": items(linear, x)})])
def test_a_step_that_leaves_a_generator_has_no_number(make: Callable[..., Any]) -> None:
    net, x = lazy(make), torch.ones(ROWS, WIDE)
    with reconcile.count(net) as step:
        left = net(x)
    with pytest.raises(NotInResult, match="generator"):
        step.metrics()
    del left


def test_a_step_counts_what_it_takes() -> None:
    net, x = lazy(items), torch.ones(ROWS, WIDE)
    with reconcile.count(net) as step:
        sum(item.sum() for item in net(x)).backward()
    assert step.metrics()["flops"] == 2 * ITEMS * ITEM
    with reconcile.count(net) as step:
        net(x)  # nobody has it any more
        net.linear(x)
    assert step.metrics()["flops"] == ITEM
