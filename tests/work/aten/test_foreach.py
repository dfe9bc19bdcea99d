"""Operators on lists of tensors: each is compared with the operator on one tensor, one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import ZERO, UnknownWork, Work, known_part, load, registered_formulas, work_of
from tests.work.torch_records import record, work_dispatched

load()
SIZES = ((2, 3), (4,), ())
UNARY = sorted(
    name[len("aten._foreach_") :]
    for name in registered_formulas()
    if name.startswith("aten._foreach_") and hasattr(torch, name[len("aten._foreach_") :])
)
BINARY = ("add", "clamp_max", "clamp_min", "div", "maximum", "minimum", "mul", "sub")
TERNARY = ("addcdiv", "addcmul")


def tensors() -> list[torch.Tensor]:
    return [torch.rand(size) + 1 for size in SIZES]


def of_lists(name: str, *lists: Any, **more: Any) -> Work:
    """The work of the operator, which returns its results, and of its twin in place: the same."""
    (op,) = record(getattr(torch, f"_foreach_{name}"), *lists, **more)
    (in_place,) = record(getattr(torch, f"_foreach_{name}_"), [t.clone() for t in lists[0]], *lists[1:], **more)
    assert in_place.outputs == op.outputs
    assert work_of(in_place) == work_of(op)
    return work_of(op)


def one_by_one(name: str, *lists: Any, **more: Any) -> Work:
    return sum((work_dispatched(getattr(torch, name), *each, **more) for each in zip(*lists, strict=True)), ZERO)


@pytest.mark.parametrize("name", [n for n in UNARY if hasattr(torch, f"_foreach_{n}_") and n not in BINARY + TERNARY])
def test_of_one_list(name: str) -> None:
    more = {"lerp": (tensors(), 0.25), "pow": (3,)}.get(name, ())
    lists = [item if isinstance(item, list) else [item] * len(SIZES) for item in more]
    expected = one_by_one(name, tensors(), *lists)
    assert of_lists(name, tensors(), *more) == expected
    assert expected != ZERO or name in ("zero",)


@pytest.mark.parametrize("name", BINARY)
def test_of_two_lists_and_of_a_list_and_numbers(name: str) -> None:
    expected = one_by_one(name, tensors(), tensors())
    assert expected != ZERO
    assert of_lists(name, tensors(), tensors()) == expected
    assert of_lists(name, tensors(), 2.0) == expected
    assert of_lists(name, tensors(), [2.0, 3.0, 4.0]) == expected


@pytest.mark.parametrize("name", TERNARY)
def test_of_three_lists(name: str) -> None:
    three = tensors(), tensors(), tensors()
    assert of_lists(name, *three) == one_by_one(name, *three)
    assert of_lists(name, *three, value=2) == one_by_one(name, *three, value=2)
    scaled = [1, 2, 3]  # of the first tensor alone nothing is multiplied
    expected = sum(
        (one_by_one(name, *[[each] for each in part], value=v) for *part, v in zip(*three, scaled, strict=True)), ZERO
    )
    assert of_lists(name, *three, scaled) == expected
    assert of_lists(name, *three, torch.tensor([1.0, 2.0, 3.0])) == one_by_one(name, *three, value=2)


def test_of_exponents_and_of_a_scaled_list() -> None:
    assert of_lists("pow", tensors(), [2, 3, 0.5]) == Work(mul=6 + 2 * 4, special=1)
    assert of_lists("add", tensors(), tensors(), alpha=2) == Work(add=11, mul=11)


def test_norms_and_largest_elements() -> None:
    assert work_dispatched(torch._foreach_norm, tensors()) == one_by_one("norm", tensors())
    assert work_dispatched(torch._foreach_norm, tensors(), 1) == Work(cmp=11, add=11 - 3)
    assert work_dispatched(torch._foreach_max, tensors()) == Work(cmp=11 - 3)


def test_a_list_of_products_has_its_multiply_adds() -> None:
    """The only operator on lists that multiplies matrices."""
    firsts, seconds = [torch.ones(2, 3), torch.ones(4, 5)], [torch.ones(3, 7), torch.ones(5, 6)]
    assert work_dispatched(torch._foreach_mm, firsts, seconds) == Work(mac=42 + 120, accumulators=14 + 24)


def test_every_operator_on_lists_has_a_formula() -> None:
    schemas = {s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith(("aten::_foreach_", "aten::_amp_"))}
    names = {name.replace("::", ".").rstrip("_") for name in schemas}
    assert sorted(names - set(registered_formulas())) == []


def test_an_unknown_size_is_unknown() -> None:
    (op,) = record(torch._foreach_add, tensors(), 1)
    with pytest.raises(UnknownWork, match="no output"):
        work_of(op._replace(outputs=()))


def stepped(optimizer: Any, fused: bool, steps: int, **more: Any) -> list[Any]:
    weights = [torch.ones(size, requires_grad=True) for size in SIZES[:2]]
    made = optimizer(weights, lr=0.5, fused=fused, foreach=False if not fused else None, **more)
    for _ in range(steps - 1):
        for weight in weights:
            weight.grad = torch.rand_like(weight)
        made.step()
    for weight in weights:
        weight.grad = torch.rand_like(weight)
    return [op for op in record(made.step) if any(t.shape in SIZES[:2] for t in op.inputs)]


def total(ops: list[Any]) -> Work:
    return sum((work_of(op) * op.calls for op in ops), ZERO)


@pytest.mark.parametrize("decay", [0, 0.5])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    ("optimizer", "more"),
    [
        (torch.optim.Adam, {}),
        (torch.optim.Adam, {"amsgrad": True}),
        (torch.optim.AdamW, {}),
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.5}),
        (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.5, "nesterov": True}),
        (torch.optim.Adagrad, {}),
    ],
)
def test_a_fused_optimizer_does_what_its_operators_do(optimizer: Any, more: Any, maximize: bool, decay: float) -> None:
    if more.get("nesterov"):
        more = {**more, "dampening": 0}  # PyTorch has no other
    more = {**more, "maximize": maximize, "weight_decay": decay}
    for steps in (1, 2):
        parts = total(stepped(optimizer, False, steps, **more))
        fused = stepped(optimizer, True, steps, **more)
        assert [op.op for op in fused if "_fused_" in op.op] != []
        if more.get("nesterov") and steps == 2:
            parts = parts + Work(mul=10)  # the kernel multiplies by 1 - dampening, whatever it is
        assert total(fused) == parts


def test_gradients_are_unscaled_first() -> None:
    weights, gradients = [torch.ones(2, 3)], [torch.ones(2, 3)]
    found = {}
    for scale in (None, torch.ones(())):
        with torch.no_grad():
            (op,) = record(
                torch._fused_sgd_, weights, gradients, [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0,
                nesterov=False, maximize=False, is_first_step=True, grad_scale=scale, found_inf=None,
            )  # fmt: skip
        found[scale is None] = work_of(op)
    assert found == {True: Work(mul=6, add=6), False: Work(mul=6, add=6, div=6)}


def test_what_is_not_fixed_has_no_products() -> None:
    (op,) = record(torch._foreach_powsum, tensors())
    assert known_part(op)[:2] == (ZERO, frozenset(SINGLE_COMPONENTS))
    (op,) = record(torch._amp_foreach_non_finite_check_and_unscale_, tensors(), torch.zeros(()), torch.ones(()))
    assert work_of(op) == Work(cmp=11, mul=11)
