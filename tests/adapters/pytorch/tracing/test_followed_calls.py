"""Models that take gradients, or map over a batch, through a recurrent layer or attention: closed forms, on meta and on the CPU.

G gates of H units on I inputs, T steps of B sequences.  Forward: B T G H (I + H) multiply-adds; the gradient with respect to the
data: B T G H I, and B (T - 1) G H H for the states of all steps but the first, which needs none.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from reconcile.adapters.pytorch import trace as tracing
from reconcile.adapters.pytorch.tracing.followed_calls import is_followed
from reconcile.work import work_of
from tests.adapters.counters.small_nets import Does, called
from tests.adapters.pytorch.training_models import Model, Outputs

F = nn.functional
T, B, I, H = 5, 2, 4, 4  # noqa: E741
GATES = {nn.GRU: 3, nn.RNN: 1, nn.LSTM: 4}
HEAD = T * B * H * 8
BOTH = pytest.mark.parametrize("device", ["meta", "cpu"])
KINDS = pytest.mark.parametrize("kind", [nn.RNN, pytest.param(nn.GRU, marks=pytest.mark.slow)])


def forward(kind):
    return T * B * GATES[kind] * H * (I + H)


def backward(kind, hidden=H, out=H):
    return T * B * GATES[kind] * hidden * I + (T - 1) * B * GATES[kind] * hidden * out


def followed(layer, take, head=True):
    """A layer whose gradients ``take(layer, x)`` takes, and a head after it that autograd does not reach."""
    if head:
        return Does(lambda m, x: (take(m.layer, x), m.head(x)), layer=layer, head=nn.Linear(H, 8))
    return Does(lambda m, x: take(m.layer, x), layer=layer)


def macs(device, make, *shape):
    """Multiply-adds of its inference call."""
    ops = tracing._record(Model(make, *shape), device).ops.values()
    return sum(work_of(op).mac * op.calls for op in ops)


def force(layer, x):
    """As models of energies do: the gradient, by another path too, which keeps it alive where this one is lost."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        energy = layer(x)[0].square().sum() + x.square().sum()
        return torch.autograd.grad(energy, x)[0]


@BOTH
@pytest.mark.parametrize("kind", [nn.GRU, nn.RNN])
def test_a_gradient_taken_in_the_forward_pass(kind, device):
    found = macs(device, lambda: followed(kind(I, H), force), T, B, I)
    assert found == HEAD + forward(kind) + backward(kind) == {nn.GRU: 2_144, nn.RNN: 928 + HEAD - 320}[kind]


@BOTH
def test_a_gradient_through_an_lstm(device):
    """Step by step what is needed; oneDNN's kernel, which float32 on the CPU runs, computes every gradient that there is."""
    found = macs(device, lambda: followed(nn.LSTM(I, H), force), T, B, I)
    needed, every = backward(nn.LSTM), 2 * forward(nn.LSTM)
    assert found == HEAD + forward(nn.LSTM) + (needed if device == "meta" else every)
    assert HEAD + forward(nn.LSTM) + needed == 2_752


def test_the_kernel_of_an_lstm_computes_what_nobody_needs():
    """All weights are frozen, and their gradients are there; both biases have one."""
    layer, x = nn.LSTM(I, H), torch.randn(T, B, I)
    weights = list(layer.parameters())
    expected = torch.autograd.grad(layer(x)[0].sum(), weights)
    layer.requires_grad_(False)
    with Outputs("aten::mkldnn_rnn_layer_backward") as outputs:
        layer(x.requires_grad_())[0].sum().backward()
    (found,) = outputs.found
    for mine, theirs in zip(found[1:5], expected, strict=True):
        torch.testing.assert_close(mine, theirs)
    assert found[5].shape == found[6].shape == (B, H)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@BOTH
def test_a_projected_lstm_of_two_directions(device):
    """No kernel of oneDNN's: w_hh takes P, and h comes of w_hr (P, H), of all rows."""
    wide, narrow = 4, 2
    each = T * B * 4 * wide * (I + narrow) + T * B * narrow * wide
    back = backward(nn.LSTM, wide, narrow) + T * B * narrow * wide
    make = lambda: followed(nn.LSTM(I, wide, proj_size=narrow, bidirectional=True), force, head=False)  # noqa: E731
    assert macs(device, make, T, B, I) == 2 * (each + back)


@BOTH
@KINDS
def test_a_jacobian(kind, device):
    """A backward pass for each of the outputs: here the last step's, of one sequence."""

    def jacobian(layer, x):
        with torch.enable_grad():
            return torch.autograd.functional.jacobian(lambda z: layer(z)[0].sum((0, 1)), x)

    found = macs(device, lambda: followed(kind(I, H), jacobian, head=False), T, B, I)
    assert found == forward(kind) + H * backward(kind)


@BOTH
@KINDS
@pytest.mark.parametrize("transform", ["grad", "vjp"])
def test_transforms_of_torch_func(kind, transform, device):
    def grad(layer, x):
        return torch.func.grad(lambda z: layer(z)[0].square().sum())(x)

    def vjp(layer, x):
        out, back = torch.func.vjp(lambda z: layer(z)[0], x)
        return back(out)

    take = {"grad": grad, "vjp": vjp}[transform]
    assert macs(device, lambda: followed(kind(I, H), take, head=False), T, B, I) == forward(kind) + backward(kind)
    assert forward(nn.GRU) + backward(nn.GRU) == 1_824


@BOTH
@KINDS
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated:DeprecationWarning")  # PyTorch's own
def test_tangents(kind, device):
    """Each product once more with the tangent in the place of its data, and once with that of the weight, which is zeros that
    PyTorch multiplies like any others; the first state has none."""

    def func(layer, x):
        return torch.func.jvp(lambda z: layer(z)[0], (x,), (x,))[1]

    def level(layer, x):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(layer(forward_ad.make_dual(x, x))[0]).tangent

    for take in (func, level):
        found = macs(device, lambda take=take: followed(kind(I, H), take, head=False), T, B, I)
        assert found == forward(kind) + 2 * backward(kind)


@BOTH
def test_attention_that_is_mapped_over_a_batch(device):
    """Two products of 5 x 5 positions of 4, of each of two examples."""
    mapped = torch.func.vmap(lambda q: F.scaled_dot_product_attention(q, q, q))
    assert macs(device, lambda: called(mapped), 2, 1, 5, 4) == 2 * 2 * 5 * 5 * 4 == 400


@BOTH
def test_a_gradient_through_attention(device):
    """The gradient with respect to the query: step by step g @ v^T and ds @ k; the CPU's kernel computes all three."""
    product = 2 * 3 * 5 * 5 * 4

    def gradient(q):
        with torch.enable_grad():
            query = q.detach().requires_grad_()
            return torch.autograd.grad(F.scaled_dot_product_attention(query, q, q).sum() + query.sum(), query)[0]

    assert macs(device, lambda: called(gradient), 2, 3, 5, 4) == (4 if device == "meta" else 6) * product


@BOTH
def test_without_gradients_one_op_stands_for_a_call(device):
    """Also in a model that turns gradients on where nothing needs any."""

    def detached(layer, x):
        with torch.enable_grad():
            return layer(x)[0]

    make = lambda: followed(nn.GRU(I, H).requires_grad_(False), detached)  # noqa: E731
    ops = [op for op in tracing._record(Model(make, T, B, I), device).ops.values() if work_of(op).mac]
    assert [(op.op, work_of(op).mac) for op in ops] == [("aten.gru", forward(nn.GRU)), ("aten.addmm", HEAD)]


def test_what_follows_a_call():
    x = torch.ones(2, requires_grad=True)
    assert is_followed([x])
    with torch.no_grad():
        assert not is_followed([x])
        seen = []
        torch.func.vmap(lambda a: seen.append(is_followed([a])) or a)(x.detach())
        with forward_ad.dual_level():
            seen.append(is_followed([x]))
        assert seen == [True, True]
        assert not is_followed([x])
    assert not is_followed([x.detach()])
