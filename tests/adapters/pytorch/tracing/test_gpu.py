"""Kernels that no operator launched, by the events of PyTorch's profiler: a kernel is linked to the number of its range."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from reconcile.adapters.pytorch.tracing.unrecorded_work import RAN_IN_NO_OPERATOR, kernels_outside


def event(name, number, linked=0, device="CPU", span=(5, 9), thread=1):
    values = {
        "name": name, "device_type": SimpleNamespace(name=device), "correlation_id": number, "linked_correlation_id": linked,
        "start_ns": span[0], "end_ns": span[1], "duration_ns": span[1] - span[0], "start_thread_id": thread,
    }  # fmt: skip
    return SimpleNamespace(**{name: (lambda value=value: value) for name, value in values.items()})


def kernel(name, linked):
    return event(name, 1000 + linked, linked, "CUDA")


PRODUCT = [event("aten::mm", 1, span=(0, 4)), event("cudaLaunchKernel", 7, linked=1), kernel("sgemm", 1)]


@pytest.mark.parametrize(
    "launched",
    [
        [kernel("void raw<float>(float*)", 0)],
        [event("a user's range", 2), kernel("raw", 2)],
        [event("MyFunctionBackward", 2), kernel("raw", 2)],
        [event("autograd::engine::evaluate_function: MyFunctionBackward", 2), kernel("raw", 2)],
        # a call of CUDA's has a number of its own, which may be that of an operator
        [
            event("a user's range", 2),
            event("aten::mul", 3, linked=9),
            event("cudaLaunchKernel", 2, 2),
            kernel("raw", 2),
        ],
        [event("nccl:all_reduce", 2, span=(3, 4), thread=2), kernel("raw", 2)],
    ],
)
def test_a_kernel_without_an_operator_is_named(launched):
    assert kernels_outside([*PRODUCT, *launched]) == RAN_IN_NO_OPERATOR % "raw"


@pytest.mark.parametrize(
    "launched",
    [
        [],
        [event("cudaLaunchKernel", 1, linked=1)],
        [kernel("Memcpy HtoD", 0), kernel("Memset (Device)", 0)],
        [event("nccl:all_reduce", 2, span=(3, 4)), kernel("ncclDevKernel", 2)],
        [event("triton::product", 2), kernel("product", 2)],
    ],
)
def test_what_operators_launch_and_copies_are_not(launched):
    assert kernels_outside([*PRODUCT, *launched]) == ""


def test_no_operator_at_all_tells_nothing():
    assert kernels_outside([event("aten::mm", 1), kernel("sgemm", 5), kernel("raw", 0)]) == ""


def test_many_are_cut_short():
    names = [f"raw{i}" for i in range(5)]
    assert (
        kernels_outside([*PRODUCT, *(kernel(name, 0) for name in names)])
        == RAN_IN_NO_OPERATOR % "raw0, raw1, raw2, ..."
    )
