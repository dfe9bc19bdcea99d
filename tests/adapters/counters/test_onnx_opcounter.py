"""onnx-opcounter in its environment: its own numbers beside every case, a file, what it stops on, and an exported pair."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

import reconcile
from reconcile.adapters.counters.onnx_opcounter.capture import sums_of
from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.launch.environments.definitions import Environment
from reconcile.launch.environments.provision import ensure
from tests.adapters.counters.in_environment import invoked, report_of, save_onnx, values_of
from tests.adapters.counters.onnx_opcounter_cases import CASES

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

COUNTS = """
import contextlib, io, json, sys
import onnx
from onnx import TensorProto, helper
from onnx_opcounter import calculate_macs, onnx_opcounter

def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

onnx.shape_inference.infer_shapes = lambda model, **_: model  # the shapes are those of the case
for kind, inputs, outputs, attrs in json.load(sys.stdin):
    ins, outs = (["%s%d" % (word, i) for i in range(len(shapes))] for word, shapes in (("i", inputs), ("o", outputs)))
    node = helper.make_node(kind, ins, outs, **attrs)
    graph = helper.make_graph([node], "g", list(map(value, ins, inputs)), list(map(value, outs, outputs)))
    with contextlib.redirect_stdout(io.StringIO()):
        macs = calculate_macs(helper.make_model(graph))
    print(int(macs))
"""
"""calculate_macs of a graph of one node, with the shapes of a case."""


OTHERS = Environment(
    "onnx-opcounter-0.1.0", "0.1.0, which needs Python 3.12", "3.12", ("onnx",), ("onnx-opcounter==0.1.0",)
)
RELEASES = pytest.mark.parametrize(("environment", "release"), [("onnx_opcounter", "0.0.4"), (OTHERS, "0.1.0")])


@RELEASES
def test_every_case_is_what_it_counts(environment: str | Environment, release: str) -> None:
    texts = []
    cases = [case for case in CASES if release in case.releases]
    for case in cases:
        attrs = {name: value for name, value in case.op.attrs.items() if name != "given"}
        inputs, outputs = (
            [[size or 0 for size in t.shape or ()] for t in ts] for ts in (case.op.inputs, case.op.outputs)
        )
        texts.append((case.op.op.partition(".")[2], inputs, outputs, attrs))
    reported = values_of(environment, COUNTS, texts)
    assert [(c.op, c.total, n) for c, n in zip(cases, reported, strict=True) if c.total != n] == []


def network(path: Path, kind: str = "Resize", mode: str = "linear") -> str:
    """A convolution, a scalar's sum that no output needs, a pool, and one more layer; a batch of 2."""
    import numpy
    from onnx import helper

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="/conv/Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["s", "s"], ["unused"], name="/sum/Add"),
        helper.make_node("GlobalMaxPool", ["c"], ["p"], name="/pool/GlobalMaxPool"),
        helper.make_node(kind, ["p", "", "k"], ["y"], name="/last/Last", mode=mode),
    ]
    held = {"w": (4, 3, 3, 3), "b": (4,), "s": (), "k": numpy.array([1, 1, 2, 2], "float32")}
    return save_onnx(path, nodes, {"x": ["n", 3, 8, 8], "y": ["n", 4, 2, 2]}, held)


@pytest.mark.parametrize("convention", ["matmul", "all"])
def test_a_file_is_reconciled(tmp_path: Path, convention: str) -> None:
    """2 x 4 outputs of 64 positions; from the sum of scalars on, which no output needs, it adds in floating point."""
    file = network(tmp_path / "net.onnx")
    report = report_of("onnx_opcounter", tmp_path, "--onnx", file, "--input", "2,3,8,8", "--convention", convention)
    values = {entry["op"]: entry["value"] for entry in report["ledgers"][0]["entries"]}
    outputs = 2 * 4 * 64
    pooled, raised = 2 * 4, 2 * 4 * 4
    assert values == {
        "onnx.Conv": outputs * 27, "onnx.Add": 1, "onnx.GlobalMaxPool": pooled, "onnx.Resize": 11 * raised,
    }  # fmt: skip
    dead = [line["amount"] for line in report["statements"][0]["adjustments"] if line["cause"] == "dead-op"]
    assert dead == [-2]


def test_a_file_is_reconciled_with_the_newer_release(tmp_path: Path) -> None:
    """2 x 4 windows of 64 positions in place of one number for each; and a cubic interpolation stops it no more."""
    file = network(tmp_path / "net.onnx", mode="cubic")
    done = reconcile.run(
        onnx=file, inputs=("2,3,8,8",), python=str(ensure(OTHERS)), counters=("onnx_opcounter",)
    ).result
    (ledger,), (statement,) = done.ledgers, done.statements
    outputs = 2 * 4 * 64
    assert (ledger.total, ledger.mismatches, ledger.unchecked) == (outputs * 27 + 1 + outputs, (), 0), ledger.reason
    assert (statement.to_total, statement.residual) == (2 * outputs * 27, 0)


def test_an_operator_that_stops_it_is_named(tmp_path: Path) -> None:
    """Its formula for interpolations returns nothing for cubic ones (onnx_opcounter.py:140)."""
    file = network(tmp_path / "net.onnx", mode="cubic")
    done = invoked("onnx_opcounter", tmp_path, "--onnx", file, "--input", "2,3,8,8")
    assert "onnx-opcounter stops on net.onnx at Resize /last/Last (TypeError" in " ".join(done.output.split())


def test_the_export_of_a_pair_does_its_work(tmp_path: Path) -> None:
    """gru_demo: a GRU counts 1 for each of 97 states of 96 units, and not 97 x 3 x 96 x (4064 + 96)."""
    report = report_of("onnx_opcounter", tmp_path, "--model", "gru_demo")
    entries = {entry["op"]: entry["value"] for entry in report["ledgers"][0]["entries"] if entry["layer"] == "gru"}
    assert entries["onnx.GRU"] == 97 * 96
    differs = [line for line in report["statements"][0]["adjustments"] if line["cause"] == "formula-differs"]
    assert [(line["op"], line["amount"]) for line in differs] == [("onnx.GRU", 2 * 97 * 3 * 96 * (4064 + 96))]


def test_it_runs_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ONNX infers no shapes, the package saves the model and starts onnxruntime (onnx_opcounter.py:99 to :106)."""
    package, module, library = (ModuleType(name) for name in ("onnx_opcounter", "module", "library"))
    ran: list[str] = []

    def calculate_macs(model: str) -> None:
        vars(module)["onnx"].save(model, "+all-intermediate.onnx")
        vars(module)["rt"].InferenceSession(model)

    vars(library).update(save=lambda *_: ran.append("save"), InferenceSession=lambda *_: ran.append("run"))
    before = {"calculate_macs": calculate_macs, "rt": library, "onnx": library}
    save = vars(library)["save"]
    vars(module).update(before)
    vars(package)["onnx_opcounter"] = module
    monkeypatch.setitem(sys.modules, "onnx_opcounter", package)
    with pytest.raises(BeyondCounter, match="it would run the model, which reconcile does not"):
        sums_of("net", "net.onnx")
    assert ran == []
    assert {name: vars(module)[name] for name in before} == before
    assert vars(library)["save"] is save
