"""MFU and HFU of a step that was counted: a division by a peak that is printed beside them."""

from __future__ import annotations

from typing import Any

import pytest

import reconcile
from reconcile.core.errors import UsageError
from reconcile.products.steps.utilisation import peak_of, utilisation

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
    nets: Any = pytest.importorskip("tests.products.steps.nets")
    net = nets.mlp()
    with reconcile.count(net, device="NVIDIA A100-SXM4-80GB") as step:
        nets.functional.cross_entropy(net(nets.rows()), nets.classes()).backward()
    found = step.metrics(seconds=0.5)
    assert found["mfu"] == found["hfu"] == nets.MLP_STEP / (A100 / 2)
    assert (found["seconds"], found["peak"]) == (0.5, A100)
    assert step.metrics()["mfu"] == nets.MLP_STEP / (A100 * step.seconds)


@pytest.mark.frameworks
def test_without_a_device_there_is_no_utilisation() -> None:
    nets: Any = pytest.importorskip("tests.products.steps.nets")
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
