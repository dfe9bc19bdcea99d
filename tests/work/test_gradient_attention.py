"""Gradients of attention: what autograd dispatches, and which part belongs to which phase."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reconcile.adapters.pytorch import training
from reconcile.core.causes import Cause
from reconcile.core.records import INPUT_GRADIENT, WEIGHT_GRADIENT
from reconcile.work import ZERO, work_of
from tests.adapters.counters.small_nets import Does
from tests.adapters.pytorch.training_models import Model, Outputs, explained, traced
from tests.work.beside_torch import SMALL
from tests.work.records_by_hand import make
from tests.work.test_gradient_formulas import FEW
from tests.work.torch_records import Recorder

nn, F, A = torch.nn, torch.nn.functional, torch.ops.aten


class Attention(nn.Module):
    """Parameters for whatever is to need a gradient."""

    def __init__(self, shapes, needs, **options):
        super().__init__()
        self.options = options
        self.given = nn.ParameterList(
            nn.Parameter(torch.zeros(s), requires_grad=n) for s, n in zip(shapes, needs, strict=True)
        )

    def forward(self, x):
        return F.scaled_dot_product_attention(*(p * x for p in self.given), **self.options)


@FEW
@given(
    sizes=st.tuples(SMALL, SMALL, SMALL, SMALL, SMALL),
    repeated=SMALL,
    needs=st.tuples(*[st.booleans()] * 4).filter(any),
    dropout=st.booleans(),
)
def test_attention_is_what_autograd_dispatches(sizes, repeated, needs, dropout):
    """The math path, op by op."""
    heads, sq, sk, d, dv = sizes
    shapes = [(2, heads * repeated, sq, d), (2, heads, sk, d), (2, heads, sk, dv), (sq, sk)]
    options = {"dropout_p": 0.5 * dropout, "enable_gqa": repeated > 1}
    tensors = [torch.randn(s, dtype=torch.float64, requires_grad=n) for s, n in zip(shapes, needs, strict=True)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = F.scaled_dot_product_attention(*tensors, **options)
    with Recorder() as recorder:
        out.backward(torch.ones_like(out))
    expected = sum((work_of(op) for op in recorder.ops), ZERO)
    attrs = {"dropout_p": options["dropout_p"], "needs": list(needs)}
    op = make("aten.scaled_dot_product_attention_backward", shapes, [], **attrs)
    assert work_of(op) == expected
    parts = ("scores", "value", "query", "key", "mask")
    assert sum((work_of(op._replace(attrs={**attrs, "part": part})) for part in parts), ZERO) == expected


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_attention_in_a_step(device):
    """Whatever kernel runs; on the CPU flop_counter does not know the one that does, either way."""
    shapes = [(2, 6, 5, 4), (2, 2, 3, 4), (2, 2, 3, 4)]
    model = Model(lambda: Attention(shapes, [True] * 3, enable_gqa=True), device=device)
    assert explained(model) == ({Cause.OP_NOT_COUNTED} if device == "cpu" else set())
    phases: dict[str, dict[str, int]] = {}
    for op in training.trace(model).ops:
        if "attention" in op.op and op.op.endswith("_backward"):
            phases.setdefault(op.phase, {})[op.attrs["part"]] = work_of(op).mac
    product = 2 * 6 * 5 * 3 * 4
    assert phases == {INPUT_GRADIENT: dict.fromkeys(("scores", "query", "key", "value"), product)}


def learned(*heads):
    """Learned queries, as a Perceiver has them."""
    held = {"queries": nn.Parameter(torch.zeros(1, *heads, 7, 4)), "keys": nn.Linear(4, 4)}
    return Does(lambda m, x: F.scaled_dot_product_attention(m.queries * 2, m.keys(x), x), **held)


def test_what_came_from_parameters_alone_is_a_weights_gradient():
    """The queries' gradient is one of weights, the keys' is not."""
    ops = training.trace(Model(learned, 1, 3, 4)).ops
    found = {op.attrs["part"]: op.phase for op in ops if op.op.endswith("attention_backward")}
    assert found == {"scores": INPUT_GRADIENT, "query": WEIGHT_GRADIENT, "key": INPUT_GRADIENT}


PRODUCT = 2 * 6 * 5 * 3 * 4
"""Multiply-adds of each of the six products of attention on SHAPES: the two of the forward pass first."""
SHAPES = [(2, 6, 5, 4), (2, 6, 3, 4), (2, 6, 3, 4), (5, 3)]
LORA, WHOLE = (True, False, True), (True, True, True)
"""Which of query, key and value need a gradient."""


def list_frozen(*fast):
    """Every choice of what needs a gradient; all but these are for `make slow`."""
    choices = filter(any, itertools.product([False, True], repeat=3))
    return [needs if needs in fast else pytest.param(needs, marks=pytest.mark.slow) for needs in choices]


def parts(model):
    """Part or name of each product of the backward pass -> its multiply-adds, and what flop_counter's step is explained by."""
    ops = [op for op in traced(model).ops if op.phase in (INPUT_GRADIENT, WEIGHT_GRADIENT)]
    found = [work_of(op).mac * op.calls for op in ops]
    return sum(found), explained(model)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("needs", list_frozen(LORA, WHOLE))
def test_the_kernel_of_the_cpu_computes_every_gradient(needs, causal):
    """As under every LoRA: whichever of query, key and value is frozen.  On meta flop_counter meets those that are needed."""
    make = lambda: Attention(SHAPES[:3], needs, is_causal=causal)  # noqa: E731
    assert parts(Model(make, device="cpu")) == (4 * PRODUCT, {Cause.OP_NOT_COUNTED})
    assert parts(Model(make)) == (4 * PRODUCT, set() if all(needs) else {Cause.CALL_NOT_SEEN})


def test_what_the_cpu_computes_of_a_frozen_value_is_its_gradient():
    with Outputs("aten::_scaled_dot_product_flash_attention_for_cpu_backward") as outputs:
        q, k, v = (torch.randn(shape) for shape in SHAPES[:3])
        F.scaled_dot_product_attention(q.requires_grad_(), k, v).sum().backward()
    expected = [t.requires_grad_() for t in (q.detach(), k, v)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        found = torch.autograd.grad(F.scaled_dot_product_attention(*expected).sum(), expected)
    for mine, theirs in zip(outputs.found[0], found, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("why", ["dropout", "a mask that needs a gradient", "a choice of the model's"])
@pytest.mark.parametrize("needs", list_frozen(LORA))
def test_plain_products_make_what_is_needed(needs, why):
    """Where no kernel runs (the math path), a part of the gradient that is not needed is not computed."""

    class Plain(Attention):
        def forward(self, x):
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                return super().forward(x)

    options = {"dropout_p": 0.5} if why == "dropout" else {}
    masked = why.startswith("a mask")
    kind = Plain if why.startswith("a choice") else Attention
    make = lambda: kind(SHAPES if masked else SHAPES[:3], [*needs, True] if masked else needs, **options)  # noqa: E731
    query, key, value = needs
    scores = query or key or masked
    for device in ("cpu", "meta"):
        assert parts(Model(make, device=device)) == ((scores + query + key + value) * PRODUCT, set())


def test_plain_products_on_the_cpu_have_values_and_stay_causal():
    """A hook sees the gradient of a step; the trace says what a causal mask discards, whatever the dropout."""

    class Dropped(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(4, 12)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            return F.scaled_dot_product_attention(q, q, v * k, is_causal=True, dropout_p=0.5)

    def make(seen):
        torch.manual_seed(1)
        net = Dropped()
        net.qkv.weight.register_hook(seen.append)
        torch.manual_seed(0)  # as before every recorded call
        return net

    mine, theirs = [], []
    make(theirs)(x := torch.ones(2, 3, 5, 4)).square().mean().backward()
    model = Model(lambda: make(mine), *x.shape, device="cpu")
    model.build = lambda device: model.make()
    ops = [op for op in training.record(model, "cpu").ops.values() if "scaled_dot_product_attention" in op.op]
    torch.testing.assert_close(mine[:1], theirs)  # the second is of the call with other values
    pairs, away = 2 * 3 * 5 * 5 * 4, 2 * 3 * 10 * 4
    assert {op.attrs.get("part", "forward"): (work_of(op).mac, work_of(op).masked) for op in ops} == {
        "forward": (2 * pairs, 2 * away),
        **dict.fromkeys(("scores", "value", "query", "key"), (pairs, away)),
    }


def test_phases_of_the_kernel_of_the_cpu():
    """The gradient of learned queries is one of weights; the keys' is not, nor is the data's, which is not needed."""
    ops = traced(Model(lambda: learned(2), 1, 2, 3, 4, device="cpu")).ops
    found = {
        op.attrs["part"]: (op.phase, work_of(op).mac) for op in ops if op.op.endswith("attention_for_cpu_backward")
    }
    product = 2 * 7 * 3 * 4
    assert found == {
        "scores": (INPUT_GRADIENT, product),
        "query": (WEIGHT_GRADIENT, product),
        "key": (INPUT_GRADIENT, product),
        "value": (INPUT_GRADIENT, product),
    }


@pytest.mark.parametrize("kernel", ["flash", "efficient", "cudnn"])
def test_a_kernel_that_computes_the_scores_again(kernel):
    """flop_counter counts five products of a fused kernel's gradient; four are the gradient, one is the kernel's own."""
    from reconcile.adapters.counters.flop_counter.rules import BOOK

    shapes = [(2, 6, 5, 8), (2, 6, 5, 4), (2, 2, 3, 4), (2, 2, 3, 8)]  # g, query, key, value
    op = make(f"aten._scaled_dot_product_{kernel}_attention_backward", shapes, [], dropout_p=0.0)
    rule = BOOK.find(op.op, {"torch": "2.13.0"})
    from torch.utils.flop_counter import sdpa_backward_flop_count

    assert 2 * rule.compute(op).mac == sdpa_backward_flop_count(*shapes)
    scores = 2 * 6 * 5 * 3
    assert work_of(op).mac == scores * (2 * 4 + 2 * 8)
    assert rule.compute(op).mac - work_of(op).mac == scores * 4
