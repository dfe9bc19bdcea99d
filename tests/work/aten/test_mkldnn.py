"""oneDNN's fused products: the work of the product and of the step apart, as PyTorch dispatches them, and the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from reconcile.work import Work, known_part, work_of
from tests.work.test_composites import whole
from tests.work.torch_records import work_dispatched

F = torch.nn.functional
fused, mkl = torch.ops.mkldnn, torch.ops.mkl
pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN")

UNARY: dict[str, tuple[Callable[[Any], Any], list[float], str]] = {
    "none": (lambda y: y, [], ""),
    "relu": (torch.relu, [], ""),
    "sigmoid": (torch.sigmoid, [], ""),
    "tanh": (torch.tanh, [], ""),
    "swish": (F.silu, [], ""),
    "hardswish": (F.hardswish, [], ""),
    "hardsigmoid": (F.hardsigmoid, [], ""),
    "hardtanh": (lambda y: F.hardtanh(y, -0.5, 0.5), [-0.5, 0.5], ""),
    "leaky_relu": (lambda y: F.leaky_relu(y, 0.1), [0.1], ""),
    "gelu": (F.gelu, [], "none"),
    "gelu of tanh": (lambda y: F.gelu(y, approximate="tanh"), [], "tanh"),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}


def agree(op: Any, args: tuple[Any, ...], apart: Callable[[], Any]) -> None:
    torch.testing.assert_close(op(*args), apart(), rtol=1e-3, atol=1e-4)
    assert work_of(whole(op, *args)) == work_dispatched(apart)


def t(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", UNARY)
def test_a_linear_layer_and_a_step(name: str, bias: bool, packed: bool) -> None:
    step, scalars, algorithm = UNARY[name]
    x, w, b = t(2, 3, 4), t(5, 4), t(5) if bias else None
    weight = fused._reorder_linear_weight(w, 6) if packed else w
    args = (x, weight, b, name.split()[0], scalars, algorithm)
    agree(fused._linear_pointwise.default, args, lambda: step(F.linear(x, w, b)))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", BINARY)
def test_a_linear_layer_and_a_step_with_another_tensor(name: str, bias: bool) -> None:
    x, other, w, b = t(6, 4), t(6, 5).abs() + 1, t(5, 4), t(5) if bias else None
    agree(
        fused._linear_pointwise.binary, (x, other, w, b, name), lambda: BINARY[name](F.linear(x, w, b), other)
    )  # fmt: skip


@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_layer_of_mkl(bias: bool) -> None:
    if not torch.backends.mkl.is_available():
        pytest.skip("this PyTorch has no MKL")
    x, w, b = t(6, 4), t(5, 4), t(5) if bias else None
    packed = mkl._mkl_reorder_linear_weight(w, 6)
    assert work_of(whole(mkl._mkl_linear.default, x, packed, w, b, 6)) == work_dispatched(lambda: F.linear(x, w, b))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("name", ["none", "relu", "gelu of tanh"])
def test_a_convolution_and_a_step(name: str, groups: int, packed: bool) -> None:
    step, scalars, algorithm = UNARY[name]
    x, w, b = t(2, 6, 8, 7), t(9, 6 // groups, 3, 2), t(9) if groups == 1 else None
    where = ([1, 0], [2, 1], [1, 1], groups)
    padding, stride, dilation, _ = where
    weight = fused._reorder_convolution_weight(w, *where, [2, 6, 8, 7]) if packed else w
    agree(
        fused._convolution_pointwise.default,
        (x, weight, b, *where, name.split()[0], scalars, algorithm),
        lambda: step(F.conv2d(x, w, b, stride, padding, dilation, groups)),
    )


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("then", [None, "relu"])
def test_a_convolution_and_two_steps(then: str | None, in_place: bool) -> None:
    x, w, b = t(2, 3, 6, 6), t(5, 3, 3, 3), t(5)
    rest = (w, b, [1, 1], [1, 1], [1, 1], 1, "add", None, then, [], None)
    step = torch.relu if then else (lambda y: y)
    if in_place:
        op, args = fused._convolution_pointwise_.binary, (torch.ones(2, 5, 6, 6), x, *rest)
    else:
        op, args = fused._convolution_pointwise.binary, (x, torch.ones(2, 5, 6, 6), *rest)
    work = work_dispatched(lambda: step(torch.ones(2, 5, 6, 6) + F.conv2d(x, w, b, padding=1)))
    assert work_of(whole(op, *args)) == work == Work(
        mac=2 * 5 * 36 * 27, accumulators=2 * 5 * 36, add=2 * (2 * 5 * 36), cmp=2 * 5 * 36 if then else 0
    )  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("groups", [1, 3])
def test_a_transposed_convolution_and_a_step(groups: int, packed: bool) -> None:
    x, w, b = t(2, 6, 4, 5), t(6, 9 // groups, 3, 2), t(9)
    where = ([1, 0], [1, 0], [2, 1], [1, 1], groups)
    padding, more, stride, dilation, _ = where
    weight = fused._reorder_convolution_transpose_weight(w, *where, [2, 6, 4, 5]) if packed else w
    agree(
        fused._convolution_transpose_pointwise.default,
        (x, weight, b, *where, "relu", [], ""),
        lambda: torch.relu(F.conv_transpose2d(x, w, b, stride, padding, more, groups, dilation)),
    )


def test_a_step_of_another_name_is_unknown_and_the_product_is_not() -> None:
    op = whole(fused._linear_pointwise.default, t(6, 4), t(5, 4), None, "relu", [], "")
    known = known_part(op._replace(attrs={**op.attrs, "attr": "other"}))
    assert known.work == Work(mac=120, accumulators=30)
    assert known.unknown
    assert not known.unknown & {"mac", "accumulators"}
