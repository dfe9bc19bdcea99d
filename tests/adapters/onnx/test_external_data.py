"""A model says the same whatever lies in the files that its tensors point to: nothing opens them, wherever the tensor stands."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from reconcile.adapters.onnx.load import read_model, ready
from reconcile.adapters.onnx.trace import trace
from reconcile.products.files.model_file import FileError

ROOT = Path(__file__).parents[3]
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
SECRET = "secret.bin"
INT64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
SIZES = {INT64: 8, FLOAT: 4, BOOL: 1}


def value(name: str, shape: Any, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def far(dims: list[int], kind: int = INT64, name: str = "far") -> Any:
    """A tensor whose data are in the secret file."""
    held = TensorProto(name=name, dims=dims, data_type=kind, data_location=TensorProto.EXTERNAL)
    held.external_data.add(key="location", value=SECRET)
    held.external_data.add(key="length", value=str(math.prod(dims) * SIZES[kind]))
    return held


def model(nodes: list[Any], held: Any = (), out: Any = (None, None), functions: Any = (), sparse: Any = ()) -> Any:
    graph = helper.make_graph(
        nodes, "g", [value("x", [2, 6])], [value("y", out)], list(held), sparse_initializer=list(sparse)
    )
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8, functions=list(functions))


def node(op: str, *names: str, out: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, list(names), [out], **attributes)


SIZED = [node("ConstantOfShape", "far", out="big"), node("MatMul", "x", "big")]
"""The file's values decide the sizes of a product."""


def sparse() -> Any:
    return helper.make_sparse_tensor(far([2], FLOAT, "values"), far([2], INT64, "indices"), [6, 6])


def of_constant() -> Any:
    return model([node("Constant", out="far", value=far([2])), *SIZED])


def of_a_sum() -> Any:
    one = helper.make_tensor("one", INT64, [2], [0, 0])
    held = node("Constant", out="file", value=far([2]))
    return model([held, node("Add", "file", "one", out="far"), *SIZED], [one])


def of_fill() -> Any:
    one = helper.make_tensor("one", INT64, [1], [2])
    fill = node("ConstantOfShape", "one", out="far", value=far([1]))
    return model([fill, *SIZED], [one])


def of_initializer() -> Any:
    return model(SIZED, [far([2])])


def of_sparse_constant() -> Any:
    return model([node("Constant", out="w", sparse_value=sparse()), node("MatMul", "x", "w")])


def of_sparse_initializer() -> Any:
    held = sparse()
    held.values.name = "w"
    return model([node("MatMul", "x", "w")], sparse=[held])


def of_a_function() -> Any:
    inner = [node("Constant", out="far", value=far([2])), *SIZED]
    return model(
        [node("F", "x", domain="mine")], functions=[helper.make_function("mine", "F", ["x"], ["y"], inner, OPSETS)]
    )


def of_a_functions_attribute() -> Any:
    held = node("Constant", out="far")
    held.attribute.add(name="value", ref_attr_name="size", type=onnx.AttributeProto.TENSOR)
    function = helper.make_function("mine", "F", ["x"], ["y"], [held, *SIZED], OPSETS, attributes=["size"])
    return model([node("F", "x", domain="mine", size=far([2]))], functions=[function])


def of_a_default() -> Any:
    held = node("Constant", out="far")
    held.attribute.add(name="value", ref_attr_name="size", type=onnx.AttributeProto.TENSOR)
    function = helper.make_function(
        "mine", "F", ["x"], ["y"], [held, *SIZED], OPSETS, attribute_protos=[helper.make_attribute("size", far([2]))]
    )
    return model([node("F", "x", domain="mine")], functions=[function])


def of_a_branch() -> Any:
    inner = [node("Constant", out="far", value=far([2])), *SIZED]
    branch = helper.make_graph(inner, "b", [], [value("y", (None, None))])
    yes = helper.make_tensor("yes", BOOL, [], [True])
    return model([node("If", "yes", then_branch=branch, else_branch=branch)], [yes])


def of_a_condition() -> Any:
    one = helper.make_graph([node("Relu", "x")], "a", [], [value("y", (2, 6))])
    two = helper.make_graph([node("Neg", "x")], "b", [], [value("y", (2, 6))])
    held = node("Constant", out="far", value=far([], BOOL))
    return model([held, node("If", "far", then_branch=one, else_branch=two)])


def of_an_exponent() -> Any:
    return model([node("Constant", out="far", value=far([], FLOAT)), node("Pow", "x", "far")])


def without_a_location() -> Any:
    made = of_constant()
    del made.graph.node[0].attribute[0].t.external_data[:]
    return made


MAKERS = (
    of_constant, of_a_sum, of_fill, of_initializer, of_sparse_constant, of_sparse_initializer, of_a_function,
    of_a_functions_attribute, of_a_default, of_a_branch, of_a_condition, of_an_exponent, without_a_location,
)  # fmt: skip


def said(made: Any) -> Any:
    """The model as it is read and its trace, or the sentence that refuses it."""
    ready()
    try:
        read_, _ = read_model(made.SerializeToString(), "m.onnx", None)
        return read_.proto.SerializeToString(deterministic=True), trace(read_)
    except FileError as error:
        return str(error)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: str(make.__name__))
def test_the_file_changes_nothing(make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    without = said(make())
    for first, second in ((6, 1), (6, 5)):
        numpy.array([first, second, 3], "int64").tofile(SECRET)
        assert said(make()) == without
    assert not isinstance(without, str) or (without.startswith("m.onnx ") and "\n" not in without)


def test_a_size_that_is_kept_in_another_file_is_said_to_be() -> None:
    shaped = model([node("Reshape", "x", "far")], [far([2])])
    assert said(shaped) == (
        "m.onnx keeps far in another file, which is not opened, and the value decides a shape: save the model in one file "
        "(onnx.save with save_as_external_data=False)."
    )


def test_weights_elsewhere_keep_their_shape() -> None:
    """The product is counted by the shapes: 2 * 6 * 5 multiply-adds."""
    for made in (
        model([node("MatMul", "x", "far")], [far([6, 5], FLOAT)]),
        model([node("Constant", out="far", value=far([6, 5], FLOAT)), node("MatMul", "x", "far")]),
    ):
        read_, _ = read_model(made.SerializeToString(), "m.onnx", None)
        (product,) = (op for op in trace(read_).ops if op.op == "onnx.MatMul")
        assert (product.inputs[1].shape, product.outputs[0].shape) == ((6, 5), (2, 5))


def test_one_place_turns_tensors_into_values() -> None:
    """It is the place that knows which tensors are not in the file."""
    texts = {path.name: path.read_text() for path in (ROOT / "adapters" / "onnx").glob("*.py")}
    assert [name for name, text in texts.items() if "to_array" in text] == ["elsewhere.py"]
