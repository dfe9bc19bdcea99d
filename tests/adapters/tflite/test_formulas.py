"""Formulas of TensorFlow Lite's operators: each of the schema's has one or a reason, and the cells have closed forms."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.adapters.tflite import formulas
from reconcile.adapters.tflite.operators import ACTIVATIONS, attributes, spell
from reconcile.core.work import SINGLE_COMPONENTS, is_opaque
from reconcile.work import Known, Work, known_part, load, registered_formulas, work_of
from tests.work.records_by_hand import make

load()
X = (2, 6, 8, 10)
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}


@pytest.mark.frameworks
def test_every_operator_of_the_schema_has_its_work_or_its_reason() -> None:
    from tensorflow.lite.python import schema_py_generated as schema

    names = {name for name in vars(schema.BuiltinOperator) if name.isupper()} - {"PLACEHOLDER_FOR_GREATER_OP_CODES"}
    held = {*registered_formulas(), *registered_formulas("complex")}
    known = {name.partition(".")[2] for name in held if name.startswith("tflite.")}
    assert known - names == set()
    lacking = {name for name in names - known if not is_opaque(f"tflite.{name}")}
    assert lacking == {"CUSTOM"}  # which has a name of its own
    assert is_opaque("tflite.CUSTOM.mine")
    kinds = vars(schema.ActivationFunctionType)
    assert [kinds[name or "NONE"] for name in ACTIVATIONS] == list(range(len(ACTIVATIONS)))
    assert (schema.Padding.SAME, schema.Padding.VALID) == (0, 1)


@pytest.mark.frameworks
def test_every_name_is_an_op_of_tensorflow() -> None:
    """A formula that is said to be TensorFlow's is that of an op that it has."""
    import tensorflow as tf

    ops = {name.lower() for name in dir(tf.raw_ops)}
    assert {name for name in formulas._AS_TENSORFLOW.split() if spell(name) not in ops} == set()


SAME = {
    "ADD": ("AddV2", [X, X], X, {}),
    "LOGISTIC": ("Sigmoid", [X], X, {}),
    "RELU_N1_TO_1": ("ClipByValue", [X], X, {}),
    "SQUARED_DIFFERENCE": ("SquaredDifference", [X, X], X, {}),
    "MEAN": ("Mean", [X, (2,)], (2, 10), {}),
    "REDUCE_MAX": ("Max", [X, (2,)], (2, 10), {}),
    "AVERAGE_POOL_2D": ("AvgPool", [X], (2, 3, 4, 10), POOL),
    "MAX_POOL_2D": ("MaxPool", [X], (2, 3, 4, 10), POOL),
    "BATCH_MATMUL": ("BatchMatMulV2", [(3, 5, 4), (3, 5, 6)], (3, 4, 6), {"adj_x": True}),
    "CONV_3D_TRANSPOSE": ("Conv3DBackpropInputV2", [(5,), (2, 2, 2, 4, 3), (1, 3, 3, 3, 3)], (1, 4, 4, 4, 4), {}),
    "TOPK_V2": ("TopKV2", [X, ()], (2, 6, 8, 3), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_same_operation(name: str) -> None:
    other, inputs, output, attrs = SAME[name]
    found = work_of(make(f"tflite.{name}", inputs, [output], **attrs))
    assert found == work_of(make(other, inputs, [output], **attrs))
    assert found


def test_options_become_attributes_of_tensorflow() -> None:
    options = {
        "padding": 0,
        "strideW": 3,
        "strideH": 2,
        "filterWidth": 5,
        "filterHeight": 4,
        "fusedActivationFunction": 3,
    }
    found = attributes({**options, "dilationWFactor": 7, "dilationHFactor": 6, "name": b"a", "nested": object()})
    assert [found[name] for name in ("padding", "strides", "ksize", "dilations")] == [
        "SAME",
        [1, 2, 3, 1],
        [1, 4, 5, 1],
        [1, 6, 7, 1],
    ]
    assert (found["fused_activation_function"], found["name"], "nested" in found) == ("RELU6", "a", False)
    assert attributes({"squeezeDims": [1, 2]})["axis"] == [1, 2]


BIASED = {
    "CONV_2D": [X, (4, 3, 3, 10)],
    "DEPTHWISE_CONV_2D": [X, (1, 3, 3, 10)],
    "CONV_3D": [(2, 6, 6, 8, 10), (3, 3, 3, 10, 4)],
    "FULLY_CONNECTED": [X, (4, 10)],
    "TRANSPOSE_CONV": [(4,), (4, 3, 3, 10), X],
    "CONV_3D_TRANSPOSE": [(5,), (3, 3, 3, 4, 10), (2, 6, 6, 8, 10)],
}


@pytest.mark.parametrize("name", BIASED)
def test_a_bias_is_an_addition_per_result_and_a_clamp_two_comparisons(name: str) -> None:
    inputs, output = BIASED[name], (2, 6, 8, 4)
    plain = work_of(make(f"tflite.{name}", inputs, [output]))
    found = work_of(make(f"tflite.{name}", [*inputs, (4,)], [output], fused_activation_function="RELU6"))
    assert plain.mac
    assert found == plain + Work(add=2 * 6 * 8 * 4, cmp=2 * 2 * 6 * 8 * 4)


def test_a_softmax_with_a_factor_and_a_norm() -> None:
    plain = work_of(make("tflite.SOFTMAX", [X], [X], beta=1.0))
    assert work_of(make("tflite.SOFTMAX", [X], [X], beta=2.0)) == plain + Work(mul=960)
    # 96 rows of 10: squares, sums, roots, the larger of root and epsilon, quotients
    assert work_of(make("tflite.L2_NORMALIZATION", [X], [X])) == Work(mul=960, add=864, special=96, cmp=96, div=960)


STEPS, BATCH, WIDTH, HIDDEN = 7, 2, 3, 5
ROWS = STEPS * BATCH
INPUT, STATE, BIAS, KERNEL, AGAIN = (BATCH, STEPS, WIDTH), (BATCH, HIDDEN), (HIDDEN,), (HIDDEN, WIDTH), (HIDDEN, HIDDEN)
LSTM = {
    0: INPUT, **dict.fromkeys(range(1, 5), KERNEL), **dict.fromkeys(range(5, 9), AGAIN), **dict.fromkeys(range(12, 16), BIAS),
    18: STATE, 19: STATE,
}  # fmt: skip
GATES = ROWS * 4 * HIDDEN * (WIDTH + HIDDEN)


def layer(name: str, places: dict[int, Any], **attrs: Any) -> Known:
    inputs = [places[place] for place in sorted(places)]
    return known_part(make(f"tflite.{name}", inputs, [(BATCH, STEPS, HIDDEN)], places=sorted(places), **attrs))


def test_cells() -> None:
    """An LSTM: both products, bias; f * c + i * g, o * tanh(c); sigmoid x3, tanh x2. A plain one: products, bias, tanh."""
    units = ROWS * HIDDEN
    found = layer("UNIDIRECTIONAL_SEQUENCE_LSTM", LSTM, fused_activation_function="TANH")
    expected = Work(mac=GATES, accumulators=2 * 4 * units, add=units * (4 + 4 + 1), mul=units * 3, special=units * 5)
    assert (found.work, found.unknown) == (expected, set())
    plain = {0: INPUT, 1: KERNEL, 2: AGAIN, 3: BIAS, 4: STATE}
    found = layer("UNIDIRECTIONAL_SEQUENCE_RNN", plain, fused_activation_function="TANH")
    expected = Work(mac=units * (WIDTH + HIDDEN), accumulators=2 * units, add=2 * units, special=units)
    assert (found.work, found.unknown) == (expected, set())


@pytest.mark.parametrize(
    ("name", "places", "products"),
    [
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", {**LSTM, 9: BIAS}, GATES),  # with peepholes
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", {p: s for p, s in LSTM.items() if p not in (1, 5)}, GATES * 3 // 4),  # i = 1 - f
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", {**LSTM, 16: (4, HIDDEN)}, GATES + ROWS * 4 * HIDDEN),  # projected
        ("BIDIRECTIONAL_SEQUENCE_LSTM", {**LSTM, **{p + 17: s for p, s in LSTM.items() if 0 < p < 18}}, 2 * GATES),
        ("SVDF", {0: (BATCH, WIDTH), 1: (8, WIDTH), 2: (8, 10), 4: (BATCH, 80)}, BATCH * 8 * (WIDTH + 10)),
        # weights of four gates, of the input beside the last output
        ("LSTM", {0: (BATCH, WIDTH), 1: STATE, 2: (20, 8), 3: (20,), 4: STATE}, BATCH * 20 * 8),
    ],
)  # fmt: skip
def test_cells_whose_products_are_known_alone(name: str, places: dict[int, Any], products: int) -> None:
    found = layer(name, places, fused_activation_function="TANH")
    assert (found.work.mac, found.unknown) == (products, set(SINGLE_COMPONENTS))
