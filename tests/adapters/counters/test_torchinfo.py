"""torchinfo beside what ran: its total by hand, its known errors with their causes, and the models that it cannot count."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import reconcile
from reconcile.core.causes import Cause, State
from tests.adapters.counters.in_environment import explained
from tests.adapters.counters.small_nets import Does

torchinfo = pytest.importorskip("torchinfo")

nn = torch.nn

H = 3
GRU = 3 * H * (4 + H)
"""Products of one step of a GRU of 4 inputs."""


def own(name: str) -> Any:
    """A module of its own with a parameter of this name."""
    return Does(lambda m, x: x @ getattr(m, name), **{name: nn.Parameter(torch.ones(3, 4))})


def twice() -> Any:
    """One layer called twice, and known under two names."""
    layer = nn.Linear(3, 3, bias=False)
    return Does(lambda m, x: m.second(m.first(x)), first=layer, second=layer)


def attention() -> Any:
    """Attention to itself."""
    inner = nn.MultiheadAttention(4, 1, bias=False, batch_first=True)
    return Does(lambda m, x: m.inner(x, x, x, need_weights=False)[0], inner=inner)


NETS = {
    # name: module, shape of the input, torchinfo's total, what the convention matmul adds by cause, in FLOPs
    "Linear": (lambda: nn.Linear(3, 4, bias=False), (2, 3), 24, {}),
    "Linear with a bias": (lambda: nn.Linear(3, 4), (2, 3), 24 + 8, {Cause.OUTSIDE_CONVENTION: -2 * 8}),
    # It drops the 5 steps: 2 of 10 rows are counted.
    "steps": (lambda: nn.Linear(3, 4, bias=False), (2, 5, 3), 24, {Cause.FORMULA_DIFFERS: 2 * (5 * 24 - 24)}),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 2, bias=False), (2, 3, 8), 2 * 7 * 24, {}),
    "Conv2d in groups": (lambda: nn.Conv2d(4, 6, 3, groups=2, bias=False), (1, 4, 6, 6), 16 * 6 * 2 * 9, {}),
    # The output of a transposed convolution has 8 positions, and its 4 inputs meet 24 weights each.
    "transposed": (
        lambda: nn.ConvTranspose1d(3, 4, 2, stride=2, bias=False),
        (2, 3, 4),
        2 * 8 * 24,
        {Cause.FORMULA_DIFFERS: 2 * (2 * 4 * 24 - 2 * 8 * 24)},
    ),
    "Conv1d without a batch": (
        lambda: nn.Conv1d(3, 4, 2, bias=False),
        (3, 8),
        4 * 24,
        {Cause.FORMULA_DIFFERS: 2 * (7 * 24 - 4 * 24)},
    ),
    "GRU": (lambda: nn.GRU(4, H, bias=False), (5, 2, 4), 10 * GRU, {}),
    "bidirectional": (lambda: nn.GRU(4, H, bias=False, bidirectional=True), (5, 2, 4), 2 * 10 * GRU, {}),
    # Its output is (2, H): H is taken for the batch.
    "GRUCell": (
        lambda: nn.GRUCell(4, H, bias=False),
        (2, 4),
        2 * H * GRU,
        {Cause.FORMULA_DIFFERS: 2 * (2 - 2 * H) * GRU},
    ),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), (2, 3, 5, 5), 2 * 6, {Cause.OUTSIDE_CONVENTION: -2 * 12}),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5), 2 * 8, {Cause.OUTSIDE_CONVENTION: -2 * 16}),
    "own weight": (lambda: own("weight"), (2, 3), 2 * 12, {}),
    "own name": (lambda: own("table"), (2, 3), 0, {Cause.OP_NOT_COUNTED: 2 * 24}),
    "called twice": (twice, (2, 3), 2 * 2 * 9, {}),
    # Four products of 5 x 4 with 4 x 4 for each of 2 sequences, then scores and values: nn.MultiheadAttention has a child.
    "attention": (attention, (2, 5, 4), 0, {Cause.CALL_NOT_SEEN: 2 * 2 * (4 * 5 * 16 + 2 * 5 * 5 * 4)}),
    # A mask that leaves 3 of 12 weights: the products still run on all, and a hook multiplies each weight by the mask.
    "pruned": (lambda: pruned(nn.Linear(3, 4, bias=False)), (2, 3), 2 * 3, {Cause.FORMULA_DIFFERS: 2 * (24 - 6)}),
    # weight_g (4) and weight_v (12) are no "weight": the first two dimensions of the output, (2, 4), times each.
    "weight norm": (
        lambda: normed(nn.Linear(3, 4, bias=False)), (2, 3), 2 * 4 * (4 + 12), {Cause.FORMULA_DIFFERS: 2 * (24 - 8 * 16)},
    ),
    # A module whose only child is empty counts as one without children: any() asks the child for its length.
    "empty child": (lambda: with_child(nn.Sequential()), (2, 3), 24, {}),
    # A hook of before PyTorch 2.0 sees no input that is given by its name; torchinfo reads outputs alone.
    "called by name": (lambda: Does(lambda m, x: m.a(input=x), a=nn.Linear(3, 4, bias=False)), (2, 3), 24, {}),
    "child": (lambda: with_child(nn.Identity()), (2, 3), 0, {Cause.CALL_NOT_SEEN: 2 * 24}),
}  # fmt: skip


def pruned(layer: Any) -> Any:
    """The layer with a mask on 9 of its weights."""
    from torch.nn.utils import prune

    with torch.no_grad():  # or the layer cannot be copied
        return prune.l1_unstructured(layer, "weight", amount=9)


def normed(layer: Any) -> Any:
    """The layer with a weight that a hook makes of a direction and a size."""
    with torch.no_grad(), pytest.warns(FutureWarning, match="weight_norm"):
        return nn.utils.weight_norm(layer)


def with_child(child: Any) -> Any:
    """A linear layer that holds another module, which it does not call."""
    layer = nn.Linear(3, 4, bias=False)
    layer.child = child
    return layer


@pytest.mark.parametrize("name", NETS)
def test_its_total_is_closed_and_the_tool_finds_the_cause(name: str) -> None:
    make, shape, total, causes = NETS[name]
    assert torchinfo.summary(make(), input_data=torch.ones(shape), verbose=0).total_mult_adds == total
    assert explained("torchinfo", make(), torch.ones(shape)) == (total, causes)


@pytest.mark.parametrize("convention", ["all", "textbook"])
def test_counted_norms_are_explained_under_every_convention(convention: str) -> None:
    net = nn.Sequential(nn.Conv1d(4, 4, 3), nn.GroupNorm(2, 4), nn.BatchNorm1d(4), nn.PReLU())
    explained("torchinfo", net, torch.ones(2, 4, 9), convention)


def test_a_model_that_its_own_code_stops_on_is_not_comparable() -> None:
    scalar = Does(lambda m, x: (x * m.weight).sum(), weight=nn.Parameter(torch.ones(3)))  # its output has no dimension
    run = reconcile.run(torch=scalar, inputs=torch.ones(2, 3), counters=("torchinfo", "flop_counter"))
    ledger = next(x for x in run.result.ledgers if x.counter == "torchinfo")
    assert ledger.state is State.NOT_COMPARABLE
    assert (
        "its own code stops on this model, which runs without it (IndexError: list index out of range)" in ledger.reason
    )


def test_an_error_of_the_model_stays_one_of_the_model() -> None:
    """The error that the model raises is shown, not torchinfo's around it."""
    from reconcile.adapters.counters.torchinfo import capture

    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        capture.run_torchinfo(nn.Linear(3, 4), [torch.ones(2, 5)])
