"""Operators that ONNX defines by others, those of ONNX Runtime, and quantised ones: loaded, traced and held to closed forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper, parser

from reconcile.adapters.onnx import functions
from reconcile.adapters.onnx.load import Model, read_model
from reconcile.adapters.onnx.trace import OWN, Tracer, trace
from reconcile.core.records import Op, Trace
from reconcile.core.work import MASKED, PRODUCT_COMPONENTS, SINGLE_COMPONENTS
from reconcile.work import Known, Work, known_part, load, registered_formulas, sum_works

load()

F, BYTES, INT, LONG = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64
NEWEST = onnx.defs.onnx_opset_version()
Input = tuple[Any, ...]
"""Type and shape of an input, and its values if it is a constant; empty if it is left out."""


def make_model(domain: str, name: str, inputs: Sequence[Input], attrs: Mapping[str, Any], results: int = 1) -> Model:
    """One node of constants and inputs, the first result cast to floats."""
    names = [f"i{place}" if each else "" for place, each in enumerate(inputs)]
    node = helper.make_node(name, names, [f"o{i}" for i in range(results)], name="node", domain=domain, **attrs)
    given = [(each, value) for each, value in zip(names, inputs, strict=True) if value]
    graph = helper.make_graph(
        [node, helper.make_node("Cast", ["o0"], ["out"], to=F)],
        "g",
        [helper.make_tensor_value_info(each, *value) for each, value in given if len(value) == 2],
        [helper.make_tensor_value_info("out", F, [None] * 9)],
        [helper.make_tensor(each, *value) for each, value in given if len(value) == 3],
    )
    graph.output[0].type.tensor_type.ClearField("shape")
    graph.output[0].type.tensor_type.shape.dim.add()
    opsets = [helper.make_opsetid("", NEWEST)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    return read_model(helper.make_model(graph, opset_imports=opsets).SerializeToString(), "m.onnx", None)[0]


def traced(*node: Any, **more: Any) -> Op:
    found: Trace = trace(make_model(*node, **more))
    (op,) = (op for op in found.ops if op.id == "node")
    return op


X, LOGITS, VECTOR = (F, (2, 6, 16)), (F, (4, 3)), (F, (2, 4, 5, 8))
HALF = 2 * 4 * 5 * 4
WORKS: dict[str, tuple[Sequence[Input], dict[str, Any], Work | None]] = {
    # logs of 2 sums of 3
    "ReduceLogSum": ([(F, (2, 3)), (LONG, (1,), [1])], {}, Work(add=2 * 2, special=2)),
    # x * sigmoid(x), times the other
    "SwiGLU": ([(F, (2, 8)), (F, (2, 8))], {}, Work(mul=2 * 16, special=16)),
    # cos x - sin y, sin x + cos y, of the halves of each vector
    "RotaryEmbedding": ([VECTOR, (F, (2, 5, 4)), (F, (2, 5, 4))], {}, Work(mul=4 * HALF, add=2 * HALF)),
    # 4 taps of each channel, of what was before as well
    "CausalConvWithState": ([X, (F, (6, 1, 4))], {}, Work(mac=2 * 6 * 16 * 4, accumulators=2 * 6 * 16)),
    # least and largest, with 0; scale and zero point, rounded and clipped; then every element
    "DynamicQuantizeLinear": (
        [(F, (2, 3))], {}, Work(cmp=2 * 5 + 2 + 2, add=2, div=2, special=1) + Work(add=1, div=1, special=1, cmp=2) * 6
    ),
    # the score of a class less the mean: 4 negated, their sum, by 4
    "NegativeLogLikelihoodLoss": ([LOGITS, (LONG, (4,))], {}, Work(add=4 + 3, div=1)),
    # a logarithm of softmax of 4 rows of 3 before that
    "SoftmaxCrossEntropyLoss": (
        [LOGITS, (LONG, (4,))], {}, Work(cmp=4 * 2, add=4 * (3 + 2 + 3), special=4 * (3 + 1)) + Work(add=4 + 3, div=1)
    ),
    "CenterCropPad": ([(F, (20, 10, 3)), (LONG, (3,), [10, 7, 3])], {}, Work()),
    "LinearAttention": (
        [X, X, X, (), X, (F, (2, 6, 4))], {"q_num_heads": 4, "kv_num_heads": 4}, None
    ),
    "MeanVarianceNormalization": ([(F, (2, 3, 4, 5))], {}, None),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), ([(LONG, (), [10])], {}, None)),
}  # fmt: skip
"""Operator -> the inputs and attributes of a node, and its work; None if only its products are held."""
STATES = 2 * 6 * 4 * 3 * 4 * 4
PRODUCTS = {"LinearAttention": STATES}
"""Per step and head of (4, 4) states: what it holds of a key, what is added to it, and what is read from it."""


@pytest.mark.parametrize("name", WORKS)
def test_an_operator_does_what_its_function_runs(name: str) -> None:
    inputs, attrs, work = WORKS[name]
    schema = onnx.defs.get_schema(name, NEWEST, "")
    part = known_part(traced("", name, inputs, attrs, results=schema.min_output))
    assert part == Known(part.work if work is None else work)
    assert part.work.mac == PRODUCTS.get(name, 0 if work is None else work.mac)


def test_attention_with_a_function_of_its_scores() -> None:
    query, key, value = (2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)
    part = known_part(traced("ai.onnx.preview", "FlexAttention", [(F, query), (F, key), (F, value)], {}))
    assert (part.work.mac, part.unknown) == (2 * 4 * 5 * 7 * (8 + 6), frozenset())


def test_every_operator_of_the_standard_has_its_work_or_its_reason() -> None:
    standard = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain in OWN}
    formulas = {name[5:] for name in registered_formulas() if name.startswith("onnx.")}
    assert sorted(standard - formulas - functions.WRITTEN_OUT[""]) == []
    assert sorted(formulas & functions.WRITTEN_OUT[""]) == []
    assert sorted((formulas | functions.WRITTEN_OUT[""]) - standard) == []
    assert set(WORKS) == functions.WRITTEN_OUT[""]


def test_a_function_that_onnx_does_not_write_out_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("no such type")

    monkeypatch.setattr("reconcile.adapters.onnx.trace.write_out", refuse)
    part = known_part(traced("", "SwiGLU", *WORKS["SwiGLU"][:2]))
    assert "mac" in part.unknown
    assert "no such type" in part.reason


SCALES = [(F, (), [0.5]), (BYTES, (), [3])]
RUNTIME = "com.microsoft"
BITS: dict[str, Any] = {"K": 64, "N": 5, "bits": 4, "block_size": 32}


@pytest.mark.parametrize(
    ("domain", "name", "inputs", "attrs", "shape", "work"),
    [
        ("", "QLinearMatMul", [(BYTES, (2, 3)), *SCALES, (BYTES, (3, 5)), *SCALES, *SCALES], {}, (2, 5), (10, 3)),
        ("", "QLinearConv", [(BYTES, (1, 4, 8, 8)), *SCALES, (BYTES, (6, 2, 3, 3)), *SCALES, *SCALES], {"group": 2},
         (1, 6, 6, 6), (6 * 6 * 6, 2 * 9)),
        (RUNTIME, "QGemm", [(BYTES, (2, 4)), *SCALES, (BYTES, (6, 4)), *SCALES], {"transB": 1}, (2, 6), (12, 4)),
        (RUNTIME, "QLinearConv", [(BYTES, (1, 4, 8, 8)), *SCALES, (BYTES, (6, 4, 3, 3)), *SCALES, *SCALES],
         {"strides": [2, 2]}, (1, 6, 3, 3), (6 * 3 * 3, 4 * 9)),
        (RUNTIME, "MatMulNBits", [(F, (7, 2, 64)), (BYTES, (5, 2, 16)), (F, (10,))], BITS, (7, 2, 5), (70, 64)),
        (RUNTIME, "DynamicQuantizeMatMul", [(F, (2, 3)), (BYTES, (3, 5)), (F, ())], {}, (2, 5), (10, 3)),
        (RUNTIME, "MatMulIntegerToFloat", [(BYTES, (2, 3)), (BYTES, (3, 5)), (F, ()), (F, ())], {}, (2, 5), (10, 3)),
        (RUNTIME, "FusedConv", [(F, (1, 4, 8, 8)), (F, (6, 4, 3, 3))], {"activation": "Relu"}, (1, 6, 6, 6),
         (6 * 6 * 6, 4 * 9)),
        (RUNTIME, "FusedGemm", [(F, (4, 2)), (F, (4, 6))], {"transA": 1, "activation": "Relu"}, (2, 6), (12, 4)),
        (RUNTIME, "BiasGelu", [(F, (2, 3)), (F, (3,))], {}, (2, 3), (0, 1)),
        (RUNTIME, "QLinearAdd", [(BYTES, (2, 3)), *SCALES, (BYTES, (1, 3)), *SCALES, *SCALES], {}, (2, 3), (0, 1)),
        (RUNTIME, "QLinearSigmoid", [(BYTES, (2, 3)), *SCALES, *SCALES], {}, (2, 3), (0, 1)),
        (RUNTIME, "QLinearConcat", [*SCALES, (BYTES, (2, 3)), *SCALES, (BYTES, (2, 4)), *SCALES], {"axis": 1}, (2, 7),
         (0, 1)),
        (RUNTIME, "QLinearGlobalAveragePool", [(BYTES, (2, 3, 4, 5)), *SCALES, *SCALES], {}, (2, 3, 1, 1), (0, 1)),
    ],
)  # fmt: skip
def test_products_beside_other_work(
    domain: str, name: str, inputs: list[Input], attrs: dict[str, Any], shape: Any, work: tuple[int, int]
) -> None:
    """So many dot products of so many terms; what scales and activations cost is not known."""
    op = traced(domain, name, inputs, attrs)
    (dots, terms), part = work, known_part(op)
    assert op.outputs[0].shape == shape
    assert (part.work, part.unknown) == (Work(mac=dots * terms, accumulators=dots), set(SINGLE_COMPONENTS))


TOKENS, LENGTHS = (F, (2, 5, 24)), [(LONG, (2,)), (LONG, (1,))]
WEIGHTS, WIDER = (F, (24, 72), [0.0] * 24 * 72), (F, (24, 80), [0.0] * 24 * 80)
KEPT = 2 * 4 * (5 * 6 // 2)  # pairs of 2 x 4 heads of 5 tokens that a causal mask keeps; 5 x 5 are 25 each


@pytest.mark.parametrize(
    ("name", "inputs", "attrs", "macs", "masked"),
    [
        # 24 to three times 24, then 4 heads of 6
        ("Attention", [TOKENS, WEIGHTS], {}, 2 * 5 * 24 * 72 + 2 * 4 * 25 * 12, 0),
        ("Attention", [TOKENS, WEIGHTS], {"unidirectional": 1}, 2 * 5 * 24 * 72 + 2 * 4 * 25 * 12,
         (2 * 4 * 25 - KEPT) * 12),
        ("Attention", [TOKENS, WIDER, (F, (80,)), (INT, (2,))], {"qkv_hidden_sizes": [24, 24, 32]},
         2 * 5 * 24 * 80 + 2 * 4 * 25 * (6 + 8), None),
        ("Attention", [TOKENS, WEIGHTS, (F, (72,)), (), (F, (2, 2, 4, 3, 6))], {"unidirectional": 1},
         2 * 5 * 24 * 72 + 2 * 4 * 5 * 8 * 12, (2 * 4 * 25 - KEPT) * 12),
        ("MultiHeadAttention", [TOKENS, (F, (2, 7, 24)), (F, (2, 7, 24))], {}, 2 * 4 * 5 * 7 * 12, 0),
        ("MultiHeadAttention", [TOKENS, (F, (2, 4, 7, 6)), (F, (2, 4, 7, 6))], {}, 2 * 4 * 5 * 7 * 12, 0),
        ("MultiHeadAttention", [(F, (2, 5, 4, 3, 6))], {}, 2 * 4 * 25 * 12, 0),
        ("MultiHeadAttention", [TOKENS, TOKENS, TOKENS, (), (INT, (2,))], {}, 2 * 4 * 25 * 12, None),
        ("MultiHeadAttention", [TOKENS, TOKENS, TOKENS, (), (), (), *[(F, (2, 4, 3, 6))] * 2, (INT, (1,))], {}, None, 0),
        ("GroupQueryAttention", [TOKENS, *[(F, (2, 5, 12))] * 2, (), (), *LENGTHS], {"kv_num_heads": 2},
         2 * 4 * 25 * 12, None),
        ("GroupQueryAttention", [(F, (2, 5, 48)), (), (), (), (), *LENGTHS], {"kv_num_heads": 2}, 2 * 4 * 25 * 12, None),
        ("GroupQueryAttention", [TOKENS, *[(F, (2, 5, 12))] * 2, *[(F, (2, 2, 9, 6))] * 2, *LENGTHS], {"kv_num_heads": 2},
         None, 0),
    ],
)  # fmt: skip
def test_attention_of_the_runtime(
    name: str, inputs: list[Input], attrs: dict[str, Any], macs: int | None, masked: int | None
) -> None:
    """None of multiply-adds that a cache leaves open, and of what values of a mask decide."""
    op = traced(RUNTIME, name, inputs, {"num_heads": 4, **attrs})
    part, wide = known_part(op), 32 if inputs[1:2] == [WIDER] else 24
    assert op.outputs[0].shape == ((2, 5, wide) if inputs[1:2] and inputs[1] else None)
    assert ("mac" in part.unknown, part.work.mac) == (macs is None, macs or 0)
    assert (MASKED in part.unknown, part.work.masked) == (masked is None, masked or 0)


@pytest.mark.parametrize(
    ("shapes", "attrs", "terms"),
    [
        (((3, 2), (3, 5)), {"transA": 1}, 3),
        (((7, 2, 3), (3, 5)), {}, 3),
        (((7, 2, 3), (7, 5, 3)), {"transB": 1, "alpha": 0.5}, 3),
        (((7, 3, 2), (5, 3)), {"transA": 1, "transB": 1}, 3),
        (((2, 7, 3), (3, 7, 5)), {"transBatchA": 1, "transBatchB": 1}, 3),
        (((3, 7, 2), (5, 7, 3)), {"transA": 1, "transB": 1, "transBatchA": 1, "transBatchB": 1}, 3),
    ],
)  # fmt: skip
def test_a_product_with_its_transposes_and_a_factor(shapes: Any, attrs: dict[str, Any], terms: int) -> None:
    op = traced(RUNTIME, "FusedMatMul", [(F, shape) for shape in shapes], attrs)
    outputs = (7 if len(shapes[0]) == 3 else 1) * 2 * 5
    assert op.outputs[0].shape == (*[7] * (len(shapes[0]) - 2), 2, 5)
    scaled = Work(mul=outputs if "alpha" in attrs else 0)
    assert known_part(op) == Known(Work(mac=outputs * terms, accumulators=outputs) + scaled)


def parts_of(nodes: str, held: str) -> list[Known]:
    """The work of these nodes between x and y."""
    head = f'<ir_version: 10, opset_import: ["": {NEWEST}, "{RUNTIME}": 1]> g (float[2,3] x) => (float[2,5] y)'
    model = parser.parse_model(f"{head} <{held} = {{{', '.join('123456789012345')}}}> {{{nodes}}}")
    return [known_part(op) for op in trace(read_model(model.SerializeToString(), "m.onnx", None)[0]).ops]


def test_both_results_of_a_norm_with_a_skip_have_sizes() -> None:
    """(2, 3) and (2, 3) added; the sum and its norm are multiplied by (3, 5) each."""
    norm = f'n, "", "", s = {RUNTIME}.SkipLayerNormalization(x, x, g)'
    found = parts_of(
        f"{norm}  a = MatMul(n, w)  b = MatMul(s, w)  y = Add(a, b)", "float[3] g = {1, 1, 1}, float[3,5] w"
    )
    assert sum(part.work.mac for part in found) == 2 * 30
    assert [part.unknown for part in found[1:]] == [frozenset()] * 3


def test_a_model_as_a_quantiser_writes_it_has_its_products_alone() -> None:
    """(2, 3) @ (3, 5), each of them quantised and back: 1 division, rounding and sum, 2 bounds; 1 difference and product."""
    nodes = """xq = QuantizeLinear(x, scale, zero)  xd = DequantizeLinear(xq, scale, zero)
        wd = DequantizeLinear(wq, scale, zero)  y = MatMul(xd, wd)"""
    found = parts_of(nodes, "float scale = {0.5}, uint8 zero = {3}, uint8[3,5] wq")
    assert [part.unknown for part in found] == [frozenset()] * 4
    quantised, back = Work(div=1, special=1, add=1, cmp=2) * 6, Work(add=1, mul=1) * (6 + 15)
    assert sum_works(part.work for part in found) == Work(mac=30, accumulators=10) + quantised + back


CAUSAL = {"is_causal": 1}
PAST = [(F, (2, 2, 3, 8)), (F, (2, 2, 3, 6))]
HEADS = [(F, (2, 4, 5, 8)), (F, (2, 2, 7, 8)), (F, (2, 2, 7, 6))]
FLAT = [(F, (2, 5, 32)), (F, (2, 7, 16)), (F, (2, 7, 12))]


@pytest.mark.parametrize(
    ("inputs", "attrs"),
    [
        (HEADS, {}),
        (HEADS, {**CAUSAL, "softcap": 2.0}),
        (FLAT, {**CAUSAL, "q_num_heads": 4, "kv_num_heads": 2}),
        ([*HEADS, (), *PAST], CAUSAL),
        ([*HEADS, (F, (5, 7))], {}),
        ([*HEADS, (F, (5, 10)), *PAST], CAUSAL),
    ],
)  # fmt: skip
def test_attention_is_its_function_written_out(inputs: list[Input], attrs: dict[str, Any]) -> None:
    model = make_model("", "Attention", inputs, attrs, results=3 if len(inputs) > 5 else 1)
    op = trace(model).ops[0]
    tensors = [(name, tensor, None) for name, tensor in zip(filter(None, model.proto.graph.node[0].input), op.inputs)]  # noqa: B905
    inner = Tracer({"": NEWEST})
    inner.walk_model(functions.write_out(model.proto.graph.node[0], tensors, {"": NEWEST}))
    written = sum_works(known_part(each).work for each in inner.ops)
    part = known_part(op)
    assert part.work.only(PRODUCT_COMPONENTS) == written.only(PRODUCT_COMPONENTS)
    assert part.work.mac == 2 * 4 * 5 * (10 if len(inputs) > 5 else 7) * (8 + 6)
    assert part.unknown == ({"masked"} if len(inputs) > 3 and inputs[3] else frozenset())


@pytest.mark.parametrize(
    ("past", "left", "right", "causal"), [(0, -1, -1, 1), (3, -1, -1, 1), (0, 2, 1, 0), (3, 2, 1, 1)]
)
def test_the_products_that_attention_discards(past: int, left: int, right: int, causal: int) -> None:
    """Query i sees key j if i + past - left <= j <= i + past + right, a bound below 0 is none, and causal is j <= i + past."""
    attrs = {"is_causal": causal, "left_window_size": left, "right_window_size": right}
    op = traced("", "Attention", [*HEADS, (), *PAST][: 6 if past else 3], attrs, results=3 if past else 1)
    seen = [
        (i, j)
        for i in range(5)
        for j in range(7 + past)
        if (left < 0 or j >= i + past - left) and (right < 0 or j <= i + past + right) and not (causal and j > i + past)
    ]
    assert known_part(op).work.masked == 2 * 4 * (5 * (7 + past) - len(seen)) * (8 + 6)


@pytest.mark.parametrize(
    ("name", "inputs", "attrs"),
    [
        ("MatMulNBits", [(F, (7, 64))], {}),
        ("FusedMatMul", [(F, (2, 3))], {"transB": 1}),
        ("MatMulNBits", [(F, (7, 64))], {"K": "K", "N": [1]}),
    ],
)
def test_a_node_that_is_none_of_its_operators_is_unknown(name: str, inputs: list[Input], attrs: dict[str, Any]) -> None:
    """Nothing has checked it: a file may say anything."""
    node = helper.make_node(name, [f"i{i}" for i in range(len(inputs))], ["out"], name="node", domain=RUNTIME, **attrs)
    given = [helper.make_tensor_value_info(f"i{i}", *value) for i, value in enumerate(inputs)]
    graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("out", F, [None])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST), helper.make_opsetid(RUNTIME, 1)])
    (op,) = trace(read_model(model.SerializeToString(), "m.onnx", None)[0]).ops
    assert "add" in known_part(op).unknown
