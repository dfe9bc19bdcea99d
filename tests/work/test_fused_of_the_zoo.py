"""Every fused call that the zoo's bricks make is its parts: traced as one op, and op by op in double precision.

In double precision no library takes a whole recurrent layer over, and without the fast path and the fused kernels
attention runs product by product; what is compared is the whole branch, component by component.
"""

from __future__ import annotations

import pytest
import torch

from reconcile.adapters.pytorch import trace as trace_torch
from reconcile.adapters.pytorch.model import TorchModel
from reconcile.model_zoo.bricks.net import branches, pair
from reconcile.model_zoo.pair import Pair, Params
from reconcile.work import ZERO, work_of
from tests.work.held import HELD, fused
from tests.work.torch_records import record
from tests.zoo.family_forms import BRICKS

SOME = ("gru_stacked_both_ways", "lstm", "rnn_relu", "grouped_query", "dot_product_causal")
"""A brick of each kind of fused call; `make slow` runs all."""


def model(name, batch=2):
    parts = pair(name, branches([BRICKS[name]]))
    made = Pair(name)
    made.inputs, made.build_torch = parts.inputs, parts.build_torch
    return TorchModel(made, Params({"batch": batch}))


def traced(name):
    return trace_torch.trace(model(name)).ops


def dispatched(name):
    """What the CPU runs in single precision: with libraries, the fast path and fused attention."""
    held = model(name)
    return record(held.build("cpu"), *held.example("cpu"))


def parts(name):
    """The branch in double precision, without libraries, fast path and fused attention."""
    held = model(name)
    module = held.build("cpu").double()
    example = [x.double() if x.is_floating_point() else x for x in held.example("cpu")]
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return record(module, *example)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def total(ops):
    return sum((work_of(op) * op.calls for op in ops), ZERO)


@pytest.mark.filterwarnings("ignore:Using padding='same'")  # torch says so once, to the first test that meets it
@pytest.mark.parametrize(
    "name", [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in BRICKS]
)
def test_the_trace_of_a_brick_is_the_sum_of_its_parts(name):
    assert total(traced(name)) == total(parts(name))


@pytest.mark.slow
def test_every_fused_op_of_the_bricks_is_held_somewhere():
    found = set()
    for name in BRICKS:
        found |= fused(traced(name)) | fused(dispatched(name))
    assert found == HELD


def test_multi_head_fast_path_without_weights():
    """The fast path scales the query alone and has no guard against rows that are all masked; the parts do both."""
    batch, heads, (steps, width) = 2, 2, BRICKS["multi_head"].shape
    fast = dispatched("multi_head")
    assert [op.op for op in fast] == ["aten._native_multi_head_attention"]
    fewer = total(parts("multi_head")) - total(fast)
    assert (fewer.mul, fewer.cmp) == (batch * steps * width, batch * heads * steps * steps)
    assert (fewer.mac, fewer.accumulators, fewer.add, fewer.div, fewer.special) == (0, 0, 0, 0, 0)
