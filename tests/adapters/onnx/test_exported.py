"""A pair without an ONNX model: PyTorch's export of its PyTorch side."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.adapters.shared.refusal import CannotCount
from reconcile.align.alignment import Alignment
from reconcile.core.protocol import TRACE
from reconcile.core.records import Layer, Trace
from reconcile.work import work_of
from reconcile.worker.main import Worker
from tests.workers import request

pytestmark = pytest.mark.frameworks

PAIR = """
import torch
from {module} import Input, Layer, Pair


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(5, 7)
        self.encoder = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)

    def forward(self, x):
        y = self.dense(x)
        return {body}


class Model(Pair):
    name = "net"
    params = {{"batch": 2}}
    layers = (Layer("product", torch="dense"),)

    def build_torch(self, p):
        return Net()

    def inputs(self, p):
        return [Input("x", (p.batch, 3, 5))]


PAIR = Model()
"""


def worker(tmp_path: Path, body: str) -> Worker:
    path = tmp_path / "net.py"
    path.write_text(PAIR.format(module="reconcile.model_zoo.pair", body=body))
    return Worker(request("onnx", pair=str(path)))


def exported(tmp_path: Path, body: str) -> Trace:
    made = worker(tmp_path, body)
    trace = made.take(TRACE, made._meta()["params"])
    assert isinstance(trace, Trace)
    return trace


def macs(trace: Trace) -> dict[str, int]:
    """Multiply-adds by the outermost layer."""
    found: dict[str, int] = {}
    for op in trace.ops:
        layer = op.layer.partition(".")[0]
        found[layer] = found.get(layer, 0) + work_of(op).mac * op.calls
    return {layer: count for layer, count in found.items() if count}


@pytest.mark.parametrize("body", ["y", "y.permute(0, -1, 1)"])
def test_the_export_has_the_pairs_layers(tmp_path: Path, body: str) -> None:
    """2 x 3 rows by 5 x 7; the exporter writes the axes of a permutation as the model does, -1 too, which ONNX refuses."""
    assert worker(tmp_path, body)._meta()["frameworks"] == ["torch", "onnx"]
    assert macs(exported(tmp_path, body)) == {"dense": 2 * 3 * 5 * 7}


def test_an_encoder_layer_is_exported_in_its_parts(tmp_path: Path) -> None:
    """On 2 x 3 rows of 6: four products with 6 x 6, two of heads in all positions, and two with 6 x 8."""
    attention = 2 * 3 * (4 * 6 * 6) + 2 * (2 * 3 * 3 * 6)
    found = macs(exported(tmp_path, "self.encoder(y[..., :6])"))
    assert found == {"dense": 2 * 3 * 5 * 7, "encoder": attention + 2 * 3 * 2 * 6 * 8}


def test_a_model_that_cannot_be_exported_says_so(tmp_path: Path) -> None:
    with pytest.raises(CannotCount, match=r"PyTorch cannot export this model to ONNX \(\w+: .*fft"):
        exported(tmp_path, "torch.fft.fft(y)")


def test_its_layers_are_those_of_the_framework_it_came_from() -> None:
    align = Alignment([Layer("product", torch="dense", tf="dense_1")])
    layers = [align.layer(framework, "dense.inner") for framework in ("torch", "onnx", "tf")]
    assert layers == ["product", "product", "tf:dense.inner"]
