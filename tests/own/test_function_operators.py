"""Operators that run functions of the program (torch.cond, while_loop, flex_attention), recorded; what a counter says of them."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.work import UnknownWork, work_of

from .test_torch_models import counted, products, traced

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]  # PyTorch's own
torch = pytest.importorskip("torch")
nn = torch.nn


class Branches(nn.Module):  # type: ignore[name-defined, misc]
    """One product where its input is positive, two where it is not; the input is all ones."""

    def __init__(self, sign: int) -> None:
        super().__init__()
        self.sign = sign
        self.one, self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Any) -> Any:
        total = (self.sign * torch.ones_like(x)).sum()
        return torch.cond(total > 0, lambda y: self.one(y), lambda y: self.down(self.up(y)), (x,))


class Steps(nn.Module):  # type: ignore[name-defined, misc]
    """One of the operators that take a step for every row."""

    def __init__(self, take: Any) -> None:
        super().__init__()
        self.take, self.step = take, nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return self.take(self.step, x)


def scanned(step: Any, x: Any) -> Any:
    from torch._higher_order_ops.scan import scan

    def combined(carry: Any, row: Any) -> Any:
        reached = step(carry) + row
        return reached, reached.clone()

    return scan(combined, torch.zeros(8, device=x.device), x)[1]


def mapped(step: Any, x: Any) -> Any:
    from torch._higher_order_ops.map import map as map_over

    return map_over(lambda row: step(row), x)


def associated(step: Any, x: Any) -> Any:
    from torch._higher_order_ops.associative_scan import associative_scan

    return associative_scan(lambda left, right: step(left) + right, x, 0, combine_mode="generic")


@pytest.mark.parametrize(("sign", "macs"), [(1, 2 * 8 * 8), (-1, 2 * 8 * 16 + 2 * 16 * 8)])
def test_of_a_condition_the_branch_that_runs_is_traced(sign: int, macs: int) -> None:
    assert products(traced(lambda: Branches(sign), (2, 8))) == macs


@pytest.mark.parametrize(("take", "rows"), [(scanned, 5), (mapped, 5), (associated, 5)])
def test_of_an_operator_that_steps_every_step_is_traced(take: Any, rows: int) -> None:
    """An associative scan of 5 rows combines 2 pairs, the one pair of these, and then the 2 rows in between."""
    trace = traced(lambda: Steps(take), (5, 8))
    assert products(trace) == rows * 8 * 8
    assert {op.layer for op in trace.ops if work_of(op).mac} == {"step"}


def test_flop_counter_is_undisturbed_in_the_larger_branch() -> None:
    total = 2 * (2 * 8 * 16 + 2 * 16 * 8)
    with pytest.raises(BeyondCounter, match=f"its total is {total}: of torch.cond it counts the larger branch"):
        counted("flop_counter", lambda: Branches(1), (2, 8))


class Flex(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, causal: bool = False, biased: bool = False) -> None:
        super().__init__()
        self.causal, self.biased = causal, biased

    def forward(self, x: Any) -> Any:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        mask = None
        if self.causal:
            length = x.shape[2]
            mask = create_block_mask(lambda _b, _h, q, k: q >= k, 1, 1, length, length, device=x.device)
        score_mod = (lambda score, _b, _h, q, k: score + (q - k)) if self.biased else None
        return flex_attention(x, x, x, score_mod=score_mod, block_mask=mask)


@pytest.mark.parametrize("causal", [False, True])
def test_flex_attention_is_two_products_whatever_its_mask(causal: bool) -> None:
    from reconcile.adapters.pytorch.tracing.higher_order import BLOCK_MASK_NOT_READ

    trace = traced(lambda: Flex(causal=causal), (1, 2, 128, 16))
    (op,) = [op for op in trace.ops if op.op == "higher_order.flex_attention"]
    assert [tensor.shape for tensor in op.inputs] == [(1, 2, 128, 16)] * 3  # the mask's own tensors are none of them
    assert work_of(op).mac == 2 * (2 * 128 * 128 * 16)
    assert [note for note in trace.notes if note == BLOCK_MASK_NOT_READ] == [BLOCK_MASK_NOT_READ] * causal


def test_of_attention_with_a_score_mod_the_products_are_known() -> None:
    trace = traced(lambda: Flex(biased=True), (1, 2, 128, 16))
    (op,) = [op for op in trace.ops if op.op == "higher_order.flex_attention"]
    with pytest.raises(UnknownWork, match="with the model's own score_mod") as caught:
        work_of(op)
    assert (caught.value.known.mac, "mac" in caught.value.components) == (2 * (2 * 128 * 128 * 16), False)
    assert {"add", "mul", "special"} <= caught.value.components


def test_an_operator_that_runs_functions_has_no_known_work() -> None:
    class Wraps(nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            return torch.ops.higher_order.strict_mode(lambda row: (row * 2,), (x,))[0]

    with pytest.raises(UnknownWork, match=r"no work formula for higher_order.strict_mode"):
        products(traced(Wraps, (2, 8)))
