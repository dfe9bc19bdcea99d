"""A training step through a real worker: what the run says of it, and of what cannot see it."""

from __future__ import annotations

import pytest

from reconcile import workflow

pytest.importorskip("torch")

from reconcile.core.causes import State
from reconcile.core.errors import EXIT_OK
from reconcile.engine.verdict import verdict
from reconcile.launch import user_models
from reconcile.launch.request import RunRequest
from reconcile.report import reports

NET = """
import torch
from torch import nn

def net():
    return nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 5))

"""


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    (folder / "trained.py").write_text(NET)

    def asked(function, shape, convention, **options):
        inputs = user_models.read_inputs([shape])
        factories = {"torch": f"trained:{function}"}
        request = RunRequest(
            convention=convention, factories=factories, inputs=inputs, paths=(str(folder),), device="meta", **options
        )
        return workflow.run(request)

    return asked


def test_a_training_step(ask):
    result = ask("net", "3,2,5,5", "matmul", training="adam")
    conv, linear = 2 * 3 * 36 * 9, 2 * 3 * 36 * 5
    (trace,) = result.traces
    assert result.by_phase(trace) == {
        "forward": conv + linear,
        "loss": 0,
        "input-gradient": linear,
        "weight-gradient": conv + linear,
        "optimizer": 0,
    }
    assert result.pass_ == "training"
    assert result.exit_code == EXIT_OK
    states = {x.counter: x.state for x in result.ledgers}
    assert states == {"thop": State.NOT_COMPARABLE, "fvcore": State.NOT_COMPARABLE, "flop_counter": State.EXPLAINED}
    assert {x.reason for x in result.ledgers if x.total is None} == {"it sees the forward pass only"}
    statement = next(s for s in result.statements if s.from_ == "flop_counter")
    assert statement.residual == 0
    assert statement.from_total - statement.to_total == conv  # two groups: the weights' gradient is counted twice
    (figure,) = verdict(result).figures
    assert "per training step of" in figure.sentence
    assert [note for note in figure.notes if "torch.optim.Adam" in note], figure.notes
    assert [
        name for name, text in reports.render(result, ("md", "csv", "json"), statement, "").items() if not text
    ] == []
