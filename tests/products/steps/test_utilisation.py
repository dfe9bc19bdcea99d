"""MFU and HFU of a step that was counted: a division by a peak that is printed beside them."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from click.testing import CliRunner

import reconcile
from reconcile.cli import cli
from reconcile.core.errors import UsageError
from reconcile.core.records import (
    BACKWARD,
    FORWARD,
    INFERENCE,
    INPUT_GRADIENT,
    LOSS,
    OPTIMIZER,
    OTHER,
    PHASES,
    RECOMPUTATION,
    WEIGHT_GRADIENT,
)
from reconcile.engine.phases import PhaseRow
from reconcile.products.steps.utilisation import at_peak, peak_of, utilisation
from reconcile.report.json import to_dict
from reconcile.report.markdown import to_markdown

A100 = 312 * 10**12
"""Dense bf16 of NVIDIA's A100 datasheet."""


@pytest.mark.parametrize("phase", PHASES)
def test_each_phase_is_in_both_in_one_or_beside_them(phase: str) -> None:
    """MFU is forward and backward once, HFU adds what is computed again, and nothing is in none of the three."""
    row = PhaseRow("", {phase: 7})
    both = (FORWARD, LOSS, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
    expected = (7, 7, {}) if phase in both else (0, 7, {}) if phase == RECOMPUTATION else (0, 0, {phase: 7})
    assert (row.mfu_flops, row.hfu_flops, row.other_phases) == expected
    found = utilisation({"flops": 7, f"flops/{phase}": 7}, 1.0, 7)
    assert (found["mfu"], found["hfu"]) == (expected[0] / 7, expected[1] / 7)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="but a time above 0 is wanted"):
        utilisation({"flops": 1}, seconds, 1)


@pytest.mark.frameworks
def test_a_step_has_both_with_the_peak_beside_them() -> None:
    nets: Any = pytest.importorskip("tests.products.steps.nets")
    net = nets.mlp()
    with reconcile.count(net, device="NVIDIA A100-SXM4-80GB") as step:
        nets.functional.cross_entropy(net(nets.rows()), nets.classes()).backward()
    found = step.metrics(seconds=0.5)
    assert found["mfu"] == found["hfu"] == nets.MLP_STEP / (A100 / 2)
    assert (found["seconds"], found["peak"]) == (0.5, A100)
    assert step.metrics()["mfu"] == nets.MLP_STEP / (A100 * step.seconds)


def muon(rows: int, columns: int) -> int:
    """Five turns of Newton and Schulz in Muon: X X', its square, and their sum times X, of the smaller side."""
    short, long = sorted((rows, columns))
    return 5 * 2 * (2 * short * short * long + short**3)


def optimized(nets: Any, net: Any, optimizer: Any) -> None:
    nets.functional.cross_entropy(net(nets.rows()), nets.classes()).backward()
    optimizer.step()


def with_muon(nets: Any, net: Any) -> tuple[Any, dict[str, int]]:
    torch = nets.torch
    optimizer = torch.optim.Muon([weight for weight in net.parameters() if weight.dim() == 2])
    products = muon(nets.WIDE, nets.IN) + muon(nets.OUT, nets.WIDE)
    return lambda: optimized(nets, net, optimizer), {OPTIMIZER: products}


def with_an_evaluation(nets: Any, net: Any) -> tuple[Any, dict[str, int]]:
    def run() -> None:
        net(nets.rows()).sum().backward()
        with nets.torch.no_grad():
            net(nets.rows())

    return run, {INFERENCE: nets.FIRST + nets.SECOND}


def with_a_teacher(nets: Any, net: Any) -> tuple[Any, dict[str, int]]:
    """A frozen one is called with gradients on."""
    teacher = nets.mlp().requires_grad_(False)

    def run() -> None:
        x = nets.rows()
        (net(x) - teacher(x)).square().mean().backward()

    return run, {INFERENCE: nets.FIRST + nets.SECOND}


def with_clipping_and_a_mean_of_weights(nets: Any, net: Any) -> tuple[Any, dict[str, int]]:
    """Clipping by a product of the program's own; the mean of weights (EMA) has none."""
    from copy import deepcopy

    mean = deepcopy(net)

    def run() -> None:
        net(nets.rows()).sum().backward()
        with nets.torch.no_grad():
            net[0].weight.grad.copy_(net[0].weight.grad @ nets.torch.eye(nets.IN))
            for old, new in zip(mean.parameters(), net.parameters(), strict=True):
                old.lerp_(new, 0.1)

    return run, {OTHER: 2 * nets.WIDE * nets.IN**2}


BESIDE = [with_muon, with_an_evaluation, with_a_teacher, with_clipping_and_a_mean_of_weights]


@pytest.mark.frameworks
@pytest.mark.parametrize("made", BESIDE)
def test_what_is_no_pass_of_the_model_is_beside_both(made: Any) -> None:
    nets: Any = pytest.importorskip("tests.products.steps.nets")
    net = nets.mlp()
    run, beside = made(nets, net)
    step = nets.counted(run, net, device="NVIDIA A100-SXM4-80GB")
    more = sum(beside.values())
    found = step.metrics(seconds=1.0)
    assert found["flops"] == nets.MLP_STEP + more
    assert found["mfu"] == found["hfu"] == nets.MLP_STEP / A100
    assert (step.mfu_flops, step.hfu_flops) == (nets.MLP_STEP, nets.MLP_STEP)
    (trace,) = to_dict(step.result)["traces"]
    assert (trace["mfu_flops"], trace["hfu_flops"]) == (nets.MLP_STEP, nets.MLP_STEP)
    (phase,) = beside
    (text,) = [line for line in to_markdown(step.result).splitlines() if "for MFU and HFU" in line]
    assert f"{nets.MLP_STEP:,} FLOPs" in text
    assert f"{phase} {more:,}" in text
    assert step.result.ledgers[0].total == nets.by_hand(run)  # a counter of the step counts both


@pytest.mark.frameworks
def test_without_a_backward_pass_a_call_without_gradients_is_the_forward_pass() -> None:
    nets: Any = pytest.importorskip("tests.products.steps.nets")
    net = nets.mlp()

    def run() -> None:
        with nets.torch.no_grad():
            net(nets.rows())

    step = nets.counted(run, net, device="NVIDIA A100-SXM4-80GB")
    assert nets.phases(step) == {FORWARD: nets.FIRST + nets.SECOND}
    assert step.metrics(seconds=1.0)["mfu"] == (nets.FIRST + nets.SECOND) / A100


class Dtype:
    """A framework's own dtype, which has a text and perhaps a name."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


class Named(Dtype):
    """A dtype with a name, as NumPy, TensorFlow and JAX have it."""

    name = "bfloat16"


@pytest.mark.parametrize("dtype", [Dtype("torch.bfloat16"), Named("<dtype: 'bfloat16'>"), type("bfloat16", (), {})])
def test_a_dtype_may_be_the_frameworks_own(dtype: object) -> None:
    assert peak_of("H100 SXM", dtype) == peak_of("H100 SXM", "bf16")


def test_an_object_that_names_no_device_is_refused() -> None:
    with pytest.raises(UsageError, match="'cuda:0' is not in the table"):
        peak_of(Dtype("cuda:0"), "bf16")


def test_the_least_time_of_a_step() -> None:
    peak = peak_of("H100 SXM", "bf16")
    said = at_peak({"flops/forward": 2 * peak, "flops/recomputation": peak}, "step 1", "H100 SXM", "bf16")
    _, *words = shlex.split(said[said.index("reconcile mfu") :])
    result = CliRunner().invoke(cli, [*words[:-1], "4", "--format", "json"])  # it ends in the S of the seconds
    assert json.loads(result.output)["mfu"] == "1/2"
    assert "would take 2 s for step 1" in said  # what is computed again is HFU's alone
    assert "3 s for HFU" in said
    assert "HFU" not in at_peak({"flops/forward": peak}, "step 1", "H100 SXM", "bf16")
