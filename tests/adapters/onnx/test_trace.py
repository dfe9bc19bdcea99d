"""ONNX models made by hand: control flow, computed sizes, what is not ONNX's own, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, parser

from reconcile.adapters.shared.refusal import FactoryError
from reconcile.core.conventions import BUILT_IN
from reconcile.core.protocol import TRACE
from reconcile.core.records import UNENTERED, Trace
from reconcile.launch import user_models
from reconcile.products.files import kinds
from reconcile.work import UnknownWork, work_of
from reconcile.worker.main import Worker
from tests.workers import request

X, Y = "float[2,3] x", "float[2,3] y"
PRODUCT = "y = MatMul(x, w)"
ONCE = 2 * 2 * 3 * 3
"""FLOPs of (2, 3) @ (3, 3)."""


def save(path: Path, nodes: str, inputs: str = X, held: str = "", output: str = Y, more: Sequence[Any] = ()) -> Path:
    """A model with a matrix w in it, and more tensors; "__" in its nodes' names are slashes."""
    head = f'<ir_version: 8, opset_import: ["": 17, "mine": 1]> g ({inputs}) => ({output})'
    graph, _, functions = nodes.partition("|")
    made = parser.parse_model(f"{head} <float[3,3] w = {{1,1,1,1,1,1,1,1,1}}{held}> {{{graph}}} {functions}")
    for node in made.graph.node:
        node.name = node.name.replace("__", "/")
    made.graph.initializer.extend(more)
    onnx.save(made, str(path))
    return path


def trace(path: Path, *inputs: str) -> Trace:
    """The trace as a worker makes it, in this process, which has no guards to leave behind."""
    file = kinds.read_model_file("onnx", str(path))
    held = {"onnx": file._replace(trusted=True)}
    models = user_models.models({"onnx": str(path)}, user_models.read_inputs(inputs), held)
    worker = Worker(request("onnx", model=models["onnx"]))
    found = worker.take(TRACE, worker._meta()["params"])
    assert isinstance(found, Trace)
    return found


def unentered(found: Trace) -> list[tuple[str, str, str]]:
    return [(op.op, op.layer, op.attrs[UNENTERED]) for op in found.ops if UNENTERED in op.attrs]


def flops(found: Trace) -> int:
    return sum(BUILT_IN["matmul"].flops(work_of(op)) * op.calls for op in found.ops)


def body(goes_on: str = "cond") -> str:
    """A product, and whether to go on."""
    return f"""body = b (int64 i, bool cond, float[2,3] v) => (bool cond_out, float[2,3] v_out) {{
        [product] v_out = MatMul(v, w)  cond_out = Identity({goes_on})
    }}"""


def loop(path: Path, graph: str, inputs: str = X, held: str = "") -> Path:
    return save(path, f"[__rnn__Loop] y = Loop <{graph}> (trips, start, x)", inputs, f", bool start = {{1}}{held}")


def test_a_loop_runs_as_often_as_a_constant_says(tmp_path: Path) -> None:
    found = trace(loop(tmp_path / "m.onnx", body(), held=", int64 trips = {1000000000}"))
    assert flops(found) == 10**9 * ONCE
    assert [(op.op, op.calls, op.layer) for op in found.ops][1] == ("onnx.MatMul", 10**9, "rnn")
    assert flops(trace(loop(tmp_path / "m.onnx", body(), held=", int64 trips = {0}"))) == 0


@pytest.mark.parametrize(
    ("goes_on", "inputs", "held"),
    [
        ("cond", ", int64 trips", ""),
        ("other", ", bool other", ", int64 trips = {7}"),
        ("cond", "", f", int64 trips = {{{2**63 - 1}}}"),
        ("cond", "", ", float trips = {2.5}"),
    ],
)
def test_a_loop_that_values_end_is_incomplete(tmp_path: Path, goes_on: str, inputs: str, held: str) -> None:
    found = trace(loop(tmp_path / "m.onnx", body(goes_on), X + inputs, held))
    assert unentered(found) == [("onnx.Loop", "rnn", "how often this loop runs is not constant")]


def test_a_loop_ends_where_its_own_constants_say(tmp_path: Path) -> None:
    """After the first turn; while i < 5 and 3 k < 40, of a state k that begins at 1: turns 1, 3, 9 and the one that makes 27."""
    ended = loop(tmp_path / "a.onnx", body("other"), held=", int64 trips = {7}, bool other = {0}")
    assert flops(trace(ended)) == ONCE
    nodes = """[while] y, last = Loop <
        body = b (int64 i, bool cond, float[2,3] v, int64 k) => (bool cond_out, float[2,3] v_out, int64 k_out) {
            [product] v_out = MatMul(v, w)  k_out = Mul(k, three)
            next = Mul(k_out, three)  small = Less(next, forty)  early = Less(i, five)  cond_out = And(small, early)
        }
    > ("", "", x, one)"""
    held = ", int64 one = {1}, int64 three = {3}, int64 forty = {40}, int64 five = {5}"
    assert flops(trace(save(tmp_path / "b.onnx", nodes, held=held))) == 3 * ONCE


COMPUTED = {
    # a loop as long as a size that the graph computes: nodes, inputs, held, output, FLOPs
    "trips": (
        f"sizes = Shape(x)  trips = Gather(sizes, first)  y = Loop <{body()}> (trips, start, x)",
        X, ", bool start = {1}, int64 first = {0}", Y, 2 * ONCE,
    ),
    # a branch that a size chooses: what follows has the sizes of this one, not what both have in common
    "branch": (
        """size = Size(x)  p = Equal(size, six)  [if] mid = If <
            then_branch = t () => (float[2,3] y) { y = MatMul(x, w) }, else_branch = e () => (float[3,2] y) { y = Transpose(x) }
        > (p)  z = MatMul(mid, w)""",
        X, ", int64 six = {6}", "float[2,3] z", 2 * ONCE,
    ),
    "scan": (
        """s1, y = Scan <num_scan_inputs = 1, body = b (float[1] s, float[2,3] row) => (float[1] s_out, float[2,3] out) {
            out = MatMul(row, w)  s_out = Identity(s)
        }> (s0, x)""",
        "float[1] s0, float[5,2,3] x", "", "float[5,2,3] y", 5 * ONCE,
    ),
    # ConstantOfShape of 10^12 elements is not made, and its product is a multiplication
    "larger than life": (
        "big = ConstantOfShape(to)  y = MatMul(big, w)", "", f", int64[2] to = {{{10**12}, 3}}", "float[?,3] y", 2 * 10**12 * 9,
    ),
    "a function": (
        """y = mine.Twice(x, w) | <domain: "mine", opset_import: ["": 17]> Twice (a, b) => (d) {
            c = MatMul(a, b)  d = MatMul(c, b)
        }""",
        X, "", Y, 2 * ONCE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_what_the_graph_computes_decides_what_runs(tmp_path: Path, name: str) -> None:
    *model, expected = COMPUTED[name]
    found = trace(save(tmp_path / "m.onnx", *model))
    assert (flops(found), unentered(found)) == (expected, [])


@pytest.mark.parametrize("taken", [1, 0, None])
def test_a_branch(tmp_path: Path, taken: int | None) -> None:
    nodes = """[if] y = If <
        then_branch = t () => (float[2,3] z) { [product] z = MatMul(x, w) }, else_branch = e () => (float[2,3] z) { z = Relu(x) }
    > (p)"""
    p = (f"{X}, bool p",) if taken is None else (X, f", bool p = {{{taken}}}")
    found = trace(save(tmp_path / "m.onnx", nodes, *p))
    if taken is None:
        assert unentered(found) == [("onnx.If", "", "which branch runs is not constant")]
    else:
        assert flops(found) == taken * ONCE
        assert found.untaken == (("if/else_branch/Relu_0",) if taken else ("if/then_branch/product",))


def test_sizes_that_the_graph_computes(tmp_path: Path) -> None:
    """x (n, 2, 3) made (2 n, 3), then multiplied."""
    nodes = """s = Shape(x)  n = Gather(s, zero)  m = Mul(n, two)  to = Concat <axis = 0> (m, three)
        flat = Reshape(x, to)  y = MatMul(flat, w)"""
    held = ", int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}"
    path = save(tmp_path / "m.onnx", nodes, "float[n,2,3] x", held, "float[?,3] y")
    assert flops(trace(path, "x=7,2,3")) == 2 * (2 * 7) * 3 * 3
    with pytest.raises(
        FactoryError, match=r"m\.onnx is float32 \(\?, 2, 3\): give its size. For example: --input x=1,2,3"
    ):
        trace(path)


def test_what_nothing_needs_did_not_run(tmp_path: Path) -> None:
    found = trace(save(tmp_path / "m.onnx", f"[__a__b__MatMul] {PRODUCT}  dead = MatMul(y, w)"))
    assert [(op.id, op.layer) for op in found.ops] == [("/a/b/MatMul", "a.b")]


def test_an_operator_of_somebodys_is_unknown(tmp_path: Path) -> None:
    (op,) = trace(save(tmp_path / "m.onnx", "y = mine.Attend(x, w)")).ops
    with pytest.raises(UnknownWork, match=r"no work formula for mine\.Attend"):
        work_of(op)


def far(location: str, *dims: int) -> Any:
    held = TensorProto(name="far", dims=dims, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    held.external_data.add(key="location", value=location)
    return held


def test_weights_in_another_file_are_not_read(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", "y = MatMul(x, far)", more=[far("../../../../etc/passwd", 3, 3)])
    assert flops(trace(path)) == ONCE


@pytest.mark.parametrize("size", [-1, 0, -(2**40)])
def test_a_size_of_0_or_below_is_open(tmp_path: Path, size: int) -> None:
    made = onnx.load(str(save(tmp_path / "m.onnx", PRODUCT)))
    for value in (made.graph.input[0], made.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = size
    onnx.save(made, str(tmp_path / "m.onnx"))
    said = r"the input x of m\.onnx is float32 \(\?, 3\): give its size\. For example: --input x=1,3"
    with pytest.raises(FactoryError, match=said):
        trace(tmp_path / "m.onnx")
    assert flops(trace(tmp_path / "m.onnx", "x=7,3")) == 2 * 7 * 3 * 3


def test_a_size_below_0_inside_is_unknown(tmp_path: Path) -> None:
    nodes = """out = If <
        then_branch = t () => (float[5,3] y) <float[5,3] z> { z = mine.Attend(x)  y = MatMul(z, w) },
        else_branch = e () => (float[2,3] z) { z = Identity(x) }
    > (p)"""
    made = onnx.load(str(save(tmp_path / "m.onnx", nodes, held=", bool p = {1}", output="float[?,3] out")))
    branch = next(held.g for held in made.graph.node[0].attribute if held.name == "then_branch")
    for value in (branch.output[0], branch.value_info[0]):
        value.type.tensor_type.shape.dim[0].dim_value = -5
    onnx.save(made, str(tmp_path / "m.onnx"))
    (product,) = (op for op in trace(tmp_path / "m.onnx").ops if op.op == "onnx.MatMul")
    with pytest.raises(UnknownWork):
        work_of(product)


def outcome(path: Path) -> int | str:
    """The model's FLOPs, or the sentence that refuses it, or says that its work is unknown."""
    try:
        return flops(trace(path))
    except (FactoryError, UnknownWork) as error:
        return str(error)


CONV = {"kernel_shape": [3, 3], "strides": [1, 1], "dilations": [1, 1], "group": 1}


@pytest.mark.parametrize("name", [*CONV, "pads"])
@pytest.mark.parametrize("size", [-1, 0, 2**62])
def test_sizes_in_attributes(tmp_path: Path, name: str, size: int) -> None:
    """None of them makes a number below 0: the file is refused, or the output is as small as it can be."""
    wrong = {"pads": [size] * 4} if name == "pads" else {**CONV, name: size if name == "group" else [size, size]}
    attributes = ", ".join(f"{key} = {value}" for key, value in wrong.items())
    filters = onnx.helper.make_tensor("f", TensorProto.FLOAT, (4, 4, 3, 3), [1] * 144)
    nodes, output = f"[c] y = Conv <{attributes}> (x, f)", "float[?,?,?,?] y"
    path = save(tmp_path / "m.onnx", nodes, "float[1,4,8,8] x", output=output, more=[filters])
    said = outcome(path)
    assert said >= 0 if isinstance(said, int) else said.startswith(("m.onnx ", "shape ")) and "\n" not in said
    if name == "group" and size < 1:
        assert isinstance(said, str)
        assert said.startswith("m.onnx is damaged: ")
        assert f"c has group {size}, but a size must be at least 1" in said


NONE = "is not a valid ONNX model: "
INVALID: list[tuple[str, str, Sequence[Any], str]] = [
    # nodes, inputs, further tensors, what is said
    ("y = MatMuls(x, w)", X, (), f"{NONE}No Op registered for MatMuls with domain_version of 17"),
    ("y = MatMul(x, none)", X, (), f"{NONE}Nodes in a graph must be topologically sorted"),
    ("y = MatMul <a = 1> (x, w)", X, (), f"{NONE}Unrecognized attribute: a for operator MatMul"),
    ("y = MatMul(x, far)", X, [far("w.bin", -3, 3)], NONE),
    *(
        ("y = MatMul(x, k)", X, [TensorProto(name="k", dims=(n, 3), data_type=1, raw_data=bytes(4 * 9))], NONE)
        for n in (30, -3)
    ),
    (PRODUCT, "float[2,4] x", (), "has shapes that ONNX cannot infer: "),
]


@pytest.mark.parametrize(("nodes", "inputs", "more", "said"), INVALID)
def test_what_is_no_model_is_one_sentence(
    tmp_path: Path, nodes: str, inputs: str, more: Sequence[Any], said: str
) -> None:
    with pytest.raises(FactoryError, match=rf"^m\.onnx {said}") as caught:
        trace(save(tmp_path / "m.onnx", nodes, inputs, more=more))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_name_that_is_not_text(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", PRODUCT)
    path.write_bytes(path.read_bytes().replace(b"MatMul", b"\xff\xfe\xfd\xfc\xfb\xfa"))
    with pytest.raises(FactoryError, match=r"^m\.onnx is damaged: a name in it is not text\.$"):
        trace(path)
