"""Gradients element by element, and losses inside of a model: formulas against loops whose values are torch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from reconcile.work import work_of
from tests.work.beside_torch import agree, data
from tests.work.counting import Num, Tally, total
from tests.work.records_by_hand import make
from tests.work.test_gradient_formulas import chosen, close

F = torch.nn.functional
A = torch.ops.aten


def log_sigmoid_slope(x, g):
    z = Num(math.exp(-abs(x.value)), g.tally)
    x.tally["cmp"] += 1
    top, sign = (1.0, 1.0) if x.value < 0 else (0.0, -1.0)
    return (top - sign * (z / (1.0 + z))) * g


def mish_slope(x, g):
    s, t = x.sigmoid(), x.special(math.exp).special(math.log1p).tanh()
    return g * (t + x * s * (1.0 - t * t))


def logit_slope(x, g):
    return chosen(2, 0.2 <= x.value <= 0.8, g / (x * (1.0 - x)), 0.0)


def shrink(x, g):
    return chosen(2, abs(x.value) > 0.5, g, 0.0)


ACTIVATIONS = {
    "log_sigmoid_backward": (log_sigmoid_slope, F.logsigmoid),
    "softshrink_backward": (shrink, F.softshrink),
    "hardshrink_backward": (shrink, F.hardshrink),
    "mish_backward": (mish_slope, F.mish),
    "logit_backward": (logit_slope, lambda x: torch.logit(x, 0.2)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    loop, function = ACTIVATIONS[name]
    x, g = data(12) * 2, data(13)[1:]
    x = np.abs(x) / 5 if "logit" in name else x
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    function(leaf).backward(torch.from_numpy(g))
    tally = Tally()
    found = np.array([loop(a, b) for a, b in zip(tally.array(x), tally.array(g), strict=True)], dtype=object)
    agree(tally, found, leaf.grad, make(f"aten.{name}", [g, x], [x]))


def test_prelu():
    x, g, w = data(3, 4), data(4, 3).T.copy(), data(4)
    expected = A._prelu_kernel_backward(*(torch.from_numpy(a) for a in (g, x, np.broadcast_to(w, (3, 4)).copy())))
    tally = Tally()
    inputs, back, slopes = tally.array(x), tally.array(g), tally.array(w)
    into, scale = np.empty(x.shape, dtype=object), np.empty(x.shape, dtype=object)
    for r, c in np.ndindex(x.shape):
        left, right = back[r, c] * slopes[c], back[r, c] * inputs[r, c]
        into[r, c] = chosen(1, x[r, c] <= 0, left, back[r, c])
        scale[r, c] = Num(0.0 if x[r, c] > 0 else right.value, tally)  # by the same comparison
    close(into, expected[0])
    agree(tally, scale, expected[1], make("aten._prelu_kernel_backward", [g, x, w], [x, x]))


def test_glu():
    x, g = data(2, 6), data(2, 3) + 1
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    F.glu(leaf).backward(torch.from_numpy(g))
    tally = Tally()
    inputs, back = tally.array(x), tally.array(g)
    found = np.empty(x.shape, dtype=object)
    for r, c in np.ndindex(g.shape):
        s = inputs[r, 3 + c].sigmoid()
        found[r, c], found[r, 3 + c] = back[r, c] * s, (1.0 - s) * s * inputs[r, c] * back[r, c]
    agree(tally, found, leaf.grad, make("aten.glu_backward", [g, x], [x], dim=-1))


@pytest.mark.parametrize("training", [True, False])
def test_random_leaky_relu(training):
    x, g = data(9), data(10)[1:]
    noise = torch.ones(9, dtype=torch.float64)
    out = A.rrelu_with_noise(torch.from_numpy(x), noise, 0.1, 0.3, training, None)
    expected = A.rrelu_with_noise_backward(*map(torch.from_numpy, (g, x)), noise, 0.1, 0.3, training, False)
    tally = Tally()
    slopes = tally.array(noise if training else np.full(9, 0.2))
    inputs = tally.array(x)
    forward = [chosen(1, a.value <= 0, a * n, a) for a, n in zip(inputs, slopes, strict=True)]
    agree(tally, np.array(forward), out, make("aten.rrelu_with_noise", [x, noise], [x], training=training))
    tally = Tally()
    pairs = zip(tally.array(x), tally.array(g), tally.array([n.value for n in slopes]), strict=True)
    found = [b * n if training else chosen(1, a.value <= 0, b * n, b) for a, b, n in pairs]
    limits = {"lower": 0.1, "upper": 0.3, "training": training}
    agree(tally, np.array(found), expected, make("aten.rrelu_with_noise_backward", [g, x, noise], [x], **limits))


def magnitude(z):
    z.tally["cmp"] += 1
    return Num(abs(z.value), z.tally)


def smooth_loss(x, y):
    z = magnitude(x - y)
    return chosen(1, z.value < 0.5, 0.5 * z * z / 0.5, z.value - 0.25)


def smooth_slope(x, y, g, norm):
    z = x - y
    return chosen(2, abs(z.value) < 0.5, norm * z * g / 0.5, math.copysign(norm, z.value) * g.value)


def huber_loss(x, y):
    z = magnitude(x - y)
    return chosen(1, z.value > 0.5, 0.5 * (z - 0.25) * 1.0, 0.5 * z.value**2)


def huber_slope(x, y, g, norm):
    z = x - y
    return chosen(2, abs(z.value) < 0.5, norm * z * g, 0.5 * math.copysign(norm, z.value) * g.value)


def cross_loss(x, y):
    left, right = (-x).special(math.log1p).max(-100.0), x.special(math.log).max(-100.0)
    return (y - 1.0) * left - y * right


def cross_slope(x, y, g, norm):
    return (
        g * (x - y) / ((1.0 - x) * x).max(1e-12) / (1 / norm) if norm != 1 else g * (x - y) / ((1.0 - x) * x).max(0.0)
    )


def margin_slope(x, y, g, norm):
    z = ((-y) * x).special(math.exp)
    return y * z * -norm / (z + 1.0) * g


LOSSES = {
    "mse_loss": (lambda x, y: (lambda z: z * z)(x - y), lambda x, y, g, n: (x - y) * (2 * n) * g, {}),
    "smooth_l1_loss": (smooth_loss, smooth_slope, {"beta": 0.5}),
    "huber_loss": (huber_loss, huber_slope, {"delta": 0.5}),
    "soft_margin_loss": (lambda x, y: ((-x) * y).special(math.exp).special(math.log1p), margin_slope, {}),
    "binary_cross_entropy": (cross_loss, cross_slope, {}),
}


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("name", LOSSES)
def test_loss(name, reduction):
    loop, slope, attrs = LOSSES[name]
    x, y = np.abs(data(7)) / 3 + 0.1, np.abs(data(8))[1:] / 3
    leaf, target = torch.from_numpy(x.copy()).requires_grad_(), torch.from_numpy(y)
    out = getattr(A, name)(leaf, target, reduction=reduction, **attrs)
    g = data(7) if reduction == 0 else data(1)[0]
    out.backward(torch.as_tensor(g))
    tally = Tally()
    each = [loop(a, b) for a, b in zip(tally.array(x), tally.array(y), strict=True)]
    found = each if reduction == 0 else total(each) if reduction == 2 else total(each) / 7.0
    op = make(f"aten.{name}", [x, y], [out], reduction=reduction, weight=None, **attrs)
    agree(tally, np.array(found, dtype=object), out.detach(), op)
    tally = Tally()
    back = tally.array(np.broadcast_to(g, (7,)))
    norm = 1 / 7 if reduction == 1 else 1
    found = [slope(a, b, c, norm) for a, b, c in zip(tally.array(x), tally.array(y), back, strict=True)]
    op = make(f"aten.{name}_backward", [out, x, y], [x], reduction=reduction, weight=None, **attrs)
    agree(tally, np.array(found, dtype=object), leaf.grad, op)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_likelihood(weighted, reduction):
    """nll_loss: R values are looked up, negated, weighted and added."""
    x, ids, w = data(4, 3), np.array([2, 0, 1, 0]), np.abs(data(3)) + 0.5
    weight = torch.from_numpy(w) if weighted else None
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    out, whole = A.nll_loss_forward(leaf, torch.from_numpy(ids), weight, reduction, -100)
    tally = Tally()
    inputs, weights, result = tally.array(x), tally.array(w), tally.zeros(())[()]
    parts = [inputs[r, c] * weights[c] if weighted else inputs[r, c] for r, c in enumerate(ids)]
    if reduction == 0:
        found = np.array([-part for part in parts], dtype=object)
    else:
        for part in parts:
            result = result - part
        if reduction == 1:
            result = result / (total([weights[c] for c in ids]) if weighted else 4.0)
        found = np.array(result, dtype=object)
    given = [x, ids, w] if weighted else [x, ids]
    attrs = {"reduction": reduction, **({} if weighted else {"weight": None})}
    agree(tally, found, out.detach(), make("aten.nll_loss_forward", given, [out, whole], **attrs))
    g = data(4) if reduction == 0 else data(1)[0]
    out.backward(torch.as_tensor(g))
    tally = Tally()
    weights, back = tally.array(w), tally.array(np.atleast_1d(g))
    ones = [-b for b in back]
    if reduction == 1:
        ones = [ones[0] / (float(whole) if weighted else 4.0)]
    found = tally.zeros((4, 3))
    for r, c in enumerate(ids):
        one = ones[r if reduction == 0 else 0]
        found[r, c] = one * weights[c] if weighted else one
    op = make("aten.nll_loss_backward", [g, *given, whole], [x], **attrs)
    agree(tally, found, leaf.grad, op)


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_of_logits(weighted):
    x, y, w = data(6), np.abs(data(6)) / 3, np.abs(data(6)) + 0.5
    pos = torch.from_numpy(w) if weighted else None
    expected = A.binary_cross_entropy_with_logits(torch.from_numpy(x), torch.from_numpy(y), None, pos, 2)
    tally = Tally()
    parts = []
    for a, b, p in zip(tally.array(x), tally.array(y), tally.array(w), strict=True):
        z = magnitude(a)
        smooth = a.min(0.0) - (-z).special(math.exp).special(math.log1p)
        parts.append((1.0 - b) * a - (smooth * ((p - 1.0) * b + 1.0) if weighted else smooth))
    given = [x, y, w] if weighted else [x, y]
    attrs = {"reduction": 2, "weight": None, **({} if weighted else {"pos_weight": None})}
    op = make("aten.binary_cross_entropy_with_logits", given, [expected], **attrs)
    agree(tally, np.array(total(parts), dtype=object), expected, op)
    assert work_of(op).special == 2 * 6
