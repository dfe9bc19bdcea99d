"""Settings and devices that cannot be: one sentence, before any model runs, and no result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reconcile
from reconcile.core.errors import UsageError
from reconcile.launch.request import RunRequest, run_request
from reconcile.workflow import run

SIZELESS = """
from reconcile.model_zoo.pair import Input, Pair

PAIR = Pair("sizeless", {"rows": 3, "shift": 1})

def inputs(p):
    return [Input("x", (p.rows + p.shift, 4))]

def build_torch(p):
    import torch

    return torch.nn.Linear(4, 5, bias=False)
"""


@pytest.mark.parametrize(("name", "size"), [("frames", "-1"), ("frames", "0"), ("units", "0"), ("filters", "-3")])
def test_a_size_of_the_zoo_is_at_least_1(name: str, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconcile.launch.runner.start_workers", None)
    with pytest.raises(UsageError, match=rf"^gru_demo: {name} must be at least 1, not {size}\.$"):
        run(RunRequest("gru_demo", {name: size}))


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_pairs_settings_are_any_number_but_no_size_below_0(tmp_path: Path) -> None:
    file = tmp_path / "sizeless.py"
    file.write_text(SIZELESS)

    def work(**settings: str) -> Any:
        traces = run(RunRequest(str(file), settings, counters=("thop",))).traces
        return next(trace for trace in traces if trace.framework == "torch").totals["matmul"]

    assert work(shift="-1") == 2 * (3 - 1) * 4 * 5
    with pytest.raises(
        UsageError,
        match=r"^sizeless: at these settings, its input x has the shape \(-4, 4\), and no size is below 0\.$",
    ):
        work(shift="-7")


DEVICES = ["nope", "cpu:x", "", "cuda:99", "CPU"]


@pytest.mark.frameworks
@pytest.mark.parametrize("device", DEVICES)
def test_a_device_that_is_not_there(device: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UsageError, match=rf"^the device {device!r} cannot be used: [^\n]*[^.]\.$"):
        reconcile.run(torch=torch.nn.Linear(4, 5), inputs="1,4", device=device)


def test_a_device_is_for_a_framework_that_takes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for models in ({"tf": "net:make"}, {"jax": "net:make"}):
        with pytest.raises(
            UsageError, match=r"^--device is for a model in PyTorch, and none is given: leave it out\.$"
        ):
            run_request(**models, device="nope")
        assert run_request(**models, device="cpu").device == "cpu"
    assert run_request(tf="net:make", torch="net:make", device="meta").device == "meta"
