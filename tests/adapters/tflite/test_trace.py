"""TensorFlow Lite models as the converter writes them: products by closed forms, loops and branches, and sizes that are open."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import UnknownWork, known_part, load, work_of
from tests.adapters.tflite import making
from tests.adapters.tflite.making import convert, flops, graph, schema, trace_of, unentered, write

load()


def weights(*shape: int) -> Any:
    return tf.constant(0.5, shape=shape)


def network(x: Any) -> Any:
    """A convolution, one of every channel, one transposed, and a product of rows that the batch is part of."""
    x = tf.nn.relu6(tf.nn.bias_add(tf.nn.conv2d(x, weights(3, 3, 3, 4), 1, "VALID"), weights(4)))  # 8 -> 6
    x = tf.nn.depthwise_conv2d(x, weights(3, 3, 4, 2), (1, 1, 1, 1), "SAME")  # 4 -> 8 channels
    rows = tf.reshape(tf.concat(tf.split(x, 2, 3)[::-1], 3), (-1, 8))
    up = tf.nn.conv2d_transpose(x, weights(3, 3, 5, 8), (tf.shape(x)[0], 12, 12, 5), 2, "SAME")
    return tf.matmul(rows, weights(8, 7)), up


@pytest.mark.parametrize("batch", [1, 3])
def test_products_and_what_is_fused_into_them(batch: int) -> None:
    """36 places: 4 filters of 27 terms, 8 of 9; of the transposed one each of 36 x 8 values meets 9 x 5 weights; rows of 8 terms.

    The first has a bias and a clamp, per result."""
    found = trace_of(convert(network, (None, 8, 8, 3)), f"{batch},8,8,3")
    products = batch * 36 * (4 * 27 + 8 * 9 + 8 * 9 * 5 + 7 * 8)
    assert flops(found) == 2 * products
    work = work_of(making.pick_op(found, "CONV_2D"))
    assert (work.mac, work.add, work.cmp) == (batch * 36 * 4 * 27, batch * 36 * 4, 2 * batch * 36 * 4)
    assert [op.id for op in found.ops for t in op.outputs if t.shape is None or None in t.shape] == []


def test_attention_and_a_batched_product_turned() -> None:
    def attend(q: Any, k: Any) -> Any:
        return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), k)

    assert flops(trace_of(convert(attend, (2, 5, 6, 8), (2, 5, 7, 8)))) == 2 * 2 * (2 * 5 * 6 * 7 * 8)


def test_three_dimensions() -> None:
    found = trace_of(convert(lambda x: tf.nn.conv3d(x, weights(2, 2, 2, 3, 4), (1,) * 5, "VALID"), (1, 4, 5, 6, 3)))
    assert flops(found) == 2 * (3 * 4 * 5) * 4 * 8 * 3


def samples() -> Any:
    yield [tf.random.uniform((1, 8, 8, 3)).numpy()]


def test_a_quantised_model_has_the_products_of_the_floating_one() -> None:
    """Beside them, of floats: the input quantised (/, round, +, two bounds) and the result given back (-, *)."""

    def small(x: Any) -> Any:
        return tf.matmul(tf.reshape(tf.nn.conv2d(x, weights(3, 3, 3, 4), 1, "VALID"), (-1, 144)), weights(144, 5))

    settings = {"optimizations": [tf.lite.Optimize.DEFAULT], "representative_dataset": samples}
    data = convert(small, (1, 8, 8, 3), **settings)
    found = trace_of(data)
    products = 36 * 4 * 27 + 144 * 5
    assert {t.dtype for op in found.ops if work_of(op).mac for t in op.inputs} == {"qint8", "qint32"}
    assert flops(found) == flops(trace_of(convert(small, (1, 8, 8, 3)))) == 2 * products
    sums = 36 * 4 + 5  # of each dot product the first add
    assert flops(found, "all") in (2 * products + 5 * 192 + 2 * 5, 2 * products - sums + 5 * 192 + 2 * 5)


def test_weights_that_are_quantised_alone() -> None:
    """The products are known; how the kernel quantises their input is not."""
    size = 40  # the converter leaves small weights as they are
    held = tf.random.normal((size, size))
    data = convert(lambda x: tf.matmul(x, held), (3, size), optimizations=[tf.lite.Optimize.DEFAULT])
    part = known_part(making.pick_op(trace_of(data), "FULLY_CONNECTED"))
    assert (part.work.mac, part.unknown) == (3 * size * size, set(SINGLE_COMPONENTS))


def test_a_loop_whose_turns_are_constant() -> None:
    """Five turns of (2, 4) @ (4, 4), and in each of them three of an inner loop."""

    def loop(x: Any) -> Any:
        def turn(i: Any, x: Any) -> Any:
            _, x = tf.while_loop(lambda j, x: j < 3, lambda j, x: (j + 1, tf.matmul(x, weights(4, 4))), (0, x))
            return i + 2, tf.matmul(x, weights(4, 4))

        return tf.while_loop(lambda i, x: i < 10, turn, (tf.constant(0), x))[1]

    found = trace_of(convert(loop, (2, 4)))
    assert unentered(found) == []
    assert flops(found) == 2 * (5 + 5 * 3) * 2 * 4 * 4


def test_a_loop_and_a_branch_that_values_decide() -> None:
    def loop(x: Any) -> Any:
        return tf.while_loop(lambda x: tf.reduce_sum(x) < 9, lambda x: (tf.matmul(x, weights(4, 4)),), (x,))

    def branch(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, weights(4, 4)), lambda: x)

    for function, reason in ((loop, "how often this loop runs"), (branch, "which branch runs")):
        found = trace_of(convert(function, (2, 4)))
        assert [why for _, why in unentered(found)] == [f"{reason} is not constant"]
        with pytest.raises(UnknownWork, match=reason):
            flops(found)


BRANCHES = (
    graph([("float32", (2, 4), None), ("float32", (4, 4), [1.0] * 16), ("float32", (2, 4), None)],
          [("FULLY_CONNECTED", schema.FullyConnectedOptionsT(), (0, 1, -1), (2,))], ((0,), (2,))),
    graph([("float32", (2, 4), None), ("float32", (2, 4), None)], [("RELU", None, (0,), (1,))], ((0,), (1,))),
)  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "products", "untaken"), [(True, 32, "/2/RELU#0"), (False, 0, "/1/FULLY_CONNECTED#0")]
)
def test_a_branch_that_a_constant_chooses(chosen: bool, products: int, untaken: str) -> None:
    options = schema.IfOptionsT(thenSubgraphIndex=1, elseSubgraphIndex=2)
    tensors = [("bool", (), chosen), ("float32", (2, 4), None), ("float32", (2, 4), None)]
    found = trace_of(write(graph(tensors, [("IF", options, (0, 1), (2,))], ((1,), (2,))), *BRANCHES))
    assert flops(found) == 2 * products
    assert [name.endswith(untaken) for name in found.untaken] == [True]


def test_what_is_in_no_schema_is_withheld_by_name() -> None:
    """Whatever its tensors are: a custom operator, and one of StableHLO."""
    for name in ("CUSTOM.TFLite_Detection_PostProcess", "CUSTOM.FlexMatMul", "STABLEHLO_DOT_GENERAL"):
        for dtype in ("float32", "int32"):
            operators = [(name, None, (0, 0), (1,))]
            found = trace_of(write(graph([(dtype, (4, 4), None)] * 2, operators, ((0,), (1,)))))
            with pytest.raises(UnknownWork, match=name):
                flops(found)


def test_each_signature_runs_its_own_graph() -> None:
    def name_them(model: Any) -> None:
        model.signatureDefs = [
            schema.SignatureDefT(inputs=[], outputs=[], signatureKey=key, subgraphIndex=number)
            for number, key in enumerate(("multiply", "clamp"))
        ]

    data = write(*BRANCHES, change=name_them)
    assert [flops(trace_of(data, signature=key)) for key in ("multiply", "clamp", "")] == [64, 0, 64]
