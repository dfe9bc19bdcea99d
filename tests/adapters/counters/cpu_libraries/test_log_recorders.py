"""The log of a training step: closed forms of forward, data and weight gradients, random networks and lies about them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

import reconcile
from reconcile.adapters.counters.bridge import view
from reconcile.adapters.counters.cpu_libraries.bridge import bridge
from reconcile.core.causes import Cause
from reconcile.core.records import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from tests.adapters.counters.small_nets import Does, attend

from .test_capture import LAYERS, Net, lies
from .witnessed import LOGGED, gaps, macs, phases, threaded, trained, unwitnessed


def step(forward: int, data: int, weight: int) -> dict[str, int]:
    """Multiply-adds by phase."""
    return {p: n for p, n in ((FORWARD, forward), (INPUT_GRADIENT, data), (WEIGHT_GRADIENT, weight)) if n}


def of_layers(*layers: int) -> dict[str, int]:
    """A chain of layers of so many products: each has a weight gradient, and all but the first one of its data."""
    return step(sum(layers), sum(layers[1:]), sum(layers))


def convolutions(*kinds: Any) -> Callable[[], Any]:
    """Two convolutions of 2 x 3 x 12 x 12; ``kinds`` are arguments of ``to``."""

    def make() -> Any:
        net, given = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 4, 3)), torch.randn(2, 3, 12, 12)
        for kind in kinds:
            how = {"memory_format": kind} if isinstance(kind, torch.memory_format) else {"dtype": kind}
            net, given = net.to(**how), given.to(**how)
        return net, given

    return make


def linear(dtype: torch.dtype) -> Callable[[], Any]:
    return lambda: (nn.Linear(64, 128).to(dtype), torch.randn(8, 64).to(dtype))


TWO_CONVOLUTIONS = of_layers(2 * 12 * 12 * 16 * 3 * 9, 2 * 10 * 10 * 4 * 16 * 9)
CELL = 5 * 3 * 4 * 20 * (10 + 20)
STEPS = {
    "linear": (linear(torch.float32), of_layers(8 * 64 * 128)),
    "linear-bf16": (linear(torch.bfloat16), of_layers(8 * 64 * 128)),
    "linear-float64": (linear(torch.float64), of_layers(8 * 64 * 128)),
    "mlp": (
        lambda: (nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 5)), torch.randn(3, 6)),
        of_layers(3 * 6 * 7, 3 * 7 * 5),
    ),
    "conv": (convolutions(), TWO_CONVOLUTIONS),
    "conv-bf16": (convolutions(torch.bfloat16), TWO_CONVOLUTIONS),
    "conv-float64": (convolutions(torch.float64), TWO_CONVOLUTIONS),
    "conv-channels-last": (convolutions(torch.channels_last), TWO_CONVOLUTIONS),
    "transposed": (
        lambda: (nn.Sequential(nn.Conv2d(3, 16, 3), nn.ConvTranspose2d(16, 4, 3, stride=2)), torch.randn(2, 3, 12, 12)),
        of_layers(2 * 10 * 10 * 16 * 3 * 9, 2 * 10 * 10 * 16 * 4 * 9),
    ),
    # the kernel computes the gradients of the data, whether or not they are needed
    "lstm": (lambda: (nn.LSTM(10, 20), torch.randn(5, 3, 10)), step(CELL, CELL, CELL)),
    "lstm-both-ways": (
        lambda: (nn.LSTM(10, 20, bidirectional=True), torch.randn(5, 3, 10)),
        step(2 * CELL, 2 * CELL, 2 * CELL),
    ),
    # step by step: no gradient of the data, and none of the first state, which needs none
    "gru": (
        lambda: (nn.GRU(10, 20), torch.randn(5, 3, 10)),
        step(5 * 3 * 60 * (10 + 20), 4 * 3 * 60 * 20, 5 * 3 * 60 * (10 + 20)),
    ),
}


@pytest.mark.parametrize(("name", "threads"), [*((name, 1) for name in STEPS), ("conv", 2), ("lstm", 2)])
def test_the_log_has_the_products_of_a_step(name, threads):
    make, wanted = STEPS[name]
    with threaded(threads):
        ledger, trace = trained(*make())
    assert phases(ledger) == wanted
    assert ledger.total == sum(wanted.values()) == macs(trace.ops)
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])


def attends(**options: Any) -> nn.Module:
    """Attention of heads of 8 over a linear layer that makes queries, keys and values."""

    def run(m: Any, x: Any) -> Any:
        return attend(*(part.unflatten(-1, (2, 8)).transpose(1, 2) for part in m.given(x).chunk(3, -1)), **options)

    return Does(run, given=nn.Linear(16, 3 * 16))


def booked(ledger: Any, trace: Any) -> dict[Any, int]:
    """Multiply-adds that the log has more (+) than the trace, by cause."""
    found: dict[Any, int] = {}
    for item in bridge(view(ledger), trace).items:
        more = item.counted.mac * item.seen - item.ran.mac * item.times
        if item.cause is not None and more:
            found[item.cause] = found.get(item.cause, 0) + more
    return found


@pytest.mark.parametrize("tokens", [10, 8, 300])
def test_a_kernel_of_attention_multiplies_its_scores_again(tokens):
    """Four products of gradients, and a fifth."""
    product, made = 2 * 2 * tokens * tokens * 8, 2 * tokens * 16 * 48
    ledger, trace = trained(attends(), torch.randn(2, tokens, 16))
    assert gaps(ledger, trace) == []
    assert macs(trace.ops) == made + made + (2 + 4) * product
    assert booked(ledger, trace) == {Cause.SCORES_AGAIN: product}


def test_causal_gradients_leave_blocks_out():
    """Of each product of 700 x 700 pairs the kernel makes at least those that the mask keeps."""
    tokens = 700
    ledger, trace = trained(attends(is_causal=True), torch.randn(1, tokens, 16))
    pairs, kept = 2 * 8 * tokens * tokens, 2 * 8 * tokens * (tokens + 1) // 2
    found = booked(ledger, trace)
    assert gaps(ledger, trace) == []
    assert set(found) == {Cause.SCORES_AGAIN, Cause.BLOCKS_SKIPPED}
    assert kept < found[Cause.SCORES_AGAIN] < pairs
    assert (2 + 4) * (kept - pairs) < found[Cause.BLOCKS_SKIPPED] < 0


@pytest.mark.parametrize("tokens", [10, 40])
def test_attention_with_dropout_is_made_of_batches(tokens):
    """PyTorch makes its products one by one, two forward and four for gradients, and keeps the scores."""
    ledger, trace = trained(attends(dropout_p=0.5), torch.randn(2, tokens, 16))
    product, made = 2 * 2 * tokens * tokens * 8, 2 * tokens * 16 * 48
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])
    assert ledger.total == 2 * made + (2 + 4) * product == macs(trace.ops)


def test_gradients_of_small_batches_have_no_log():
    ledger, trace = trained(attends(dropout_p=0.5), torch.randn(2, 5, 16))
    op = "aten.scaled_dot_product_attention"
    assert gaps(ledger, trace) == []
    assert unwitnessed(ledger, trace) == [op, *[op + "_backward"] * 4]
    assert ledger.total == 2 * 2 * 5 * 16 * 48  # the linear layer, and the gradient of its weight


def test_a_training_step_is_held_to_the_log():
    """``run --pass training --witness``: the second layer alone has a gradient of its data."""
    net = nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 5))
    run = reconcile.run(torch=net, inputs=torch.ones(3, 6), counters=["cpu_libraries"], pass_="training")
    assert run.exit_code == 0
    assert run.result.ledgers[0].normalised_total == 2 * (2 * 3 * 6 * 7 + 3 * 3 * 7 * 5)
    assert "log of MKL and oneDNN" in run.cite()


@settings(max_examples=3)
@given(LAYERS, st.integers(1, 3), st.integers(0, 20))
def test_steps_are_witnessed_and_lies_are_caught(layers, batch, at):
    ledger, trace = trained(Net(layers), torch.randn(batch, 4, 9, 9))
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])
    assert ledger.total == macs(trace.ops)
    assume(ledger.total)
    for number, ops in enumerate(lies(trace.ops, at)):
        assert gaps(ledger, trace._replace(ops=ops)) != [], number


@settings(max_examples=5)
@given(
    st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.sampled_from([1, 2]), st.integers(1, 3), st.integers(1, 2),
    st.integers(0, 1), st.integers(1, 2), st.booleans(), st.sampled_from(LOGGED),
)  # fmt: skip
def test_gradients_of_a_convolution_are_those_of_its_formula(
    rank, ins, outs, groups, kernel, stride, padding, dilation, transposed, dtype
):
    """Behind a convolution of 1 x 1, so that data has a gradient: three products of as many multiply-adds."""
    conv, kind = getattr(nn, f"Conv{rank}d"), getattr(nn, f"Conv{'Transpose' if transposed else ''}{rank}d")
    last = kind(4 * ins, 4 * outs, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups)
    net = nn.Sequential(conv(3, 4 * ins, 1), last).to(dtype)
    ledger, trace = trained(net, torch.randn(2, 3, *[9, 8, 7][:rank], dtype=dtype))
    assert gaps(ledger, trace) == []
    more = booked(ledger, trace)
    if not more:
        found = phases(ledger)
        first = 2 * 3 * 4 * ins * prod([9, 8, 7][:rank])
        assert found[FORWARD] == found[WEIGHT_GRADIENT] == first + found[INPUT_GRADIENT]
        assert ledger.total == macs(trace.ops)
    assert set(more) <= {Cause.CALL_NOT_SEEN, Cause.FORMULA_DIFFERS}


def test_a_bias_that_is_multiplied_by_ones_is_named():
    """The kernel of transposed 3-D convolutions in float64 (native/NaiveConvolutionTranspose3d.cpp): one for each result."""
    net = nn.Sequential(nn.Conv3d(3, 4, 1), nn.ConvTranspose3d(4, 5, 2)).double()
    ledger, trace = trained(net, torch.randn(2, 3, 4, 5, 6).double())
    results = 2 * 5 * (5 * 6 * 7)
    assert gaps(ledger, trace) == []
    assert booked(ledger, trace) == {Cause.FORMULA_DIFFERS: results}
    assert ledger.total == macs(trace.ops) + results
