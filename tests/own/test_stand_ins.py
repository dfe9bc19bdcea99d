"""Whatever stands in for a model, a number that is published is the number that ran (tests/own/stand_ins.py), and in the
caller's process nothing is left changed."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import reconcile
from reconcile.adapters.pytorch.tracing import trace_device
from reconcile.adapters.pytorch.tracing.trace_device import NOT_RUN_BESIDE_META
from reconcile.core.errors import UsageError

from .stand_in_steps import TRAINED
from .stand_in_tensors import column_parallel  # with the cases beside it
from .stand_ins import CASES, ROWS, Case, linear, x

pytestmark = pytest.mark.frameworks


def published(case: Case, **more: Any) -> list[int] | None:
    """The numbers to publish of a run with one counter; None if the input is refused."""
    model, inputs, _ = case
    try:
        run = reconcile.run(torch=model, inputs=inputs, counters=["flop_counter"], **more)
    except UsageError:
        return None
    return [figure.flops for figure in run.verdict.figures]


WITHHELD = {
    "attention_of_a_wrapper": "flop_counter counts the attention of the wrapper's outer shape",
    "low_rank_weight": "flop_counter counts the wrapper's outer shape",
}
"""Cases without a number, and why."""


@pytest.mark.parametrize("name", CASES)
def test_a_number_is_what_ran(name: str) -> None:
    """No number is as good where a counter is unexplained; none is asked for where a plain call fails."""
    case = CASES[name]()
    found = published(case)
    assert found in ((None,) if case[2] is None else (None, [], [2 * case[2]]))
    assert found != [] or name in WITHHELD


REFUSED = sorted(name for name, make in CASES.items() if make()[2] is None)


@pytest.mark.parametrize("name", sorted(set(CASES) - set(REFUSED)))
def test_on_meta_too(name: str) -> None:
    """A user who asks for meta wants less time, not the work of another model."""
    case = CASES[name]()
    assert published(case, device="meta") in (None, [], [2 * (case[2] or 0)])


@pytest.mark.parametrize("name", REFUSED)
def test_what_stops_a_call_on_the_cpu_is_said_of_meta(name: str) -> None:
    model, inputs, _ = CASES[name]()
    with pytest.raises((RuntimeError, IndexError)) as plain:
        model(*inputs)
    with pytest.raises(UsageError) as refused:
        reconcile.run(torch=model, inputs=inputs, counters=["flop_counter"], device="meta")
    assert str(plain.value).strip().split("\n")[0][:40] in str(refused.value)


def test_a_large_run_on_meta_says_what_it_did_not_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is made beside it; two dtypes that PyTorch does not multiply are met all the same."""
    monkeypatch.setattr(trace_device, "BYTES", 0)
    run = reconcile.run(torch=linear(), inputs=(x(),), counters=["flop_counter"], device="meta")
    (figure,) = run.verdict.figures
    assert [note for note in figure.notes if NOT_RUN_BESIDE_META in note] != []
    assert "on meta, where tensors have no values" in figure.sentence
    with pytest.raises(UsageError, match="same dtype"):
        reconcile.run(
            torch=linear(), inputs=(torch.ones(ROWS, 4, dtype=torch.int64),), counters=["flop_counter"], device="meta"
        )


@pytest.mark.parametrize("name", sorted(WITHHELD))
def test_without_the_counter_the_trace_is_of_what_ran(name: str) -> None:
    model, inputs, products = CASES[name]()
    assert products is not None
    run = reconcile.run(torch=model, inputs=inputs, counters=["thop"])
    assert [trace.totals["matmul"] for trace in run.result.traces] == [2 * products]


@pytest.mark.parametrize("convention", ["matmul", "all"])
def test_what_the_class_of_a_weight_runs_is_told_from_the_layer(convention: str) -> None:
    """thop counts the layer, and hooks nothing of the products with the scales."""
    model, inputs, products = CASES["quantised_weight"]()
    run = reconcile.run(torch=model, inputs=inputs, counters=["thop"], convention=convention)
    (statement,) = [s for s in run.result.statements if s.from_ == "thop"]
    scales = {"call-not-seen": model[0].weight.numel()} if convention == "all" else {}  # type: ignore[index,union-attr]
    assert (statement.residual, {a.cause.value: a.amount for a in statement.adjustments}) == (0, scales)
    assert [figure.macs for figure in run.verdict.figures] == [products if convention == "matmul" else None]


@pytest.mark.parametrize("name", TRAINED)
def test_a_step_is_what_ran(name: str) -> None:
    case = TRAINED[name]()
    assert case[2] is not None
    assert published(case, pass_="training") in ([], [2 * case[2]])


def test_a_sharded_weight_counts_as_the_process_multiplies_it(world: None) -> None:
    case = column_parallel()
    assert case[2] == 65_536 // 2
    run = reconcile.run(torch=case[0], inputs=case[1], counters=["flop_counter"])
    assert [trace.totals["matmul"] for trace in run.result.traces] == [65_536]
    assert [figure.flops for figure in run.verdict.figures] in ([], [65_536])


# Nothing of the caller's process changes.


@functools.cache
def table(device: str) -> torch.Tensor:
    return torch.full((WIDTH,), 16.0, device=device)


WIDTH = 4


class Kept(nn.Module):
    """Has everything that a run could leave behind."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = linear()
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(0.5)
        self.calls: list[int] = []
        self.layer.weight.tag = [1]  # type: ignore[attr-defined]
        self.layer.weight.register_hook(lambda gradient: gradient)
        self.layer.register_forward_hook(lambda *_: None)
        self.layer.weight.grad = torch.ones_like(self.layer.weight)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        self.calls.append(len(self.calls))
        noise = random.random() + np.random.random()
        shifted = given + table(str(given.device)) * noise
        given.add_(1)
        return self.dropout(self.norm(self.layer(shifted)))  # type: ignore[no-any-return]


def state(model: Kept, given: torch.Tensor) -> dict[str, Any]:
    """Everything about the model, its input and this process that a run could change, as plain values."""
    torch_state = torch.get_rng_state()
    return {
        "random": (torch_state.tolist(), random.getstate(), np.random.get_state()[1].tolist()),  # type: ignore[index]
        "modes": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")),
        "default": (torch.get_default_dtype(), torch.get_default_device()),
        "stacks": (len(torch.overrides._get_current_function_mode_stack()), torch._C._len_torch_dispatch_stack()),
        "table": table("cpu").tolist(),
        "weights": {name: value.tolist() for name, value in model.state_dict().items()},
        "training": [module.training for module in model.modules()],
        "gradients": [None if p.grad is None else p.grad.tolist() for p in model.parameters()],
        "flags": [(p.requires_grad, p.stride(), p.device) for p in model.parameters()],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "calls": list(model.calls),
        "hooks": [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()],
        "tags": [sorted(vars(p)) for p in model.parameters()],
        "input": (given.tolist(), given.stride(), given.requires_grad, given.grad, given._version),
    }


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    device=st.sampled_from(["cpu", "meta"]),
    step=st.booleans(),
    train=st.booleans(),
    strided=st.booleans(),
    factory=st.booleans(),
    seed=st.integers(0, 5),
)
def test_nothing_of_the_callers_changes(
    device: str, step: bool, train: bool, strided: bool, factory: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    model = Kept().train(train)
    data = torch.randn(WIDTH, 3).t() if strided else torch.randn(3, WIDTH)
    table("cpu")
    before = state(model, data)
    how = {"pass_": "training"} if step else {}
    made: Any = (lambda: (Kept(), (torch.ones(3, WIDTH),))) if factory else model
    reconcile.run(
        torch=made, inputs=None if factory else (data,), counters=["thop", "flop_counter"], device=device, **how
    )
    assert {name: value for name, value in state(model, data).items() if value != before[name]} == {}
