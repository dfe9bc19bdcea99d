"""A kernel of Triton is launched as a call of an operator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from reconcile.products.kernels.pytorch.launched_kernels import run_as_operator


def test_a_kernel_may_have_more_arguments_than_an_operator() -> None:
    noted: list[Any] = []
    kernel = SimpleNamespace(__name__="many", arg_names=[f"stride_{i}" for i in range(70)])
    given = run_as_operator(
        lambda: noted.append("begun"), lambda *given: noted.append(given[-1]), lambda _, *given, **more: given,
        kernel, *range(70), grid=(1,),
    )  # fmt: skip
    assert given == (*range(70),)
    assert noted == ["begun", [1]]
