"""6 N on a model with weights that its step never reads: a cause where the trace shows as much, a residual where it does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import reconcile
from reconcile.core.causes import Cause
from tests.adapters.counters.small_nets import Joins

nn, functional = torch.nn, torch.nn.functional

V, H, F, SPARE, B, T = 100, 16, 40, 24, 2, 7
IDS = torch.zeros(B, T, dtype=torch.int64)
READ = 6 * B * T * (H * F + F * V)
"""What ran: both products, three times."""
UNREAD = 6 * B * T * (H * SPARE + SPARE)


class Net(nn.Module):
    """An embedding, two layers, and a third one that ``use`` may read in its own way."""

    def __init__(self, use: Any = None) -> None:
        super().__init__()
        self.table, self.up, self.down = nn.Embedding(V, H), nn.Linear(H, F), nn.Linear(F, V)
        self.spare, self.use = nn.Linear(H, SPARE), use

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        x = x if self.use is None else self.use(self, x)
        return self.down(self.up(x).relu())


def booked(model: Any) -> tuple[dict[str, int], int]:
    """What is booked by cause between 6 N and what ran in a training step, and the residual."""
    run = reconcile.run(torch=model, inputs=IDS, counters=("formula:6n",), pass_="training", isolated=False)
    (statement,) = run.result.statements
    assert statement.to_total >= READ
    return {cause: amount for cause, amount in statement.by_cause().items() if amount}, statement.residual


USUAL = {Cause.LOOKUP_AS_PRODUCT: -6 * B * T * V * H, Cause.PARAMETERS_AS_PRODUCTS: -6 * B * T * (F + V)}


def test_a_layer_that_nothing_calls_is_not_read() -> None:
    assert booked(Net()) == ({**USUAL, Cause.PARAMETERS_NOT_READ: -UNREAD}, 0)


class Same(Net):
    """The third layer is as large as the first one, whose module reads tensors of its shape."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Linear(H, F)


def test_a_layer_of_the_same_shape_is_not_read() -> None:
    assert booked(Same()) == ({**USUAL, Cause.PARAMETERS_NOT_READ: -6 * B * T * (H * F + F)}, 0)


def test_a_part_that_is_read_elsewhere_leaves_it_open() -> None:
    """H rows of the weight are read by a function, so nothing may say that no op reads the bias."""

    def part(net: Net, x: Any) -> Any:
        return functional.linear(x, net.spare.weight[:H])

    causes, residual = booked(Net(part))
    assert (Cause.PARAMETERS_NOT_READ in causes, residual) == (False, -6 * B * T * SPARE)


class Lent(Net):
    """The third layer's weight is frozen, and read by a module that does not hold it."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.spare = nn.Linear(H, rows)
        self.inner = nn.ModuleDict({"reader": Joins(lambda _, x, given: x + (given * 2).sum())})
        self.held = nn.ModuleDict({"spare": self.spare})
        del self.spare
        self.held.requires_grad_(False)

    def forward(self, ids: Any) -> Any:
        x = self.inner["reader"](self.table(ids), self.held["spare"].weight)
        return self.down(self.up(x).relu())


@pytest.mark.parametrize("rows", [SPARE, F])
def test_a_weight_that_another_module_reads_is_left_open(rows: int) -> None:
    """Of a shape of its own, or that of a weight which its own module reads."""
    causes, residual = booked(Lent(rows))
    assert (causes[Cause.PARAMETERS_NOT_READ], residual) == (-6 * B * T * rows, -6 * B * T * H * rows)


def test_attention_reads_no_weight_and_leaves_nothing_open() -> None:
    def attend(_net: Net, x: Any) -> Any:
        return functional.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])[:, 0]

    causes, residual = booked(Net(attend))
    pairs = 2 * B * T * T * H
    assert (causes[Cause.PARAMETERS_NOT_READ], causes[Cause.ATTENTION_LEFT_OUT], residual) == (-UNREAD, 6 * pairs, 0)
