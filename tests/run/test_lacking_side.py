"""A counter of a framework in which the pair has no model."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli

PAIR = """
from reconcile.model_zoo.pair import Input, Layer, Pair

PAIR = Pair(name="half", layers=(Layer("dense", torch="dense"),))


def inputs(p):
    return [Input("x", (2, 3))]


def build_torch(p):
    import torch

    net = torch.nn.Sequential()
    net.dense = torch.nn.Linear(3, 4)
    return net
"""


@pytest.mark.frameworks
def test_it_is_refused_if_no_other_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "half.py"
    file.write_text(PAIR)
    words = ["run", "--model", str(file), "--out", str(tmp_path / "out"), "-q", "--counter", "tf.profiler@frozen"]
    done = CliRunner().invoke(cli, words, prog_name="reconcile")
    assert done.exit_code == 2
    says = "has no TensorFlow model for tf.profiler@frozen: name a counter of PyTorch."
    assert done.output.startswith("Error: ")
    assert says in done.output
    both = CliRunner().invoke(cli, [*words, "--counter", "thop"], prog_name="reconcile")
    assert both.exit_code == 0, both.output
