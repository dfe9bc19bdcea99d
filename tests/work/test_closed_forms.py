"""Formulas whose work depends on attributes, each case against its closed form, and cases that no formula can tell."""

from __future__ import annotations

import pytest

from reconcile.work import UnknownWork, Work, work_of
from tests.work.records_by_hand import make

X = (2, 3)
N = 6
POOL_3D = {"ksize": [1, 2, 2, 2, 1], "strides": [1] * 5, "padding": "VALID"}
CLOSED = {
    # op, inputs, outputs, attrs, expected
    "histc": ("aten.histc", [X], [(4,)], {"min": 0, "max": 3}, Work(cmp=2 * N, add=2 * N, mul=N, div=N)),
    "histc, edges of its own": (
        "aten.histc", [X], [(4,)], {"min": 0, "max": 0}, Work(cmp=4 * N - 2, add=2 * N, mul=N, div=N),
    ),
    "groups, rows": ("aten._grouped_mm", [(6, 3), (2, 3, 5)], [(6, 5)], {"bias": None}, Work(mac=90, accumulators=30)),
    "groups, columns": ("aten._grouped_mm", [(2, 4, 3), (3, 6)], [(4, 6)], {"bias": None}, Work(mac=72, accumulators=24)),
    "groups, sums": ("aten._grouped_mm", [(4, 6), (6, 5)], [(2, 4, 5)], {"bias": None}, Work(mac=120, accumulators=40)),
    "groups, batches": ("aten._grouped_mm", [(2, 4, 3), (2, 3, 5)], [(2, 4, 5)], {"bias": None}, Work(120, 40)),
    # TensorFlow's runs as a matrix product also where it contracts one term: PyTorch's is a multiply
    "Einsum, contracted over one": ("Einsum", [(2, 1), (1, 3)], [(2, 3)], {"equation": "ij,jk->ik"}, Work(mac=6, accumulators=6)),
    "abs": ("aten.abs", [X], [X], {}, Work(cmp=N)),
    "relu": ("aten.relu", [X], [X], {}, Work(cmp=N)),
    "relu6": ("aten.relu6", [X], [X], {}, Work(cmp=2 * N)),
    "rsqrt": ("aten.rsqrt", [X], [X], {}, Work(special=N)),
    "add, alpha": ("aten.add", [X, X], [X], {"alpha": 2}, Work(add=N, mul=N)),
    "addcmul, value": ("aten.addcmul", [X, X, X], [X], {"value": 2}, Work(add=N, mul=2 * N)),
    "div, floor": ("aten.div", [X, X], [X], {"rounding_mode": "floor"}, Work(div=N, special=N)),
    "clamp, low": ("aten.clamp", [X], [X], {"min": 0, "max": None}, Work(cmp=N)),
    "clamp, both": ("aten.clamp", [X], [X], {"min": 0, "max": 1}, Work(cmp=2 * N)),
    "clamp, tensors": ("aten.clamp", [X, (), ()], [X], {}, Work(cmp=2 * N)),
    "clamp, no bound": ("aten.clamp", [X], [X], {"min": None, "max": None}, Work()),
    "pow, 2.5": ("aten.pow", [X], [X], {"exponent": 2.5}, Work(special=N)),
    "pow, 2": ("aten.pow", [X], [X], {"exponent": 2}, Work(mul=N)),
    "pow, tensor": ("aten.pow", [X, X], [X], {}, Work(special=N)),
    "max of two": ("aten.max", [X, X], [X], {}, Work(cmp=N)),
    "max of all": ("aten.max", [X], [()], {}, Work(cmp=N - 1)),
    "argmax": ("aten.argmax", [X], [(2,)], {}, Work(cmp=N - 2)),
    "aminmax": ("aten.aminmax", [X], [(), ()], {}, Work(cmp=2 * (N - 1))),
    "prod": ("aten.prod", [X], [(2,)], {}, Work(mul=N - 2)),
    "cumsum": ("aten.cumsum", [X], [X], {}, Work(add=N)),
    "cumprod": ("aten.cumprod", [X], [X], {}, Work(mul=N)),
    "norm, 1": ("aten.norm", [X], [(2,)], {"p": 1}, Work(cmp=N, add=N - 2)),
    "norm, 3": ("aten.norm", [X], [(2,)], {"p": 3}, Work(cmp=N, special=N + 2, add=N - 2)),
    "norm, inf": ("aten.linalg_vector_norm", [X], [(2,)], {"ord": float("inf")}, Work(cmp=2 * N - 2)),
    "native_dropout": ("aten.native_dropout", [X], [X, X], {"train": True, "p": 0.5}, Work(mul=2 * N)),
    "native_dropout, off": ("aten.native_dropout", [X], [X, X], {"train": False, "p": 0.5}, Work()),
    "nan_to_num": ("aten.nan_to_num", [X], [X], {}, Work(cmp=3 * N)),
    "scatter": ("aten.scatter", [X, X, (1, 3)], [X], {}, Work()),
    "scatter, add": ("aten.scatter", [X, X, (1, 3)], [X], {"reduce": "add"}, Work(add=3)),
    "scatter_add": ("aten.scatter_add", [X, X, (1, 3)], [X], {}, Work(add=3)),
    "index_add, alpha": ("aten.index_add", [X, (1,), (1, 3)], [X], {"alpha": 2}, Work(add=3, mul=3)),
    "index_put": ("aten.index_put", [X, (1,), (3,)], [X], {"accumulate": False}, Work()),
    "index_put, accumulating": ("aten.index_put", [X, (1,), (3,)], [X], {"accumulate": True}, Work(add=3)),
    "col2im": ("aten.col2im", [(1, 4, 9)], [(1, 1, 4, 4)], {}, Work(add=36)),
    "trace": ("aten.trace", [(3, 5)], [()], {}, Work(add=2)),
    "addmm": ("aten.addmm", [(4,), (2, 3), (3, 4)], [(2, 4)], {}, Work(mac=24, accumulators=8, add=8)),
    "addmm, beta 0": ("aten.addmm", [(4,), (2, 3), (3, 4)], [(2, 4)], {"beta": 0}, Work(mac=24, accumulators=8)),
    "addmm, scaled": (
        "aten.addmm", [(4,), (2, 3), (3, 4)], [(2, 4)], {"beta": 2, "alpha": 3}, Work(24, 8, add=8, mul=16),
    ),
    "addmm, relu": (
        "aten._addmm_activation", [(4,), (2, 3), (3, 4)], [(2, 4)], {"use_gelu": False}, Work(24, 8, add=8, cmp=8),
    ),
    "addmm, gelu": (
        "aten._addmm_activation", [(4,), (2, 3), (3, 4)], [(2, 4)], {"use_gelu": True},
        Work(24, 8, add=16, mul=24, special=8),
    ),
    # three products (2, 3) @ (3, 4), each added: the first onto self, the others onto the sum
    "addbmm": ("aten.addbmm", [(2, 4), (3, 2, 3), (3, 3, 4)], [(2, 4)], {}, Work(72, 24, add=24)),
    "addbmm, beta 0": ("aten.addbmm", [(2, 4), (3, 2, 3), (3, 3, 4)], [(2, 4)], {"beta": 0}, Work(72, 24, add=16)),
    "addbmm, alpha": ("aten.addbmm", [(2, 4), (3, 2, 3), (3, 3, 4)], [(2, 4)], {"alpha": 2}, Work(72, 24, 24, 24)),
    "addr": ("aten.addr", [X, (2,), (3,)], [X], {}, Work(mul=N, add=N)),
    # 3 queries of 4, 5 keys, values of 6: softmax of 3 rows of 5 with its guard
    "attention, dropout": (
        "aten.scaled_dot_product_attention", [(3, 4), (5, 4), (5, 6)], [(3, 6)], {"dropout_p": 0.1},
        Work(mac=150, accumulators=33, mul=32 + 15, cmp=27, add=27, special=15, div=15 + 15),
    ),
    # queries 2 x 3 and keys 2 x 5 of width 4, two heads of 2: projections, q scaled, 60 scores of 2 terms, softmax of
    # 12 rows of 5, 24 outputs of 5 terms, projection; the weights averaged over the heads: 30 sums of 2, divided
    "multi-head, cross": (
        "aten._native_multi_head_attention",
        [(2, 3, 4), (2, 5, 4), (2, 5, 4), (12, 4), (12,), (4, 4), (4,)], [(2, 3, 4), (2, 3, 5)],
        {"num_head": 2, "embed_dim": 4, "need_weights": True, "average_attn_weights": True},
        Work(mac=26 * 16 + 60 * 2 + 24 * 5 + 6 * 16, accumulators=104 + 60 + 24 + 24, add=104 + 60 + 48 + 24 + 30,
             mul=24, div=60 + 30, cmp=48, special=60),
    ),
    "multi-head, weights apart": (
        "aten._native_multi_head_attention",
        [(2, 3, 4), (2, 5, 4), (2, 5, 4), (12, 4), (12,), (4, 4), (4,)], [(2, 3, 4), (2, 2, 3, 5)],
        {"num_head": 2, "embed_dim": 4, "need_weights": True, "average_attn_weights": False},
        Work(mac=752, accumulators=212, add=236, mul=24, div=60, cmp=48, special=60),
    ),
    # 4 norms of 3: squares, sums, roots; g / norm; v * that
    "weight norm": ("aten._weight_norm", [(4, 3), (4, 1)], [(4, 3)], {}, Work(mul=24, add=8, special=4, div=4)),
    "empty softmax": ("aten._softmax", [(0, 3)], [(0, 3)], {"dim": 1}, Work()),
    "softmax over nothing": ("aten._log_softmax", [(3, 0)], [(3, 0)], {"dim": 1}, Work()),
    "empty layer norm": ("aten.layer_norm", [(0, 3)], [(0, 3)], {"normalized_shape": [3]}, Work()),
    "empty rms norm": ("aten.rms_norm", [(3, 0)], [(3, 0)], {"normalized_shape": [0]}, Work()),
    "empty sum": ("aten.sum", [(0,)], [()], {}, Work()),
    "empty product": ("aten.mm", [(2, 0), (0, 3)], [(2, 3)], {}, Work()),
    "conv_tbc": ("aten.conv_tbc", [(7, 2, 3), (3, 3, 4), (4,)], [(5, 2, 4)], {}, Work(40 * 9, 40, add=40)),
    "bicubic": ("aten.upsample_bicubic2d", [(1, 1, 2, 2)], [(1, 1, 4, 4)], {}, Work(mul=16 * 20, add=16 * 15)),
    "EuclideanNorm": ("EuclideanNorm", [X, (1,)], [(2,)], {}, Work(mul=N, add=N - 2, special=2)),
    "Prod": ("Prod", [X, (1,)], [(2,)], {}, Work(mul=N - 2)),
    "Cumsum": ("Cumsum", [X, ()], [X], {}, Work(add=N)),
    "Cumprod": ("Cumprod", [X, ()], [X], {}, Work(mul=N)),
    "BiasAddGrad": ("BiasAddGrad", [X], [(3,)], {}, Work(add=N - 3)),
    "AssignAdd": ("AssignAddVariableOp", [(), X], [], {}, Work(add=N)),
    # filter (2, 2, 1): a sum and a comparison per tap but the first
    "Dilation2D": ("Dilation2D", [(1, 4, 4, 1), (2, 2, 1)], [(1, 3, 3, 1)],
                   {"strides": [1] * 4, "rates": [1] * 4, "padding": "VALID"}, Work(add=36, cmp=27)),
    # 3 x 3 at rate 2, padded by 2: of the taps at i - 2, i and i + 2 two are inside at each of 4 places, so (4 * 2)^2 sums
    "Dilation2D, SAME": ("Dilation2D", [(1, 4, 4, 1), (3, 3, 1)], [(1, 4, 4, 1)],
                         {"strides": [1] * 4, "rates": [1, 2, 2, 1], "padding": "SAME"}, Work(add=64, cmp=48)),
    # 8 windows of 2 x 2 x 2: a share onto each element of each; the largest of each again, and one add
    "AvgPool3DGrad": ("AvgPool3DGrad", [(5,), (1, 2, 2, 2, 1)], [(1, 3, 3, 3, 1)], POOL_3D, Work(div=8, add=64)),
    "MaxPool3DGrad": (
        "MaxPool3DGrad", [(1, 3, 3, 3, 1), (1, 2, 2, 2, 1), (1, 2, 2, 2, 1)], [(1, 3, 3, 3, 1)], POOL_3D, Work(cmp=56, add=8),
    ),
    "Conv, groups": ("Conv", [(1, 4, 4, 4), (3, 3, 2, 6)], [(1, 2, 2, 6)], {"groups": 2}, Work(24 * 18, 24)),
    "Conv3D": ("Conv3D", [(1, 4, 4, 4, 2), (2, 2, 2, 2, 3)], [(1, 3, 3, 3, 3)], {}, Work(81 * 16, 81)),
    "depthwise, input": (
        "DepthwiseConv2dNativeBackpropInput", [(4,), (3, 3, 2, 5), (1, 4, 4, 10)], [(1, 6, 6, 2)], {},
        Work(160 * 9, 72),
    ),
    "depthwise, filter": (
        "DepthwiseConv2dNativeBackpropFilter", [(1, 6, 6, 2), (4,), (1, 4, 4, 10)], [(3, 3, 2, 5)], {},
        Work(160 * 9, 90),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CLOSED)
def test_closed_form(case):
    name, inputs, outputs, attrs, expected = CLOSED[case]
    assert work_of(make(name, inputs, outputs, **attrs)) == expected


@pytest.mark.parametrize(
    ("name", "inputs", "attrs", "message"),
    [
        ("Einsum", [X, X, X], {"equation": "ij,jk,kl->il"}, "3 operands"),
        ("aten.einsum", [(3, 2)], {"equation": "ii->i"}, "two sizes"),
        ("aten.einsum", [X], {"equation": "ij->ii"}, "repeats a label of its output"),
        ("aten.einsum", [X], {"equation": "ijk->i"}, "does not fit an operand of rank 2"),
        ("aten.einsum", [X], {"equation": "ij,jk->ik"}, "2 terms for 1 operands"),
        ("aten.einsum", [X], {"equation": "ij->k"}, "no operand has"),
        ("aten.scatter", [X, X, X], {"reduce": "amax"}, "reduce='amax'"),
        ("aten.softmax", [X], {"dim": None}, "one dimension"),
        ("aten.alpha_dropout", [X], {"train": True, "p": 0.5}, "plain dropout"),
        ("aten.scaled_dot_product_attention", [(1, 2, 3)] * 5, {}, "dropout mask"),
        ("aten.cosine_similarity", [(2, 3), (2, 4)], {}, "do not broadcast"),
        ("MaxPool", [X], {"ksize": "SAME"}, "not a list of ints"),
    ],
)
def test_what_a_formula_cannot_tell_is_unknown(name, inputs, attrs, message):
    with pytest.raises(UnknownWork, match=message):
        work_of(make(name, inputs, [X], **attrs))
