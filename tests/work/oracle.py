"""Naive loops over numbers that count their own operations: what a formula must agree with, component by component.

The loops also compute: tests compare their values with the framework's, so a loop that does the wrong work cannot
count it either. Multiply-accumulates and accumulators are counted by :class:`Accumulator` alone; everything a
:class:`Num` does outside one is an add, mul, div, cmp or special.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np

from reconcile.work import COMPONENTS, Work


class Tally(Counter):
    """Operations so far, by component."""

    def work(self) -> Work:
        return Work(*(self[name] for name in COMPONENTS))

    def array(self, values: Any) -> np.ndarray:
        """Plain numbers as an object array of :class:`Num`."""
        values = np.asarray(values, dtype=float)
        result = np.empty(values.shape, dtype=object)
        for index in np.ndindex(values.shape):
            result[index] = Num(float(values[index]), self)
        return result

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.array(np.zeros(shape))


class Num:
    """A float that counts what is done with it."""

    __slots__ = ("tally", "value")

    def __init__(self, value: float, tally: Tally) -> None:
        self.value, self.tally = value, tally

    def _do(self, component: str, value: float) -> Num:
        self.tally[component] += 1
        return Num(value, self.tally)

    def __add__(self, other: Num) -> Num:
        return self._do("add", self.value + _plain(other))

    def __radd__(self, other: float) -> Num:
        return self._do("add", other + self.value)

    def __sub__(self, other: Num) -> Num:
        return self._do("add", self.value - _plain(other))

    def __rsub__(self, other: float) -> Num:
        return self._do("add", other - self.value)

    def __neg__(self) -> Num:
        return self._do("add", -self.value)

    def __mul__(self, other: Num) -> Num:
        return self._do("mul", self.value * _plain(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Num) -> Num:
        return self._do("div", self.value / _plain(other))

    def max(self, other: Num) -> Num:
        return self._do("cmp", max(self.value, _plain(other)))

    def min(self, other: Num) -> Num:
        return self._do("cmp", min(self.value, _plain(other)))

    def equals(self, other: float) -> bool:
        self.tally["cmp"] += 1
        return self.value == other

    def special(self, function: Any) -> Num:
        return self._do("special", function(self.value))

    def sigmoid(self) -> Num:
        return self.special(lambda v: 1 / (1 + math.exp(-v)))

    def tanh(self) -> Num:
        return self.special(math.tanh)

    def rsqrt(self) -> Num:
        return self.special(lambda v: 1 / math.sqrt(v))


class Accumulator:
    """Starts at 0; takes products. Counted when it is made (unless it is thrown away), each product as one MAC."""

    def __init__(self, tally: Tally, counted: bool = True) -> None:
        self.tally, self.value = tally, 0.0
        tally["accumulators"] += counted

    def mac(self, a: Num, b: Num) -> None:
        self.tally["mac"] += 1
        self.value += a.value * b.value

    def num(self) -> Num:
        return Num(self.value, self.tally)


def _plain(other: Any) -> float:
    return other.value if isinstance(other, Num) else other


def values(array: np.ndarray) -> np.ndarray:
    """The floats of an array of Num."""
    return np.vectorize(lambda n: n.value, otypes=[float])(array) if array.size else np.zeros(array.shape)


def each(function: Any, *arrays: np.ndarray) -> np.ndarray:
    """``function`` of corresponding elements of arrays of one shape."""
    result = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(a[index] for a in arrays))
    return result


def total(items: Any) -> Num:
    """Sum of n numbers in n - 1 adds."""
    first, *rest = items
    for item in rest:
        first = first + item
    return first


def largest(items: Any) -> Num:
    """Maximum of n numbers in n - 1 comparisons."""
    first, *rest = items
    for item in rest:
        first = first.max(item)
    return first


def dot(tally: Tally, a: Any, b: Any) -> Num:
    """Dot product; of nothing it is 0 and takes no accumulator."""
    if len(a) == 0:
        return Num(0.0, tally)
    accumulator = Accumulator(tally)
    for x, y in zip(a, b, strict=True):
        accumulator.mac(x, y)
    return accumulator.num()


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
    grid = {index: Accumulator(tally) for index in np.ndindex(result.shape)}
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


def gru_cell(tally, x, h, w_ih, w_hh, b_ih, b_hh):
    """PyTorch's: h' = n + z * (h - n), n = tanh(x_n + r * h_n). x (B, I), h (B, H)."""
    size = h.shape[1]
    xs, hs = dense(tally, x, w_ih, b_ih), dense(tally, h, w_hh, b_hh)
    result = np.empty(h.shape, dtype=object)
    for b, i in np.ndindex(h.shape):
        r = (xs[b, i] + hs[b, i]).sigmoid()
        z = (xs[b, size + i] + hs[b, size + i]).sigmoid()
        n = (xs[b, 2 * size + i] + hs[b, 2 * size + i] * r).tanh()
        result[b, i] = (h[b, i] - n) * z + n
    return result


def keras_gru_cell(tally, x, h, kernel, recurrent, b_i, b_r):
    """Keras, reset_after: gates z, r, h; h' = z * h + (1 - z) * hh, hh = tanh(x_h + r * h_h). kernel (I, 3H)."""
    size = h.shape[1]
    xs, hs = dense(tally, x, kernel.T, b_i), dense(tally, h, recurrent.T, b_r)
    result = np.empty(h.shape, dtype=object)
    for b, i in np.ndindex(h.shape):
        z = (xs[b, i] + hs[b, i]).sigmoid()
        r = (xs[b, size + i] + hs[b, size + i]).sigmoid()
        hh = (xs[b, 2 * size + i] + r * hs[b, 2 * size + i]).tanh()
        result[b, i] = z * h[b, i] + (1 - z) * hh
    return result


def block_gru_cell(tally, x, h, w_ru, w_c, b_ru, b_c):
    """TensorFlow's GRUBlockCell: the reset gate before the product; h' = u * (h - c) + c."""
    size = h.shape[1]
    ru = dense(tally, np.concatenate([x, h], 1), w_ru.T, b_ru)
    ru = each(Num.sigmoid, ru)
    reset = each(lambda a, b: a * b, h, ru[:, :size])
    c = each(Num.tanh, dense(tally, np.concatenate([x, reset], 1), w_c.T, b_c))
    return each(lambda u, a, b: u * (a - b) + b, ru[:, size:], h, c)


def lstm_cell(tally, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr=None):
    """PyTorch's, gates i, f, g, o; returns h', c'."""
    size = c.shape[1]
    xs, hs = dense(tally, x, w_ih, b_ih), dense(tally, h, w_hh, b_hh)
    new_h, new_c = np.empty(c.shape, dtype=object), np.empty(c.shape, dtype=object)
    for b, j in np.ndindex(c.shape):
        i, f, g, o = (xs[b, k * size + j] + hs[b, k * size + j] for k in range(4))
        new_c[b, j] = f.sigmoid() * c[b, j] + i.sigmoid() * g.tanh()
        new_h[b, j] = o.sigmoid() * new_c[b, j].tanh()
    return (new_h if w_hr is None else dense(tally, new_h, w_hr)), new_c


def block_lstm_cell(tally, x, c, h, w, b, forget_bias, peepholes=None):
    """TensorFlow's LSTMBlockCell, gates i, ci, f, o; peepholes (wci, wcf, wco). No clipping. Returns h', c'."""
    size = c.shape[1]
    gates = dense(tally, np.concatenate([x, h], 1), w.T, b)
    new_h, new_c = np.empty(c.shape, dtype=object), np.empty(c.shape, dtype=object)
    for r, j in np.ndindex(c.shape):
        i, g, f, o = (gates[r, k * size + j] for k in range(4))
        f = f + forget_bias
        if peepholes:
            i, f = i + c[r, j] * peepholes[0][j], f + c[r, j] * peepholes[1][j]
        new_c[r, j] = g.tanh() * i.sigmoid() + c[r, j] * f.sigmoid()
        if peepholes:
            o = o + new_c[r, j] * peepholes[2][j]
        new_h[r, j] = o.sigmoid() * new_c[r, j].tanh()
    return new_h, new_c


def rnn_cell(tally, x, h, w_ih, w_hh, b_ih, b_hh, relu):
    xs, hs = dense(tally, x, w_ih, b_ih), dense(tally, h, w_hh, b_hh)
    return each(lambda a, b: (a + b).max(0.0) if relu else (a + b).tanh(), xs, hs)


def softmax(rows: np.ndarray) -> np.ndarray:
    """Over the last of two dimensions."""
    result = np.empty(rows.shape, dtype=object)
    for r, row in enumerate(rows):
        top = largest(row)
        powers = [(item - top).special(math.exp) for item in row]
        bottom = total(powers)
        result[r] = [power / bottom for power in powers]
    return result


def log_softmax(rows: np.ndarray) -> np.ndarray:
    result = np.empty(rows.shape, dtype=object)
    for r, row in enumerate(rows):
        top = largest(row)
        shifted = [item - top for item in row]
        log = total([item.special(math.exp) for item in shifted]).special(math.log)
        result[r] = [item - log for item in shifted]
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
        squares = total([_square(item - mean) for item in row])
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


def _square(item: Num) -> Num:
    return item * item


def windows(x, kernel, stride, padding, fill):
    """x (B, C, *in) -> {output index: the window's numbers}, padding filled with ``fill``."""
    axes = x.ndim - 2
    tally = x.flat[0].tally
    padded = tally.array(np.full((*x.shape[:2], *(s + 2 * p for s, p in zip(x.shape[2:], padding, strict=True))), fill))
    padded[(slice(None), slice(None), *(slice(p, p + s) for s, p in zip(x.shape[2:], padding, strict=True)))] = x
    out = [(padded.shape[2 + i] - kernel[i]) // stride[i] + 1 for i in range(axes)]
    return {
        index: padded[
            (*index[:2], *(slice(i * s, i * s + k) for i, s, k in zip(index[2:], stride, kernel, strict=True)))
        ].ravel()
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
