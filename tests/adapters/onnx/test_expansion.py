"""Functions that call each other are counted before they are written out: 10^12 nodes are refused at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from reconcile.adapters.onnx.load import check_expansion, read_model, ready
from reconcile.products.files.model_file import FileError

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]


def tensor(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])


def chain(domain: str, op: str, times: int) -> list[Any]:
    """This number of calls of an operation, one after another, from x to y."""
    names = ["x", *(f"v{n}" for n in range(1, times)), "y"]
    return [helper.make_node(op, [a], [b], domain=domain) for a, b in pairwise(names)]


def model(nodes: list[Any], functions: list[Any]) -> Any:
    graph = helper.make_graph(nodes, "g", [tensor("x")], [tensor("y")])
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8, functions=functions)


def nested(depth: int, times: int) -> Any:
    """Functions f0, f1, ..., each of which calls the next this number of times; the last is as many Relus."""
    functions = [
        helper.make_function("mine", f"f{n}", ["x"], ["y"], chain("mine", f"f{n + 1}", times), OPSETS)
        for n in range(depth - 1)
    ]
    functions.append(helper.make_function("mine", f"f{depth - 1}", ["x"], ["y"], chain("", "Relu", times), OPSETS))
    return model(chain("mine", "f0", 1), functions)


@pytest.mark.parametrize(("depth", "times"), [(12, 10), (40, 2), (2, 500)])
def test_more_nodes_than_fit_are_refused_before_they_are_made(depth: int, times: int) -> None:
    with pytest.raises(
        FileError, match=rf"^net\.onnx has {times**depth:,} nodes if its functions are written out, more"
    ):
        read_model(nested(depth, times).SerializeToString(), "net.onnx", None)


def test_those_that_fit_are_written_out() -> None:
    ready()
    made, _ = read_model(nested(3, 4).SerializeToString(), "net.onnx", None)
    assert [node.op_type for node in made.proto.graph.node] == ["Relu"] * 4**3


def test_a_function_that_calls_itself_is_named() -> None:
    functions = [
        helper.make_function("mine", "a", ["x"], ["y"], chain("mine", "b", 1), OPSETS),
        helper.make_function("mine", "b", ["x"], ["y"], chain("mine", "a", 1), OPSETS),
    ]
    with pytest.raises(FileError, match=r"^net\.onnx is not a valid ONNX model: its function [ab] calls itself\.$"):
        check_expansion("net.onnx", model(chain("mine", "a", 1), functions))


def test_calls_in_the_graphs_of_a_branch_count() -> None:
    inner = helper.make_graph(chain("mine", "f0", 1), "then", [], [tensor("y")])
    branch = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
    functions = list(nested(6, 10).functions)
    with pytest.raises(FileError, match=rf"has {1 + 2 * 10**6:,} nodes"):
        check_expansion("net.onnx", model([branch], functions))


def test_functions_nested_deeper_than_python_recurses_count() -> None:
    made = nested(5000, 1)
    check_expansion("net.onnx", made)
    assert onnx.ModelProto.FromString(made.SerializeToString()) == made
