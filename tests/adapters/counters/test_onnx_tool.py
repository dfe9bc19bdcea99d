"""onnx-tool in its environment: its own profiles beside every case, ONNX files, and models that are exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.counters.in_environment import invoked, report_of, save_onnx, values_of
from tests.adapters.counters.onnx_tool_cases import CASES, NOW

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

PROFILES = """
import json, sys
import onnx
from onnx_tool.node import NODE_REGISTRY

class Tensor:
    def __init__(self, shape):
        self.shape = shape
    def get_shape(self):
        return list(self.shape)

for kind, inputs, outputs, attrs, given in json.load(sys.stdin):
    names = ["i%d" % index for index in range(given)]
    made = onnx.helper.make_node(kind, names, ["o"], **attrs)
    node = NODE_REGISTRY.get(kind + "Node")(made)
    inputs += [[]] * (given - len(inputs))
    print(int(node.profile([Tensor(shape) for shape in inputs], [Tensor(shape) for shape in outputs])[0]))
"""
"""Each operator's own profile, with the shapes of a case."""


def test_every_case_is_what_its_profile_says() -> None:
    known = [case for case in CASES if case.missed is None and NOW[0] in case.releases]
    texts = []
    for case in known:
        attrs = {name: value for name, value in case.op.attrs.items() if name not in ("given", "B")}
        inputs = [list(tensor.shape or ()) for tensor in case.op.inputs]
        given = 4 if case.op.attrs.get("B", "") is None else case.op.attrs["given"]
        kind = case.op.op.partition(".")[2]
        texts.append((kind, inputs, [list(t.shape or ()) for t in case.op.outputs], attrs, given))
    reported = values_of("onnx_tool", PROFILES, texts)
    assert [(c.op, c.total, n) for c, n in zip(known, reported, strict=True) if c.total != n] == []


def amounts(report: dict[str, Any], cause: str) -> dict[str, int]:
    (statement,) = report["statements"]
    return {line["op"]: line["amount"] for line in statement["adjustments"] if line["cause"] == cause}


def network(path: Path) -> str:
    """Convolution, pool, transposed convolution, sigmoid, dense; and a tanh that no output needs."""
    from onnx import helper

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="/conv/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c"], ["p"], name="/pool/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("ConvTranspose", ["p", "u"], ["t"], strides=[2, 2]),
        helper.make_node("Sigmoid", ["t"], ["s"], name="/gate/Sigmoid"),
        helper.make_node("GlobalAveragePool", ["s"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "d"], ["y"], name="/dense/Gemm", transB=1),
        helper.make_node("Tanh", ["y"], ["unused"]),
    ]
    held = {"w": (4, 3, 3, 3), "b": (4,), "u": (4, 5, 2, 2), "v": (7, 5), "d": (7,)}
    return save_onnx(path, nodes, {"x": ["n", 3, 8, 8], "y": ["n", 7]}, held)


@pytest.mark.parametrize("convention", ["matmul", "all", "textbook"])
def test_a_file_is_reconciled(tmp_path: Path, convention: str) -> None:
    """The transposed convolution: 2 * 4 * 16 inputs reach 20 outputs each, and 2 * 5 * 64 outputs are taken for inputs."""
    file = network(tmp_path / "net.onnx")
    report = report_of("onnx_tool", tmp_path, "--onnx", file, "--input", "2,3,8,8", "--convention", convention)
    differs = amounts(report, "formula-differs")
    assert differs["onnx.ConvTranspose"] == -2 * (2 * 5 * 64 * 20 - 2 * 4 * 16 * 20)
    assert amounts(report, "dead-op") == {"onnx.Tanh": -2 * 2 * 7 * 2 * (32 + 2 + 4)}


def test_the_export_of_a_pair_does_its_work(tmp_path: Path) -> None:
    """gru_demo: 100 x 256 to 98 x 127 positions (stride 2) are not written here; its GRU is 97 steps of 3 * 96 * (4064 + 96)."""
    report = report_of("onnx_tool", tmp_path, "--model", "gru_demo")
    layers = {entry["layer"]: 0 for entry in report["ledgers"][0]["entries"]}
    for entry in report["ledgers"][0]["entries"]:
        layers[entry["layer"]] += entry["value"]
    steps, states = 97, 97 * 96
    macs = steps * 3 * 96 * (4064 + 96)
    assert layers["gru"] == macs + steps * 6 * 96 + states * (3 + 2 * 32 + (32 + 2 + 4) + 5)


def test_a_shape_that_it_infers_wrongly(tmp_path: Path) -> None:
    """The length of vectors along given axes: onnx-tool does not read the input that names them, and takes one length of all."""
    import numpy
    from onnx import helper

    nodes = [
        helper.make_node("ReduceL2", ["x", "axes"], ["n"], name="/unit/ReduceL2", keepdims=1),
        helper.make_node("Clip", ["n", "low"], ["c"], name="/unit/Clip"),
        helper.make_node("Div", ["x", "c"], ["y"], name="/unit/Div"),
    ]
    held = {"axes": numpy.array([2]), "low": numpy.array(1e-12, "float32")}
    file = save_onnx(tmp_path / "unit.onnx", nodes, {"x": ["n", 5, 6], "y": ["n", 5, 6]}, held, opset=18)
    report = report_of("onnx_tool", tmp_path, "--onnx", file, "--input", "2,5,6", "--convention", "all")
    numel, lengths = 2 * 5 * 6, 2 * 5
    values = {entry["op"]: entry["value"] for entry in report["ledgers"][0]["entries"]}
    assert values == {"onnx.ReduceL2": 25 * numel, "onnx.Clip": 2 * 1, "onnx.Div": 4 * numel}
    squares, sums, roots, limits, quotients = numel, numel - lengths, lengths, lengths, numel
    assert report["statements"][0]["to_total"] == squares + sums + roots + limits + quotients


def test_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    """onnx-tool keeps its nodes by name: of several, the last."""
    import onnx

    file = network(tmp_path / "net.onnx")
    proto = onnx.load(file)
    proto.graph.node[3].name = proto.graph.node[0].name
    onnx.save(proto, file)
    done = invoked("onnx_tool", tmp_path, "--onnx", file, "--input", "2,3,8,8")
    assert "several nodes of one name" in " ".join(done.output.split())
