"""Naive loops over numbers that count (see ``counting``): what a formula must agree with, component by component."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tests.work.counting import Accumulator, Num, Tally, dot, each, largest, square, total


def dense(tally: Tally, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """x (R, K), weight (N, K), bias (N,) -> (R, N)."""
    result = np.empty((len(x), len(weight)), dtype=object)
    for r, n in np.ndindex(result.shape):
        result[r, n] = dot(tally, x[r], weight[n])
        if bias is not None:
            result[r, n] = result[r, n] + bias[n]
    return result


def conv(tally, x, weight, bias, stride, padding, dilation, groups):
    """x (B, C, *in), weight (O, C/g, *k): per output element one dot product with the padded window."""
    axes = x.ndim - 2
    padded = tally.zeros((*x.shape[:2], *(s + 2 * p for s, p in zip(x.shape[2:], padding, strict=True))))
    padded[(slice(None), slice(None), *(slice(p, p + s) for s, p in zip(x.shape[2:], padding, strict=True)))] = x
    kernel = weight.shape[2:]
    out = tuple((padded.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(axes))
    result = np.empty((len(x), len(weight), *out), dtype=object)
    per_group, in_group = len(weight) // groups, x.shape[1] // groups
    for index in np.ndindex(result.shape):
        b, o, at = index[0], index[1], index[2:]
        accumulator = Accumulator(tally)
        for c in range(in_group):
            for tap in itertools.product(*map(range, kernel)):
                where = tuple(at[i] * stride[i] + tap[i] * dilation[i] for i in range(axes))
                accumulator.mac(padded[(b, o // per_group * in_group + c, *where)], weight[(o, c, *tap)])
        result[index] = accumulator.num() if bias is None else accumulator.num() + bias[o]
    return result


def conv_transposed(tally, x, weight, bias, stride, padding, output_padding, dilation, groups):
    """x (B, C, *in), weight (C, O/g, *k): each element scatters its products; what padding crops was computed."""
    axes, kernel = x.ndim - 2, weight.shape[2:]
    full = [(x.shape[2 + i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 for i in range(axes)]
    out = [full[i] - 2 * padding[i] + output_padding[i] for i in range(axes)]
    out_group, in_group = weight.shape[1], x.shape[1] // groups
    result = np.empty((len(x), out_group * groups, *out), dtype=object)
    products = x.size * out_group * math.prod(kernel)  # outputs beyond have no first add to save
    places = enumerate(np.ndindex(result.shape))
    grid = {index: Accumulator(tally, counted=number < products) for number, index in places}
    cropped = Accumulator(tally, counted=False)
    for index in np.ndindex(x.shape):
        b, c, at = index[0], index[1], index[2:]
        for o in range(out_group):
            for tap in itertools.product(*map(range, kernel)):
                where = tuple(at[i] * stride[i] + tap[i] * dilation[i] - padding[i] for i in range(axes))
                target = grid.get((b, c // in_group * out_group + o, *where), cropped)
                target.mac(x[index], weight[(c, o, *tap)])
    for index, accumulator in grid.items():
        result[index] = accumulator.num() if bias is None else accumulator.num() + bias[index[1]]
    return result


def einsum(tally: Tally, equation: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two operands, no lone summed labels, no ellipsis: loops over all labels."""
    left, output = equation.split("->")
    first, second = left.split(",")
    size = dict(zip(first + second, a.shape + b.shape, strict=True))
    summed = [label for label in size if label not in output]
    result = np.empty(tuple(size[label] for label in output), dtype=object)
    for index in np.ndindex(result.shape):
        at = dict(zip(output, index, strict=True))
        pairs = []
        for inner in itertools.product(*(range(size[label]) for label in summed)):
            at.update(zip(summed, inner, strict=True))
            pairs.append((a[tuple(at[i] for i in first)], b[tuple(at[i] for i in second)]))
        result[index] = dot(tally, *zip(*pairs, strict=True)) if summed and pairs else pairs[0][0] * pairs[0][1]
    return result


def softmax(rows: np.ndarray) -> np.ndarray:
    """Over the last of two dimensions."""
    result = np.empty(rows.shape, dtype=object)
    for r, row in enumerate(rows):
        top = largest(row)
        powers = [(item - top).special(math.exp) for item in row]
        bottom = total(powers)
        result[r] = [power / bottom for power in powers]
    return result


def log_softmax(rows: np.ndarray, kept: bool) -> np.ndarray:
    """x - max is ``kept`` between its two uses, or computed for each."""
    result = np.empty(rows.shape, dtype=object)
    for r, row in enumerate(rows):
        top = largest(row)
        shifted = [item - top for item in row]
        log = total([item.special(math.exp) for item in shifted]).special(math.log)
        result[r] = [item - log for item in (shifted if kept else [item - top for item in row])]
    return result


def centred(row: Any) -> tuple[list[Num], Num]:
    """(x - mean, variance) of one row, two passes."""
    mean = total(row) / float(len(row))
    shifted = [item - mean for item in row]
    return shifted, total([item * item for item in shifted]) / float(len(row))


def layer_norm(rows, weight, bias, eps):
    """rows (R, n), weight and bias (n,) or None."""
    result = np.empty(rows.shape, dtype=object)
    for r, row in enumerate(rows):
        shifted, variance = centred(row)
        scale = (variance + eps).rsqrt()
        for i, item in enumerate(shifted):
            item = item * scale
            item = item if weight is None else item * weight[i]
            result[r, i] = item if bias is None else item + bias[i]
    return result


def rms_norm(rows, weight, eps):
    result = np.empty(rows.shape, dtype=object)
    for r, row in enumerate(rows):
        scale = (total([item * item for item in row]) / float(len(row)) + eps).rsqrt()
        for i, item in enumerate(row):
            result[r, i] = item * scale if weight is None else item * scale * weight[i]
    return result


def batch_norm(x, mean, var, weight, bias, eps):
    """x (C, M) with given statistics: x * alpha + beta."""
    result = np.empty(x.shape, dtype=object)
    for c, row in enumerate(x):
        alpha = (var[c] + eps).rsqrt()
        alpha = alpha if weight is None else weight[c] * alpha
        beta = (0.0 if bias is None else bias[c]) - mean[c] * alpha
        result[c] = [item * alpha + beta for item in row]
    return result


def batch_norm_training(x, running, weight, bias, eps, momentum):
    """x (C, M) with its own statistics; ``running`` (mean (C,), var (C,)) is updated in place, or None."""
    means, variances = [], []
    for c, row in enumerate(x):
        mean = total(row) / float(len(row))
        squares = total([square(item - mean) for item in row])
        means.append(mean)
        variances.append(squares / float(len(row)))
        if running is not None:
            unbiased = squares / float(max(len(row) - 1, 1))
            running[0][c] = mean * momentum + running[0][c] * (1 - momentum)
            running[1][c] = unbiased * momentum + running[1][c] * (1 - momentum)
    return batch_norm(x, means, variances, weight, bias, eps)


def batch_norm_gradient(x, dy, mean, var, weight, eps):
    """Rows are channels: gradients of a batch norm by running statistics, with respect to input, weight and bias."""
    results = []
    for row, back, m, v, w in zip(x, dy, mean, var, weight, strict=True):
        invstd = (v + eps).rsqrt()
        offset = total(back)
        scale = total([g * (item - m) for g, item in zip(back, row, strict=True)]) * invstd
        slope = invstd * w
        results.append((np.array([g * slope for g in back], dtype=object), scale, offset))
    return results


def batch_norm_training_gradient(x, dy, mean, var, weight, eps):
    """As above, by the batch's own statistics, which depend on the input."""
    results = []
    for row, back, m, v, w in zip(x, dy, mean, var, weight, strict=True):
        invstd = (v + eps).rsqrt()
        xc = [item - m for item in row]
        scale = total([g * (item * invstd) for g, item in zip(back, xc, strict=True)])
        offset = total(back)
        average = offset * (1 / len(row))
        spread = total([g * item for g, item in zip(back, xc, strict=True)]) / float(len(row))
        first, second = w * invstd, invstd * invstd * spread
        dx = [first * ((g - average) - item * second) for g, item in zip(back, xc, strict=True)]
        results.append((np.array(dx, dtype=object), scale, offset))
    return results


def windows(x, kernel, stride, out, before=(0, 0), dilation=(1, 1), spread=(1, 1)):
    """x (B, C, *in) -> {output index: the window's numbers}, without padding and the holes of a spread input.

    ``out`` (*out) says how many windows there are, ``before`` where the first begins.
    """
    elements = {
        (*index[:2], *(i * s for i, s in zip(index[2:], spread, strict=True))): x[index]
        for index in np.ndindex(x.shape)
    }
    steps = list(zip(stride, before, dilation, strict=True))
    return {
        index: [
            elements[place]
            for taps in np.ndindex(*kernel)
            for place in [
                (*index[:2], *(i * s - b + t * d for i, t, (s, b, d) in zip(index[2:], taps, steps, strict=True)))
            ]
            if place in elements
        ]
        for index in np.ndindex((*x.shape[:2], *out))
    }


def adaptive_windows(x, out):
    """Windows [floor(i*in/out), ceil((i+1)*in/out)) of every axis."""
    found = {}
    for index in np.ndindex((*x.shape[:2], *out)):
        spans = (
            slice(math.floor(i * s / o), math.ceil((i + 1) * s / o))
            for i, s, o in zip(index[2:], x.shape[2:], out, strict=True)
        )
        found[index] = x[(*index[:2], *spans)].ravel()
    return found


def gathered(found: dict, function: Any) -> np.ndarray:
    """One number per window, as an array."""
    shape = tuple(i + 1 for i in max(found))
    result = np.empty(shape, dtype=object)
    for index, window in found.items():
        result[index] = function(window)
    return result


def attention(tally, q, k, v, mask=None):
    """q (H, Sq, D), k (H, Sk, D), v (H, Sk, Dv), mask (Sq, Sk) of Num: the math decomposition with a safe softmax."""
    root = q.shape[-1] ** -0.25
    result = np.empty((*q.shape[:2], v.shape[-1]), dtype=object)
    for h in range(len(q)):
        queries, keys = (each(lambda a: a * root, m[h]) for m in (q, k))
        scores = dense(tally, queries, keys)
        if mask is not None:
            scores = each(lambda a, b: a + b, scores, mask)
        weights = softmax(scores)
        for r, row in enumerate(scores):
            masked = [item.equals(-math.inf) for item in row]
            if all(masked):
                weights[r] = list(tally.zeros((len(row),)))
        result[h] = dense(tally, weights, v[h].T)
    return result


def interpolate(corners: list[Num], fractions: list[tuple[float, float]]) -> Num:
    """2^axes corners, reduced axis by axis from the last: a * wa + b * wb."""
    for low, high in reversed(fractions):
        corners = [a * low + b * high for a, b in zip(corners[::2], corners[1::2], strict=True)]
    (result,) = corners
    return result
