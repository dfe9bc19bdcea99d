"""torchscan's formulas by hand: F is torchscan/modules/flops.py and M torchscan/modules/macs.py of 0.2.0.

Totals are in FLOP: of the second number a multiply-add is 2 here, and other work 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, case_of, op, product, zero_of

RELEASES = ("0.2.0",)
X, N, C = (2, 6, 5, 4), 240, 6
NN = "torch.nn.modules."
case = case_of(RELEASES, NN, holds=False)
zero = zero_of(RELEASES, [X], NN, holds=False)


def macs(work: Work, total: int, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape], **attrs: Any) -> Case:
    return case(work, total, name, inputs, outputs, number="macs", **attrs)


def products() -> Iterator[Case]:
    for bias in (None, [5]):
        shapes, sizes = ([(4, 2, 3)], [(4, 2, 5)]), {"in_features": 3, "out_features": 5, "bias": bias}
        yield case(*product(3, 4 * 2 * 5, bias is not None), "linear.Linear", *shapes, **sizes)
        yield macs(Work(mac=4 * 2 * 5 * 3), 2 * 4 * 2 * 5 * 3, "linear.Linear", *shapes, **sizes)
        # 2 groups: each of 2 x 8 x (3 x 3) outputs takes 3 channels x (3 x 2).
        out, terms = (2, 8, 3, 3), 3 * 3 * 2
        window = {"kernel_size": [3, 2], "groups": 2, "bias": bias}
        work, total = product(terms, prod(out), bias is not None)
        yield case(work, total, "conv._ConvNd", [X], [out], **window)
        yield macs(Work(mac=terms * prod(out)), 2 * terms * prod(out), "conv._ConvNd", [X], [out], **window)
        # Transposed it takes the same of its output, and 8 or 4 for each of 2 axes (F:132, M:65).
        yield case(work + Work(add=16), total + 16, "conv._ConvTransposeNd", [X], [out], **window)
        work, total = Work(mac=terms * prod(out), add=8), 2 * terms * prod(out) + 8
        yield macs(work, total, "conv._ConvTransposeNd", [X], [out], **window)
    # It goes by isinstance.
    shapes, base = ([(2, 3)], [(2, 5)]), [NN + "linear.Linear"]
    yield case(*product(3, 2 * 5, 1), "linear.Mine", *shapes, in_features=3, out_features=5, bias=[5], bases=base)
    yield zero("linear.Linear", holds=True, in_features=3, out_features=5)  # one with a parametrization


def attention() -> Iterator[Case]:
    name = "activation.MultiheadAttention"
    batch, rows, keys, width, heads, size = 2, 3, 5, 8, 2, 4
    settings = {
        "embed_dim": width, "num_heads": heads, "head_dim": size, "batch_first": True, "add_zero_attn": False, "bias_k": False,
    }  # fmt: skip
    q, k = (batch, rows, width), (batch, keys, width)
    weights = (batch, rows, keys)
    scores, queries = batch * heads * rows * keys, batch * heads * rows
    for bias in (0, 1):
        projected = [product(width, batch * tokens * width, bias) for tokens in (rows, keys, keys, rows)]
        products_ = [product(size, scores, 0), product(keys, queries * size, 0)]
        total = sum(amount for _, amount in projected + products_) + 1 + queries * size + 3 * scores - queries
        work = Work(special=1 + scores, mul=queries * size, add=scores - queries, div=scores)
        for part, _ in projected + products_:
            work = work + part
        biases = {"in_proj_bias": bool(bias), "out_bias": bool(bias), **settings}
        yield case(work, total, name, [q, k, k], [q], **biases)
        yield case(work, total, name, [q, k, k], [q, (batch, heads, rows, keys)], **biases)  # weights of each head
        more = work + Work(add=2 * scores)  # a mask, and the mean over heads
        yield case(more, total + 2 * scores, name, [q, k, k, weights[1:]], [q, weights], **biases)
        steps = {**biases, "batch_first": False}
        moved = [(shape[1], shape[0], shape[2]) for shape in (q, k, k)]
        yield case(work, total, name, moved, moved[:1], **steps)
        yield Case(op(NN + name, [q, k, k], [q], **{**biases, "bias_k": True}), RELEASES, missed=Cause.OP_NOT_COUNTED)
        yield Case(op(NN + name, [q, k, k], [q], number="macs", **biases), RELEASES, missed=Cause.OP_NOT_COUNTED)
        flat = [(shape[1], shape[2]) for shape in (q, k, k)]  # without a batch
        yield Case(op(NN + name, flat, flat[:1], **biases), RELEASES, missed=Cause.OP_NOT_COUNTED)


def elementwise() -> Iterator[Case]:
    for name, work, each in (
        ("ReLU", Work(cmp=1), 1),
        ("ELU", Work(cmp=2, special=1, mul=1, add=2), 6),
        ("LeakyReLU", Work(cmp=2, mul=1, add=1), 4),
        ("ReLU6", Work(cmp=2), 2),
        ("Tanh", Work(special=2, mul=1, add=2, div=1), 6),
        ("Sigmoid", Work(mul=1, special=1, add=1, div=1), 4),
    ):
        yield case(work * N, each * N, f"activation.{name}", [X], [X])
        yield zero(f"activation.{name}", number="macs")
    for name in ("linear.Identity", "flatten.Flatten"):
        yield zero(name)
    yield case(Work(special=N), N, "dropout.Dropout", [X], [X], p=0.5, training=False)
    yield case(Work(), 0, "dropout.Dropout", [X], [X], p=0.0)
    yield zero("dropout.Dropout", number="macs", p=0.5)
    name = "batchnorm._BatchNorm"
    for affine in (0, 1):
        work = Work(add=C + (1 + affine) * N, special=C, div=N, mul=affine * N)
        yield case(work, 2 * C + (2 + 2 * affine) * N, name, [X], [X], num_features=C, affine=bool(affine))
        times = (1 + affine) * N
        yield macs(Work(mul=times), times, name, [X], [X], num_features=C, affine=bool(affine))
    rows = N // 4
    for weight, bias in ((None, None), ([4], None), ([4], [4])):
        scaled, moved = (0 if given is None else N for given in (weight, bias))
        work = Work(add=3 * N + rows + moved, mul=2 * N + scaled, div=N, special=rows)
        total, norm = 6 * N + 2 * rows + scaled + moved, "normalization.LayerNorm"
        yield case(work, total, norm, [X], [X], normalized_shape=[4], weight=weight, bias=bias)
    yield zero("normalization.LayerNorm", number="macs", normalized_shape=[4])


def pools() -> Iterator[Case]:
    out, elements = (2, 6, 2, 2), 48
    for count in (case, macs):
        for kernel, window in (([3, 2], 6), (3, 3)):  # one number is taken for the whole window (F:172)
            most, average = Work(cmp=(window - 1) * elements), Work(add=(window - 1) * elements, div=2 * elements)
            yield count(most, (window - 1) * elements, "pooling._MaxPoolNd", [X], [out], kernel_size=kernel)
            yield count(average, (window + 1) * elements, "pooling._AvgPoolNd", [X], [out], kernel_size=kernel)
        # Of 5 elements to 2 there is a rest of 1, and of 4 to 2 none: (1 + 1) x 2 (_pooling.py:12).
        yield count(Work(cmp=3 * elements), 3 * elements, "pooling._AdaptiveMaxPoolNd", [X], [out])
        average = Work(add=3 * elements, div=2 * elements)
        yield count(average, 5 * elements, "pooling._AdaptiveAvgPoolNd", [X], [out])


CASES = (*products(), *attention(), *elementwise(), *pools())
FAMILIES = {"torchscan": (RELEASES, CASES)}
