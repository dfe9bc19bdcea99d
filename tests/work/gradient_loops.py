"""Naive loops of the backward pass over numbers that count, in the order that the formulas cite."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tests.work import oracle
from tests.work.counting import Accumulator, Tally, total


def sums(rows: Any) -> np.ndarray:
    return np.array([total(row) for row in rows], dtype=object)


def conv_input(tally, g, x_shape, weight, stride, padding, dilation, groups, transposed):
    if transposed:
        return oracle.conv(tally, g, weight, None, stride, padding, dilation, groups)
    rest = [
        x_shape[2 + i]
        - ((g.shape[2 + i] - 1) * stride[i] + dilation[i] * (weight.shape[2 + i] - 1) + 1 - 2 * padding[i])
        for i in range(g.ndim - 2)
    ]
    return oracle.conv_transposed(tally, g, weight, None, stride, padding, rest, dilation, groups)


def conv_weight(tally, small, wide, w_shape, stride, padding, dilation, groups):
    """small: what the kernel slides over the padded wide one for: the output's gradient (transposed: the input)."""
    axes = small.ndim - 2
    padded = tally.zeros((*wide.shape[:2], *(s + 2 * p for s, p in zip(wide.shape[2:], padding, strict=True))))
    padded[(slice(None), slice(None), *(slice(p, p + s) for s, p in zip(wide.shape[2:], padding, strict=True)))] = wide
    result = np.empty(w_shape, dtype=object)
    for index in np.ndindex(w_shape):
        first, second, tap = index[0], index[1], index[2:]
        channel = first // (w_shape[0] // groups) * w_shape[1] + second
        accumulator = Accumulator(tally)
        for b, *at in itertools.product(range(len(small)), *map(range, small.shape[2:])):
            where = tuple(at[i] * stride[i] + tap[i] * dilation[i] for i in range(axes))
            accumulator.mac(small[(b, first, *at)], padded[(b, channel, *where)])
        result[index] = accumulator.num()
    return result


def batch_norm(x, g, mean, var, weight, eps, training, mask):
    """Rows are channels. In training the root of the variance is at hand."""
    found: list[Any] = [[], [], []]
    into, scale, shift = mask[0], mask[1] and weight is not None, mask[2]
    for c, (row, back) in enumerate(zip(x, g, strict=True)):
        count = float(len(row))
        if training:
            invstd = row[0].tally.array(1 / math.sqrt(var[c].value + eps))[()]
        elif into or scale:
            invstd = (var[c] + eps).rsqrt()
        whole = total(back) if shift or (training and into) else None
        if scale or (training and into):
            xc = [item - mean[c] for item in row]
            dot = total([a * b for a, b in zip(xc, back, strict=True)])
        if into:
            slope = invstd if weight is None else invstd * weight[c]
            if training:
                k, average = dot * invstd * invstd / count, whole / count
                found[0].append([((b - average) - a * k) * slope for a, b in zip(xc, back, strict=True)])
            else:
                found[0].append([b * slope for b in back])
        if scale:
            found[1].append(dot * invstd)
        if shift:
            found[2].append(whole)
    return found


def layer_norm(x, g, mean, rstd, weight, mask):
    """Rows of n; weight (R, n): the one that each element is multiplied by, or None. Per row, not yet summed over rows."""
    inputs, scales = [], []
    for r, (row, back) in enumerate(zip(x, g, strict=True)):
        count = float(len(row))
        hat = [(item - mean[r]) * rstd[r] for item in row] if mask[0] or mask[1] else []
        if mask[0]:
            a = list(back) if weight is None else [b * w for b, w in zip(back, weight[r], strict=True)]
            first = total(a) / count
            second = total([p * q for p, q in zip(a, hat, strict=True)]) / count
            inputs.append([((p - first) - q * second) * rstd[r] for p, q in zip(a, hat, strict=True)])
        if mask[1]:
            scales.append([b * h for b, h in zip(back, hat, strict=True)])
    return inputs, scales


def softmax(y, g):
    rows = []
    for row, back in zip(y, g, strict=True):
        whole = total([b * p for b, p in zip(back, row, strict=True)])
        rows.append([(b - whole) * p for b, p in zip(back, row, strict=True)])
    return np.array(rows, dtype=object)


def log_softmax(y, g):
    rows = []
    for row, back in zip(y, g, strict=True):
        whole = total(back)
        rows.append([b - p.special(math.exp) * whole for b, p in zip(back, row, strict=True)])
    return np.array(rows, dtype=object)


def spread(tally: Tally, shape: tuple[int, ...], windows: Any, g: np.ndarray) -> np.ndarray:
    """Each gradient by its window's size, onto every place of the window (index -> places); None is padding."""
    grid = tally.zeros(shape)
    for index, places in windows.items():
        part = g[index] / float(len(places))
        for place in places:
            if place is not None:
                grid[place] = grid[place] + part
    return grid
