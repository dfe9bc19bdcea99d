"""Gradients of interpolation, look-ups, normalised weights and bilinear forms against naive loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.work import oracle
from tests.work.beside_torch import SMALL, agree, data
from tests.work.counting import Tally, each, total
from tests.work.records_by_hand import make
from tests.work.test_gradient_formulas import FEW, close, held

nn, F, A = torch.nn, torch.nn.functional, torch.ops.aten


def axis(size, out):
    """Index -> the two places that an element is interpolated from, and their weights."""
    found = []
    for i in range(out):
        at = max((i + 0.5) * size / out - 0.5, 0.0)
        low = min(int(at), size - 1)
        found.append(((low, min(low + 1, size - 1)), (1 - (at - low), at - low)))
    return found


@pytest.mark.parametrize("mode", ["linear", "bilinear", "trilinear"])
def test_linear_interpolation(mode):
    axes = {"linear": 1, "bilinear": 2, "trilinear": 3}[mode]
    shape, out = (1, 2, *(3, 2, 2)[:axes]), (5, 4, 3)[:axes]
    leaf = torch.from_numpy(data(*shape)).requires_grad_()
    result = F.interpolate(leaf, size=out, mode=mode)
    g = data(*result.shape)
    result.backward(torch.from_numpy(g))
    tally = Tally()
    grid, spans = tally.zeros(shape), [axis(s, o) for s, o in zip(shape[2:], out, strict=True)]
    back = tally.array(g)
    for index in np.ndindex(*result.shape):
        picked = [spans[a][i] for a, i in enumerate(index[2:])]
        for corner in itertools.product((0, 1), repeat=axes):
            part = back[index]
            for (_, weights), side in zip(picked, corner, strict=True):
                part = part * weights[side]
            place = (*index[:2], *(places[side] for (places, _), side in zip(picked, corner, strict=True)))
            grid[place] = grid[place] + part
    agree(tally, grid, leaf.grad, make(f"aten.upsample_{mode}{axes}d_backward", [g], [leaf]))


def cubic(t, a=-0.75):
    near, far = (lambda x: ((a + 2) * x - (a + 3)) * x * x + 1), (lambda x: ((a * x - 5 * a) * x + 8 * a) * x - 4 * a)
    return far(t + 1), near(t), near(1 - t), far(2 - t)


def test_cubic_interpolation():
    leaf = torch.from_numpy(data(1, 1, 4, 3)).requires_grad_()
    result = F.interpolate(leaf, size=(5, 4), mode="bicubic")
    g = data(*result.shape)
    result.backward(torch.from_numpy(g))
    tally = Tally()
    grid, back = tally.zeros((4, 3)), tally.array(g[0, 0])
    for i, j in np.ndindex(5, 4):
        (y, wy), (x, wx) = (
            (np.floor(at), cubic(at - np.floor(at))) for at in ((i + 0.5) * 0.8 - 0.5, (j + 0.5) * 0.75 - 0.5)
        )
        for a, b in np.ndindex(4, 4):
            place = (min(max(int(y) - 1 + a, 0), 3), min(max(int(x) - 1 + b, 0), 2))
            grid[place] = grid[place] + back[i, j] * wy[a] * wx[b]
    agree(tally, grid, leaf.grad[0, 0], make("aten.upsample_bicubic2d_backward", [g], [leaf]))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags_of_words(mode):
    """Three bags of 2, 1 and 3 words."""
    words, ids, offsets, wide = data(5, 2), np.array([1, 4, 1, 0, 2, 4]), np.array([0, 2, 3]), 2
    bags = [ids[0:2], ids[2:3], ids[3:6]]
    leaf = torch.from_numpy(words.copy()).requires_grad_()
    out = A._embedding_bag(leaf, torch.from_numpy(ids), torch.from_numpy(offsets), False, mode)
    g = data(3, wide)
    out[0].backward(torch.from_numpy(g))
    tally = Tally()
    table = tally.array(words)
    top = lambda column: max(column, key=lambda n: n.value)  # noqa: E731
    result = np.empty((3, wide), dtype=object)
    for b, d in np.ndindex(3, wide):
        column = [table[i, d] for i in bags[b]]
        if mode == 2:
            tally["cmp"] += len(column) - 1
            result[b, d] = top(column)
        else:
            result[b, d] = total(column) / float(len(column)) if mode else total(column)
    attrs = {"mode": mode, "per_sample_weights": None, "scale_grad_by_freq": False}
    agree(tally, result, out[0].detach(), make("aten._embedding_bag", [words, ids, offsets], out, **attrs))
    tally = Tally()
    grid, back = tally.zeros(words.shape), tally.array(g)
    for b, bag in enumerate(bags):
        for i in bag:
            if mode == 2:
                for d in range(wide):
                    if i == max(bag, key=lambda j: words[j, d]):
                        grid[i, d] = grid[i, d] + back[b, d]
            else:
                share = tally.array(1.0)[()] / float(len(bag)) if mode else None
                for d in range(wide):
                    grid[i, d] = grid[i, d] + (back[b, d] * share if mode else back[b, d])
    op = make("aten._embedding_bag_backward", [g, ids, offsets], [words], **attrs)
    agree(tally, grid, leaf.grad, op)


@FEW
@given(rows=SMALL, n=SMALL)
def test_weight_norm(rows, n):
    v, scale, g = data(rows, n), data(rows, 1) + 2, data(n, rows).T.copy()
    leaves = [torch.from_numpy(a.copy()).requires_grad_() for a in (v, scale)]
    A._weight_norm_interface(*leaves, 0)[0].backward(torch.from_numpy(g))
    tally = Tally()
    vs, gs, back = tally.array(v), tally.array(scale), tally.array(g)
    norms = tally.array(np.sqrt((v * v).sum(1)))
    into, of_scale = np.empty(v.shape, dtype=object), np.empty(rows, dtype=object)
    for r in range(rows):
        whole = total([a * b for a, b in zip(back[r], vs[r], strict=True)])
        of_scale[r] = whole / norms[r]
        first = gs[r, 0] / norms[r]
        second = first * of_scale[r] / norms[r]
        into[r] = [first * b - second * a for a, b in zip(vs[r], back[r], strict=True)]
    close(of_scale, leaves[1].grad[:, 0])
    op = make("aten._weight_norm_interface_backward", [g, v, scale, scale], [v, scale], dim=0)
    agree(tally, into, leaves[0].grad, op)


@FEW
@given(rows=SMALL, n=SMALL, affine=st.booleans(), mask=st.tuples(st.booleans(), st.booleans()).filter(any))
def test_rms_norm(rows, n, affine, mask):
    x, g, w = data(rows, n), data(n, rows).T.copy(), data(n) + 2
    leaf, weight = torch.from_numpy(x.copy()).requires_grad_(), torch.from_numpy(w.copy()).requires_grad_()
    F.rms_norm(leaf, (n,), weight if affine else None, 1e-5).backward(torch.from_numpy(g))
    tally = Tally()
    scale, back, inputs = tally.array(1 / np.sqrt((x * x).mean(1) + 1e-5)), tally.array(g), tally.array(x)
    hat = each(lambda a, b: a * b, inputs, np.repeat(scale[:, None], n, 1)) if mask[0] or (mask[1] and affine) else None
    if mask[0]:
        weights = np.broadcast_to(tally.array(w), x.shape)
        a = each(lambda p, q: p * q, back, weights) if affine else back
        rows_ = []
        for r in range(rows):
            mean = total([p * q for p, q in zip(a[r], hat[r], strict=True)]) / float(n)
            rows_.append([(p - q * mean) * scale[r] for p, q in zip(a[r], hat[r], strict=True)])
        close(rows_, leaf.grad)
    if mask[1] and affine:
        products = each(lambda p, q: p * q, back, hat)
        close([total(column) for column in products.T], weight.grad)
    attrs = {} if affine else {"weight": None}
    op = make("aten._fused_rms_norm_backward", [g, x], [], normalized_shape=[n], output_mask=list(mask), **attrs)
    held(op, mask, tally)


@pytest.mark.parametrize("missing", range(4))
def test_bilinear_forms(missing):
    """x1^T W x2 and its three gradients, as PyTorch asks for them."""
    rows, o, i, j = 2, 3, 4, 2
    whole = {"b": rows, "o": o, "i": i, "j": j}
    lacks = {"out": [2, 3], "x1": [1, 3], "w": [0], "x2": [1, 2]}
    order = {0: ["x1", "w", "x2"], 1: ["out", "w", "x2"], 2: ["x1", "out", "x2"], 3: ["x1", "w", "out"]}[missing]
    summed = [lacks["out"], lacks["x1"], lacks["w"], lacks["x2"]][missing]
    labels = ["".join(name for d, name in enumerate("boij") if d not in lacks[k]) for k in order]
    tensors = [data(*(whole[name] for name in label)) for label in labels]
    expand = [lacks[k] for k in order]
    expected = A._trilinear(*map(torch.from_numpy, tensors), *expand, summed, 1)
    tally = Tally()
    first, second, third = (tally.array(t) for t in tensors)
    gone = {"boij"[d] for d in summed}
    result = tally.zeros(tuple(s for name, s in whole.items() if name not in gone))
    take = lambda array, label, k: np.take(array, k, label.index("o")) if "o" in label else array  # noqa: E731
    short = [label.replace("o", "") for label in labels]
    both = "".join(n for n in "bij" if n in short[0] + short[1] and (n in short[2] or n not in gone))
    out = "".join(n for n in "bij" if n not in gone)
    for k in range(o):
        parts = [take(a, label, k) for a, label in zip((first, second, third), labels, strict=True)]
        half = oracle.einsum(tally, f"{short[0]},{short[1]}->{both}", parts[0], parts[1])
        part = oracle.einsum(tally, f"{both},{short[2]}->{out}", half, parts[2])
        if "o" in gone:
            result = each(lambda a, b: a + b, result, part)
        else:
            at = (slice(None),) * [n for n in "boij" if n not in gone].index("o") + (k,)
            result[at] = each(lambda a, b: a + b, result[at], part)
    names = {f"expand{index + 1}": list(lost) for index, lost in enumerate(expand)}
    agree(tally, result, expected, make("aten._trilinear", tensors, [], **names, sumdim=list(summed), unroll_dim=1))
