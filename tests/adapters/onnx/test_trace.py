"""ONNX models made by hand: control flow, computed sizes, what is not ONNX's own, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from reconcile.adapters.shared.refusal import FactoryError
from reconcile.core.conventions import BUILT_IN
from reconcile.core.protocol import TRACE
from reconcile.core.records import UNENTERED, Trace
from reconcile.launch import user_models
from reconcile.products.files import kinds
from reconcile.work import UnknownWork, work_of
from reconcile.worker.main import Worker
from tests.workers import request

pytestmark = pytest.mark.frameworks

F = TensorProto.FLOAT


def tensor(name: str, *shape: Any, kind: int = F) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name: str, value: Any, dtype: str = "float32") -> Any:
    return numpy_helper.from_array(numpy.array(value, dtype), name)


def save(path: Path, nodes: Any, inputs: Any, outputs: Any, held: Any = (), **more: Any) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(held))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8, **more), str(path))
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


W = constant("w", numpy.ones((3, 3)))
PRODUCT = [helper.make_node("MatMul", ["x", "w"], ["y"], name="/a/b/MatMul")]


def body(goes_on: str = "cond") -> Any:
    """(2, 3) @ (3, 3), and whether to go on."""
    nodes = [
        helper.make_node("MatMul", ["v", "w"], ["v_out"], name="product"),
        helper.make_node("Identity", [goes_on], ["cond_out"]),
    ]
    inputs = [tensor("i", kind=TensorProto.INT64), tensor("cond", kind=TensorProto.BOOL), tensor("v", 2, 3)]
    return helper.make_graph(nodes, "body", inputs, [tensor("cond_out", kind=TensorProto.BOOL), tensor("v_out", 2, 3)])


def loop(path: Path, trips: Any, graph: Any, held: Any = (), more: Any = ()) -> Path:
    nodes = [helper.make_node("Loop", ["trips", "start", "x"], ["y"], name="/rnn/Loop", body=graph)]
    inputs = [tensor("x", 2, 3), *more] + ([tensor("trips", kind=TensorProto.INT64)] if trips is None else [])
    held = [W, constant("start", True, "bool"), *held]
    held += [] if trips is None else [constant("trips", trips, "int64")]
    return save(path, nodes, inputs, [tensor("y", 2, 3)], held)


def test_a_loop_runs_as_often_as_a_constant_says(tmp_path: Path) -> None:
    found = trace(loop(tmp_path / "m.onnx", 10**9, body()))
    assert flops(found) == 10**9 * 2 * 2 * 3 * 3
    assert [(op.op, op.calls, op.layer) for op in found.ops][1] == ("onnx.MatMul", 10**9, "rnn")
    assert flops(trace(loop(tmp_path / "m.onnx", 0, body()))) == 0


def test_a_loop_that_values_end_is_incomplete(tmp_path: Path) -> None:
    for path in (
        loop(tmp_path / "a.onnx", None, body()),
        loop(tmp_path / "b.onnx", 7, body("other"), more=[tensor("other", kind=TensorProto.BOOL)]),
        loop(tmp_path / "c.onnx", 2**63 - 1, body()),
    ):
        said = ("onnx.Loop", "rnn", "how often this loop runs is not constant")
        assert unentered(trace(path)) == [said]


def test_a_loop_ends_where_its_own_constants_say(tmp_path: Path) -> None:
    """After the first turn; while i < 5 and 3 k < 40, of a state k that begins at 1: turns 1, 3, 9 and the one that makes 27."""
    ended = loop(tmp_path / "a.onnx", 7, body("other"), [constant("other", False, "bool")])
    assert flops(trace(ended)) == 2 * 2 * 3 * 3
    nodes = [
        helper.make_node("MatMul", ["v", "w"], ["v_out"], name="product"),
        helper.make_node("Mul", ["k", "three"], ["k_out"]),
        helper.make_node("Mul", ["k_out", "three"], ["next"]),
        helper.make_node("Less", ["next", "forty"], ["small"]),
        helper.make_node("Less", ["i", "five"], ["early"]),
        helper.make_node("And", ["small", "early"], ["cond_out"]),
    ]
    scalar = [tensor(name, kind=TensorProto.INT64) for name in ("i", "k", "k_out")]
    inputs = [scalar[0], tensor("cond", kind=TensorProto.BOOL), tensor("v", 2, 3), scalar[1]]
    outputs = [tensor("cond_out", kind=TensorProto.BOOL), tensor("v_out", 2, 3), scalar[2]]
    graph = helper.make_graph(nodes, "body", inputs, outputs)
    node = helper.make_node("Loop", ["", "", "x", "one"], ["y", "last"], name="while", body=graph)
    held = [W, *(constant(n, v, "int64") for n, v in (("one", 1), ("three", 3), ("forty", 40), ("five", 5)))]
    path = save(tmp_path / "b.onnx", [node], [tensor("x", 2, 3)], [tensor("y", 2, 3)], held)
    assert flops(trace(path)) == 3 * 2 * 2 * 3 * 3


def test_a_loop_is_as_long_as_a_size_that_the_graph_computes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "first"], ["trips"]),
        helper.make_node("Loop", ["trips", "start", "x"], ["y"], body=body()),
    ]
    held = [W, constant("start", True, "bool"), constant("first", 0, "int64")]
    path = save(tmp_path / "m.onnx", nodes, [tensor("x", 2, 3)], [tensor("y", 2, 3)], held)
    assert flops(trace(path)) == 2 * 2 * 2 * 3 * 3


def test_a_branch_that_a_size_chooses(tmp_path: Path) -> None:
    """What follows has the sizes of this branch, not what both have in common."""
    then = helper.make_graph(PRODUCT, "then", [], [tensor("y", 2, 3)])
    other = helper.make_graph([helper.make_node("Transpose", ["x"], ["z"])], "other", [], [tensor("z", 3, 2)])
    nodes = [
        helper.make_node("Size", ["x"], ["size"]),
        helper.make_node("Equal", ["size", "six"], ["p"]),
        helper.make_node("If", ["p"], ["mid"], name="if", then_branch=then, else_branch=other),
        helper.make_node("MatMul", ["mid", "w"], ["out"]),
    ]
    held = [W, constant("six", 6, "int64")]
    path = save(tmp_path / "m.onnx", nodes, [tensor("x", 2, 3)], [tensor("out", 2, 3)], held)
    found = trace(path)
    assert (flops(found), unentered(found)) == (2 * (2 * 2 * 3 * 3), [])


@pytest.mark.parametrize("taken", [True, False, None])
def test_a_branch(tmp_path: Path, taken: bool | None) -> None:
    then = helper.make_graph(PRODUCT, "then", [], [tensor("y", 2, 3)])
    other = helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "other", [], [tensor("z", 2, 3)])
    nodes = [helper.make_node("If", ["p"], ["out"], name="if", then_branch=then, else_branch=other)]
    inputs = [tensor("x", 2, 3)] + ([tensor("p", kind=TensorProto.BOOL)] if taken is None else [])
    held = [W] if taken is None else [W, constant("p", taken, "bool")]
    found = trace(save(tmp_path / "m.onnx", nodes, inputs, [tensor("out", 2, 3)], held))
    if taken is None:
        assert unentered(found) == [("onnx.If", "", "which branch runs is not constant")]
    else:
        assert flops(found) == (2 * 2 * 3 * 3 if taken else 0)
        assert found.untaken == (("if/else_branch/Relu_0",) if taken else ("if/then_branch//a/b/MatMul",))


def test_a_scan_is_as_long_as_what_it_scans(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["row", "w"], ["out"]), helper.make_node("Identity", ["s"], ["s_out"])]
    inner = helper.make_graph(
        nodes, "b", [tensor("s", 1), tensor("row", 2, 3)], [tensor("s_out", 1), tensor("out", 2, 3)]
    )
    scan = [helper.make_node("Scan", ["s0", "x"], ["s1", "y"], body=inner, num_scan_inputs=1)]
    path = save(tmp_path / "m.onnx", scan, [tensor("s0", 1), tensor("x", 5, 2, 3)], [tensor("y", 5, 2, 3)], [W])
    assert flops(trace(path)) == 5 * 2 * 2 * 3 * 3


def test_sizes_that_the_graph_computes(tmp_path: Path) -> None:
    """x (n, 2, 3) made (2 n, 3) by Shape, Gather, Mul and Concat, then multiplied."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Mul", ["n", "two"], ["m"]),
        helper.make_node("Concat", ["m", "three"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"]),
    ]
    held = [W, *(constant(n, [v], "int64") for n, v in (("zero", 0), ("two", 2), ("three", 3)))]
    path = save(tmp_path / "m.onnx", nodes, [tensor("x", "n", 2, 3)], [tensor("y", None, 3)], held)
    assert flops(trace(path, "x=7,2,3")) == 2 * (2 * 7) * 3 * 3
    with pytest.raises(
        FactoryError, match=r"m\.onnx is float32 \(\?, 2, 3\): give its size. For example: --input x=1,2,3"
    ):
        trace(path)


def test_what_nothing_needs_did_not_run(tmp_path: Path) -> None:
    nodes = [*PRODUCT, helper.make_node("MatMul", ["y", "w"], ["dead"])]
    found = trace(save(tmp_path / "m.onnx", nodes, [tensor("x", 2, 3)], [tensor("y", 2, 3)], [W]))
    assert [(op.id, op.layer) for op in found.ops] == [("/a/b/MatMul", "a.b")]


def test_an_operator_of_somebodys_is_unknown(tmp_path: Path) -> None:
    nodes = [helper.make_node("Attend", ["x", "w"], ["y"], domain="mine")]
    (op,) = trace(save(tmp_path / "m.onnx", nodes, [tensor("x", 2, 3)], [tensor("y", 2, 3)], [W])).ops
    with pytest.raises(UnknownWork, match=r"no work formula for mine\.Attend"):
        work_of(op)


def test_a_function_of_the_models_own_is_laid_open(tmp_path: Path) -> None:
    inner = helper.make_function("mine", "Twice", ["a", "b"], ["d"], [
        helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("MatMul", ["c", "b"], ["d"]),
    ], [helper.make_opsetid("", 17)])  # fmt: skip
    nodes = [helper.make_node("Twice", ["x", "w"], ["y"], domain="mine")]
    path = save(tmp_path / "m.onnx", nodes, [tensor("x", 2, 3)], [tensor("y", 2, 3)], [W], functions=[inner])
    assert flops(trace(path)) == 2 * (2 * 2 * 3 * 3)


def test_weights_in_another_file_are_not_read(tmp_path: Path) -> None:
    held = onnx.TensorProto(name="w", dims=[3, 3], data_type=F, data_location=TensorProto.EXTERNAL)
    held.external_data.add(key="location", value="../../../../etc/passwd")
    path = save(tmp_path / "m.onnx", PRODUCT, [tensor("x", 2, 3)], [tensor("y", 2, 3)], [held])
    assert flops(trace(path)) == 2 * 2 * 3 * 3


def test_sizes_larger_than_life_take_no_room(tmp_path: Path) -> None:
    """ConstantOfShape of 10^12 elements is not made, and its product is a multiplication."""
    nodes = [
        helper.make_node("ConstantOfShape", ["to"], ["big"]),
        helper.make_node("MatMul", ["big", "w"], ["y"]),
    ]
    held = [W, constant("to", [10**12, 3], "int64")]
    path = save(tmp_path / "m.onnx", nodes, [], [tensor("y", None, 3)], held)
    assert flops(trace(path)) == 2 * 10**12 * 3 * 3


@pytest.mark.parametrize("size", [-1, 0, -(2**40)])
def test_a_size_of_0_or_below_is_open(tmp_path: Path, size: int) -> None:
    path = save(tmp_path / "m.onnx", PRODUCT, [tensor("x", size, 3)], [tensor("y", size, 3)], [W])
    with pytest.raises(
        FactoryError, match=r"the input x of m\.onnx is float32 \(\?, 3\): give its size\. For example: --input x=1,3"
    ):
        trace(path)
    assert flops(trace(path, "x=7,3")) == 2 * 7 * 3 * 3


def test_a_size_below_0_inside_is_unknown(tmp_path: Path) -> None:
    nodes = [helper.make_node("Attend", ["x"], ["z"], domain="mine"), helper.make_node("MatMul", ["z", "w"], ["y"])]
    inner = helper.make_graph(nodes, "then", [], [tensor("y", -5, 3)], value_info=[tensor("z", -5, 3)])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "other", [], [tensor("z", 2, 3)])
    branch = [helper.make_node("If", ["p"], ["out"], then_branch=inner, else_branch=other)]
    held = [W, constant("p", True, "bool")]
    found = trace(save(tmp_path / "m.onnx", branch, [tensor("x", 2, 3)], [tensor("out", None, 3)], held))
    (product,) = (op for op in found.ops if op.op == "onnx.MatMul")
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
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="c", **wrong)]
    held = [constant("w", numpy.ones((4, 4, 3, 3)))]
    path = save(tmp_path / "m.onnx", nodes, [tensor("x", 1, 4, 8, 8)], [tensor("y", None, None, None, None)], held)
    said = outcome(path)
    assert said >= 0 if isinstance(said, int) else said.startswith(("m.onnx ", "shape ")) and "\n" not in said
    if name == "group" and size < 1:
        with pytest.raises(
            FactoryError, match=rf"m\.onnx is damaged: .*c has group {size}, but a size must be at least 1"
        ):
            trace(path)


def test_a_loop_runs_a_whole_number_of_times(tmp_path: Path) -> None:
    path = loop(tmp_path / "m.onnx", None, body())
    model = onnx.load(str(path))
    del model.graph.input[1:]
    model.graph.initializer.append(constant("trips", 2.5))
    onnx.save(model, str(path))
    assert unentered(trace(path)) == [("onnx.Loop", "rnn", "how often this loop runs is not constant")]


def test_what_onnx_says_of_a_model_is_one_sentence(tmp_path: Path) -> None:
    for name, nodes, said in (
        (
            "op",
            [helper.make_node("MatMuls", ["x", "w"], ["y"])],
            "No Op registered for MatMuls with domain_version of 17",
        ),
        ("order", [helper.make_node("MatMul", ["x", "none"], ["y"])], "Nodes in a graph must be topologically sorted"),
        (
            "attribute",
            [helper.make_node("MatMul", ["x", "w"], ["y"], a=1)],
            "Unrecognized attribute: a for operator MatMul",
        ),
    ):
        path = save(tmp_path / f"{name}.onnx", nodes, [tensor("x", 2, 3)], [tensor("y", 2, 3)], [W])
        with pytest.raises(FactoryError, match=rf"^{name}\.onnx is not a valid ONNX model: {said}") as caught:
            trace(path)
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith(".")


def test_a_tensor_of_fewer_bytes_or_a_size_below_0(tmp_path: Path) -> None:
    for name, dims, elsewhere in (("fewer", [30, 3], False), ("below", [-3, 3], False), ("far", [-3, 3], True)):
        held = onnx.TensorProto(name="w", dims=dims, data_type=F)
        if elsewhere:
            held.data_location = TensorProto.EXTERNAL
            held.external_data.add(key="location", value="w.bin")
        else:
            held.raw_data = bytes(4 * 9)
        path = save(tmp_path / f"{name}.onnx", PRODUCT, [tensor("x", 2, 3)], [tensor("y", 2, 3)], [held])
        with pytest.raises(FactoryError, match=rf"^{name}\.onnx is not a valid ONNX model: "):
            trace(path)


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    good = save(tmp_path / "m.onnx", PRODUCT, [tensor("x", 2, 3)], [tensor("y", 2, 3)], [W]).read_bytes()
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(good.replace(b"MatMul", b"\xff\xfe\xfd\xfc\xfb\xfa"))
    with pytest.raises(FactoryError, match=r"^damaged\.onnx is damaged: a name in it is not text\.$"):
        trace(damaged)
    wrong = save(tmp_path / "wrong.onnx", PRODUCT, [tensor("x", 2, 4)], [tensor("y", 2, 3)], [W])
    with pytest.raises(FactoryError, match=r"wrong\.onnx has shapes that ONNX cannot infer: "):
        trace(wrong)
