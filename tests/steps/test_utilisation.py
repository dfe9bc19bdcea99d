"""MFU and HFU of a step that was counted: a division by a peak that is printed beside them."""

from __future__ import annotations

from typing import Any

import pytest

import reconcile
from reconcile.core.errors import UsageError
from reconcile.steps.utilisation import at_peak, peak_of, utilisation

A100 = 312 * 10**12
"""Dense bf16 of NVIDIA's A100 datasheet."""


def test_recomputation_is_in_hfu_and_not_in_mfu() -> None:
    found = utilisation({"flops": 4 * A100, "flops/forward": A100, "flops/recomputation": A100}, 10.0, A100)
    assert found == {"mfu": 0.3, "hfu": 0.4, "peak": A100}


def test_the_peak_is_the_datasheets() -> None:
    assert peak_of("NVIDIA A100-SXM4-80GB", "bf16") == A100
    assert peak_of("NVIDIA A100-SXM4-80GB", "tf32") == A100 // 2


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="but a time above 0 is wanted"):
        utilisation({"flops": 1}, seconds, 1)


@pytest.mark.frameworks
def test_a_step_has_both_with_the_peak_beside_them() -> None:
    nets: Any = pytest.importorskip("tests.steps.nets")
    net = nets.mlp()
    with reconcile.count(net, device="NVIDIA A100-SXM4-80GB") as step:
        nets.functional.cross_entropy(net(nets.rows()), nets.classes()).backward()
    found = step.metrics(seconds=0.5)
    assert found["mfu"] == found["hfu"] == nets.MLP_STEP / (A100 / 2)
    assert (found["seconds"], found["peak"]) == (0.5, A100)
    assert step.metrics()["mfu"] == nets.MLP_STEP / (A100 * step.seconds)


@pytest.mark.frameworks
def test_without_a_device_there_is_no_utilisation() -> None:
    nets: Any = pytest.importorskip("tests.steps.nets")
    net = nets.mlp()
    with reconcile.count(net) as step:
        net(nets.rows()).sum().backward()
    assert {"mfu", "hfu", "peak"} & set(step.metrics()) == set()


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("device", "dtype", "said"),
    [("H1000", "bf16", "is not in the table of peaks"), ("T4", "bf16", "has no peak for 'bf16'")],
)
def test_an_unknown_device_is_refused_before_the_step(device: str, dtype: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        reconcile.count(device=device, dtype=dtype)


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


@pytest.mark.frameworks
def test_a_step_takes_the_dtype_of_pytorch() -> None:
    import torch

    step = reconcile.count(device="H100 SXM", dtype=torch.bfloat16)
    assert step._peak == peak_of("H100 SXM", "bf16")


def test_an_object_that_names_no_device_is_refused() -> None:
    with pytest.raises(UsageError, match="'cuda:0' is not in the table"):
        peak_of(Dtype("cuda:0"), "bf16")


def test_the_least_time_of_a_step() -> None:
    peak = peak_of("H100 SXM", "bf16")
    said = at_peak({"flops": 3 * peak, "flops/recomputation": peak}, "step 1", "H100 SXM", "bf16")
    assert "MFU is 2 s over" in said  # what is computed again is HFU's alone
    assert "HFU 3 s over" in said
    assert "HFU" not in at_peak({"flops": peak}, "step 1", "H100 SXM", "bf16")
