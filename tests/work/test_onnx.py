"""ONNX formulas: the names are ONNX's, and each gives what the same operation gives under another framework's name.

Those are held to the brute-force oracle; where ONNX defines something else, the expected work is written out.
"""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import UnknownWork, Work, known_part, load, registered_formulas, work_of
from tests.work.records_by_hand import make

load()
X, Y = (2, 6, 8, 10), (2, 6, 8, 10)
SQUARES = {"kernel_size": [2, 2], "stride": [2, 2], "strides": [2, 2]}

SAME = {
    "Add": ("AddV2", [X, X], [Y], {}),
    "Relu": ("Relu", [X], [Y], {}),
    "Sigmoid": ("Sigmoid", [X], [Y], {}),
    "Softplus": ("aten.softplus", [X], [Y], {}),
    "Gelu": ("aten.gelu", [X], [Y], {"approximate": "tanh"}),
    "MatMul": ("BatchMatMulV2", [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], {}),
    "Conv": ("aten.conv2d", [X, (9, 3, 3, 3), (9,)], [(2, 9, 6, 8)], {"bias": None, "group": 2}),
    "Softmax": ("aten.softmax", [X], [Y], {"dim": 1, "axis": 1}),
    "LogSoftmax": ("LogSoftmax", [X], [Y], {}),
    "BatchNormalization": ("aten.batch_norm", [X, (6,), (6,), (6,), (6,)], [Y], {"training": False}),
    "LayerNormalization": ("aten.layer_norm", [X, (10,), (10,)], [Y], {"normalized_shape": [10]}),
    "MaxPool": ("aten.max_pool2d", [X], [(2, 6, 4, 5)], {**SQUARES, "kernel_shape": [2, 2]}),
    "AveragePool": ("aten.avg_pool2d", [X], [(2, 6, 4, 5)], {**SQUARES, "kernel_shape": [2, 2]}),
    "GlobalAveragePool": ("aten.mean", [X], [(2, 6, 1, 1)], {}),
    "ReduceMean": ("Mean", [X], [(2, 6)], {}),
    "ReduceMax": ("Max", [X], [(2, 6)], {}),
    "Resize": ("aten.upsample_bilinear2d", [X], [(2, 6, 16, 20)], {"mode": "linear"}),
    "TopK": ("TopKV2", [X], [(2, 6, 8, 3), (2, 6, 8, 3)], {}),
    "CumProd": ("aten.cumprod", [X], [Y], {"dim": 1}),
    "Col2Im": ("aten.col2im", [(2, 12, 6)], [(2, 3, 5, 4)], {}),
    "Det": ("aten.linalg_det", [(3, 4, 4)], [(3,)], {}),
    "Einsum": ("Einsum", [(3, 4), (4, 5)], [(3, 5)], {"equation": "ij,jk->ik"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_same_operation(name: str) -> None:
    other, inputs, outputs, attrs = SAME[name]
    if name == "Conv":
        attrs = {"group": 2}
    found = work_of(make(f"onnx.{name}", inputs, outputs, **attrs))
    assert found == work_of(make(other, inputs, outputs, **attrs))
    assert found


def test_a_gemm_without_a_bias_and_with_factors() -> None:
    """3 x 5 dot products of 4 terms; beta * C: one multiply and one add, alpha: one multiply, per output element."""
    products = Work(mac=60, accumulators=15)
    assert work_of(make("onnx.Gemm", [(3, 4), (5, 4)], [(3, 5)], transB=1, C=None)) == products
    assert work_of(make("onnx.Gemm", [(4, 3), (4, 5), (5,)], [(3, 5)], transA=1)) == products + Work(add=15)
    both = make("onnx.Gemm", [(3, 4), (4, 5), (5,)], [(3, 5)], alpha=0.5, beta=2.0)
    assert work_of(both) == products + Work(add=15, mul=30)


def test_clips_and_powers() -> None:
    assert work_of(make("onnx.Clip", [X, (), ()], [Y])) == Work(cmp=2 * 960)
    assert work_of(make("onnx.Clip", [X, ()], [Y], min=None)) == Work(cmp=960)
    assert work_of(make("onnx.Clip", [X], [Y], min=0.0, max=6.0)) == Work(cmp=2 * 960)
    assert work_of(make("onnx.Pow", [X, ()], [Y], exponent=2.0)) == Work(mul=960)
    assert work_of(make("onnx.Pow", [X, ()], [Y], exponent=None)) == Work(special=960)
    assert work_of(make("onnx.HardSigmoid", [X], [Y])) == Work(mul=960, add=960, cmp=2 * 960)


@pytest.mark.parametrize(
    ("mode", "number"), [("linear", 0), ("nearest", 1), ("cubic", 2), ("bilinear", 0), ("bicubic", 2)]
)
@pytest.mark.parametrize(("padding", "other"), [("zeros", 0), ("border", 1), ("reflection", 2)])
def test_a_picture_read_at_places(mode: str, number: int, padding: str, other: int) -> None:
    sizes: Any = [X, (2, 5, 7, 2)], [(2, 6, 5, 7)]
    aten = make("aten.grid_sampler", *sizes, interpolation_mode=number, padding_mode=other, align_corners=True)
    assert work_of(make("onnx.GridSample", *sizes, mode=mode, padding_mode=padding, align_corners=1)) == work_of(aten)


def test_norms_and_maxima() -> None:
    """960 elements in 96 rows of 10; windows of 2 x 2: 240 of them; the rest of a pool is that of the norm."""
    squares = Work(mul=960, add=960 - 96, special=96)
    assert work_of(make("onnx.LpNormalization", [X], [Y])) == squares + Work(div=960)
    assert work_of(make("onnx.LpNormalization", [X], [Y], p=1, axis=1)) == Work(cmp=960, add=960 - 160, div=960)
    assert work_of(make("onnx.GlobalLpPool", [X], [(2, 6, 1, 1)])) == Work(mul=960, add=960 - 12, special=12)
    pool = make("onnx.LpPool", [X], [(2, 6, 4, 5)], kernel_shape=[2, 2], strides=[2, 2])
    assert work_of(pool) == Work(mul=960, add=960 - 240, special=240)
    assert work_of(make("onnx.Hardmax", [X], [Y])) == Work(cmp=96 * 9)


@pytest.mark.parametrize(
    ("name", "inputs", "output", "products"),
    [
        # 9 filters of 3 channels at 3 x 3 places, each output of 6 x 8
        ("DeformConv", [X, (9, 3, 3, 3), (2, 18, 6, 8)], (2, 9, 6, 8), Work(mac=2 * 9 * 48 * 27, accumulators=2 * 9 * 48)),
        # both coordinates of 5 x 7 places from 3 numbers
        ("AffineGrid", [(2, 2, 3), (4,)], (2, 5, 7, 2), Work(mac=2 * 35 * 2 * 3, accumulators=2 * 35 * 2)),
        ("DFT", [(2, 16, 1)], (2, 16, 2), Work()),
        ("LRN", [X], Y, Work()),
        ("NonMaxSuppression", [(1, 5, 4), (1, 1, 5)], (5, 3), Work()),
    ],
)  # fmt: skip
def test_products_that_are_known_alone(name: str, inputs: Any, output: Any, products: Work) -> None:
    part = known_part(make(f"onnx.{name}", inputs, [output], group=2))
    assert (part.work, part.unknown) == (products, set(SINGLE_COMPONENTS))


def test_before_opset_13_a_softmax_is_one_row_from_its_axis_on() -> None:
    flat = work_of(make("onnx.Softmax", [X], [Y], opset=11))
    assert flat == work_of(make("aten.softmax", [(2, 480)], [(2, 480)], dim=-1))


STEPS, BATCH, WIDTH, HIDDEN = 7, 2, 3, 5


def recurrent(kind: str, gates: int, directions: int = 1, **attrs: Any) -> Work:
    rows = gates * HIDDEN
    inputs = [
        (STEPS, BATCH, WIDTH), (directions, rows, WIDTH), (directions, rows, HIDDEN), (directions, 2 * rows),
    ]  # fmt: skip
    return work_of(make(f"onnx.{kind}", inputs, [(STEPS, directions, BATCH, HIDDEN)], **attrs))


@pytest.mark.parametrize(
    ("kind", "gates", "cell"),
    [
        # Ct = ft * Ct-1 + it * ct; Ht = ot * tanh(Ct); gates: X W + H R, two biases
        ("LSTM", 4, Work(add=4 + 1, mul=3, special=5)),
        # ht = tanh(X W + rt * (H R + Rb) + Wb); Ht = (1 - zt) * ht + zt * Ht-1
        ("GRU", 3, Work(add=3 + 2, mul=3, special=3)),
        ("RNN", 1, Work(add=1, special=1)),
    ],
)
@pytest.mark.parametrize("directions", [1, 2])
def test_recurrent_layers(kind: str, gates: int, cell: Work, directions: int) -> None:
    units = STEPS * BATCH * directions * HIDDEN
    products = Work(mac=units * gates * (WIDTH + HIDDEN), accumulators=units * gates * 2)
    assert recurrent(kind, gates, directions) == products + Work(add=units * gates * 2) + cell * units


def test_recurrent_layers_of_another_kind_are_unknown() -> None:
    relu = recurrent("RNN", 1, activations=["Relu"])
    assert relu == recurrent("RNN", 1) - Work(special=70) + Work(cmp=70)
    for attrs in ({"clip": 1.0}, {"activations": ["Sigmoid", "Relu", "Tanh"]}, {"input_forget": 1}):
        with pytest.raises(UnknownWork):
            recurrent("LSTM", 4, **attrs)


@pytest.mark.frameworks
def test_the_names_are_onnxs() -> None:
    import onnx

    known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    assert sorted(name for name in registered_formulas() if name.startswith("onnx.") and name[5:] not in known) == []
