"""Checkpoints in a training step: what is computed again has a phase of its own, and flop_counter is explained."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import reconcile
from reconcile.core.records import FORWARD, INPUT_GRADIENT, RECOMPUTATION, WEIGHT_GRADIENT
from tests.adapters.by_phase import macs
from tests.adapters.pytorch.training_models import Model, Recurrent, Saved, explained, ran

SLOW = ((nn.GRU, True), (nn.LSTM, False), (nn.LSTM, True))
F, I, W = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E741


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_shows_its_recomputation(reentrant):
    class Kept(Saved):
        def forward(self, x):
            return checkpoint(self.inner, self.outer(x), use_reentrant=reentrant)

    ops = ran(Kept, 5, 4)
    found = macs(ops)
    assert found["inner.0", RECOMPUTATION] == found["inner.0", F] == found["inner.0", I] == 5 * 24
    assert found["inner.0", W] == found["inner.2", W] == found["inner.2", I] == 5 * 24
    assert found["outer", W] == 5 * 16
    assert ("outer", RECOMPUTATION) not in found
    assert ("outer", I) not in found
    # what use_reentrant=False stops before is not computed again: the last product's result
    assert (("inner.2", RECOMPUTATION) in found) == reentrant
    assert {phase for _, phase in found} == {F, I, W, RECOMPUTATION}
    assert explained(Model(Kept, 5, 4)) == set()
    assert explained(Model(Kept, 5, 4, device="cpu")) == set()


@pytest.mark.parametrize("reentrant", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_checkpoints_in_checkpoints_and_around_no_module(reentrant):
    class Twice(Saved):
        def part(self, x):
            return nn.functional.scaled_dot_product_attention(self.outer(x), x, x) @ x.T

        def forward(self, x):
            def all_(x):
                return self.inner(checkpoint(self.part, x, use_reentrant=reentrant) @ x)

            return checkpoint(all_, self.outer(x), use_reentrant=reentrant).square()

    found = macs(ran(Twice, 5, 4))
    again = {layer: count for (layer, phase), count in found.items() if phase == RECOMPUTATION}
    square = 5 * 5 * 4  # attention's two products, @ x.T, @ x; then outer and inner's
    # the outer checkpoint computes all of it again, the inner one its own once more; without reentrance each stops
    # before its last product
    whole = {True: (3 + 1 + 3) * square + 2 * 80 + 2 * 120, False: (3 + 1 + 2) * square + 2 * 80 + 120}
    assert sum(again.values()) == whole[reentrant]
    assert again["outer"] == 2 * 80
    assert not [key for key in found if key[0] == "(loss)"]
    assert found["outer", W] == 2 * 80
    assert explained(Model(Twice, 5, 4)) == set()


@pytest.mark.parametrize(
    ("kind", "reentrant"),
    [(nn.GRU, False), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_a_recurrent_layer_in_a_checkpoint(kind, reentrant):
    class Steps(Recurrent):
        def forward(self, x):
            return self.after(checkpoint(lambda y: self.steps(y)[0], self.before(x), use_reentrant=reentrant))

    ops = ran(lambda: Steps(kind), 3, 2, 4)
    found = macs(ops)
    assert found["steps", RECOMPUTATION] == found["steps", F]
    assert found["steps", W] == found["steps", F]
    assert found["before", W] == 3 * 2 * 16
    assert explained(Model(lambda: Steps(kind), 3, 2, 4)) == set()


class Block(nn.Module):
    """A checkpoint of a method that ends with a layer, around products of the block's own."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.first, self.last = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

    def part(self, x):
        y = self.first(x).sigmoid()
        return self.last((y @ y.T).sigmoid() @ x)

    def forward(self, x):
        return checkpoint(self.part, x, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_what_is_computed_again_keeps_its_first_layer(reentrant, own):
    def net():
        return nn.Sequential(nn.Linear(4, 4), Block(reentrant), Block(reentrant))

    found: dict[tuple[str, str], int] = {}
    if own:
        module = net()
        with reconcile.count(module) as flops:
            module(torch.ones(3, 4)).square().sum().backward()
        (trace,) = flops.result.traces
        for row in trace.rows:
            found[row.layer, row.phase] = found.get((row.layer, row.phase), 0) + row.work.mac
    else:
        found = macs(ran(net, 3, 4))
    again = {layer: count for (layer, phase), count in found.items() if phase == RECOMPUTATION and count}
    last = {f"{n}.last": 3 * 16 for n in (1, 2) if reentrant}  # use_reentrant=False stops before
    assert again == {f"{n}.first": 3 * 16 for n in (1, 2)} | {str(n): 2 * 3 * 3 * 4 for n in (1, 2)} | last
