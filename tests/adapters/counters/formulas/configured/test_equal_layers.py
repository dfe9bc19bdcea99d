"""Equal layers run once, and the trace has the work of all: held to closed forms, and to what decides that two are not equal."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.adapters.counters.formulas.configured.equal_layers import EqualLayers, NumberRead
from reconcile.adapters.pytorch.call_adapter import CallAdapter
from reconcile.core.records import FORWARD, Trace
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import run_request
from reconcile.work import known_part

WIDTH, TOKENS = 6, 5
ASKS: dict[str, Callable[[int], Any]] = {
    "arithmetic": lambda number: number % 2,
    "comparison": lambda number: number in (1, 3),
    "order": lambda number: 0 < number < 4 and number != 2,
    "a table": lambda number: {1: True, 3: True}.get(number),
    "a list": lambda number: [False, True, False, True, False][number],
    "a name": lambda number: f"{number}" in "13",
}
"""Ways in which a layer finds out that it is the second or the fourth of five."""


class Layer(torch.nn.Module):
    """Two matrices, and a product with its mask; what else it does is its kind."""

    def __init__(self, number: int, width: int, kind: str = "") -> None:
        super().__init__()
        self.number, self.kind = number, kind
        self.up, self.down = torch.nn.Linear(WIDTH, width), torch.nn.Linear(width, WIDTH)

    def forward(self, x: Any, mask: Any) -> Any:
        """``x`` and the mask's mean, (tokens, width)."""
        if self.kind in ASKS and ASKS[self.kind](self.number):
            return self.down(self.up(x))
        if self.kind == "in place":
            x.detach().add_(1)
        y = self.down(self.up(x)) + mask @ x
        return y if self.kind != "object" else SimpleNamespace(y=y)


class Stack(torch.nn.Module):
    """Layers between nothing; ``masks`` says which of two masks each gets, and ``times`` how often all are called."""

    def __init__(self, layers: list[Layer], masks: list[int], times: int = 1) -> None:
        super().__init__()
        self.later = len(layers)  # how many of them are called again
        self.layers, self.masks, self.times = torch.nn.ModuleList(layers), masks, times

    def forward(self, x: Any) -> Any:
        """The same shape as ``x``."""
        masks = [torch.ones(TOKENS, TOKENS, device=x.device) for _ in range(2)]
        for time in range(self.times):
            for layer, mask in list(zip(self.layers, self.masks, strict=True))[: self.later if time else None]:
                x = layer(x, masks[mask and not time])
                x = getattr(x, "y", x)
        return x


def make_stack(widths: list[int], masks: list[int] | None = None, kind: str = "", times: int = 1) -> Stack:
    """A stack on meta whose layers are this wide."""
    with torch.device("meta"):
        layers = [Layer(number, width, kind) for number, width in enumerate(widths)]
        return Stack(layers, masks or [0] * len(widths), times)


def take_trace(model: Stack, trains_input: bool = False) -> Trace:
    """The trace of a training step of the model, which it keeps."""
    request = run_request(counters=("formula:6n",), pass_="training")
    x = torch.zeros(TOKENS, WIDTH, requires_grad=trains_input)
    found = collect_live({"torch": lambda: (model, (x,))}, None, request, lambda _: None)
    (trace,) = found.traces
    assert isinstance(trace, Trace), trace
    return trace


def macs(trace: Trace, layer: str = "", forward: bool = False) -> int:
    """The multiply-adds of the ops in a layer."""
    ops = [op for op in trace.ops if f"{op.layer}.".startswith(layer) and (op.phase == FORWARD or not forward)]
    return sum(known_part(op).work.mac * op.calls for op in ops)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([3, 4]), st.integers(0, 1)), min_size=4, max_size=9))
def test_one_of_equal_layers_runs_and_all_are_counted(kinds: list[tuple[int, int]]) -> None:
    widths, masks = [width for width, _ in kinds], [mask for _, mask in kinds]
    model = make_stack(widths, masks)
    equal = EqualLayers(model)
    trace = take_trace(model)
    ran = set(equal.like.values())
    # the first layer gets a tensor that requires no gradient, the others one that does
    assert len(ran) == len({(kind, number == 0) for number, kind in enumerate(kinds)})
    equal.group({})
    forward = sum(2 * TOKENS * WIDTH * width + TOKENS * TOKENS * WIDTH for width in widths)
    assert macs(equal.expand(trace), "layers.", forward=True) == forward
    weights = 2 * TOKENS * WIDTH * sum(widths)  # gradients of weights, of inputs but the first, of masks
    inputs = weights - TOKENS * WIDTH * widths[0] + TOKENS * TOKENS * WIDTH * (len(widths) - 1)
    assert macs(equal.expand(trace), "layers.") == forward + weights + inputs


@pytest.mark.parametrize("kind", ASKS)
def test_a_layer_that_uses_its_number_fails_and_every_layer_has_its_own_again(kind: str) -> None:
    model = make_stack([4] * 5, kind=kind)
    equal = EqualLayers(model)
    with pytest.raises((NumberRead, TypeError)):
        model(torch.zeros(TOKENS, WIDTH, device="meta"))
    equal.unfold()
    assert [layer.number for layer in model.layers] == [0, 1, 2, 3, 4]
    assert macs(take_trace(model), "layers.", forward=True) == 5 * 2 * TOKENS * WIDTH * 4 + 3 * TOKENS * TOKENS * WIDTH
    assert not equal.like


@pytest.mark.parametrize("kind", ["in place", "object"])
def test_a_layer_with_another_effect_runs_each_time(kind: str) -> None:
    model = make_stack([4] * 5, kind=kind)
    equal = EqualLayers(model)
    take_trace(model)
    assert equal.like == {f"layers.{number}": f"layers.{number}" for number in range(5)}


def test_a_model_that_is_traced_again_is_called_as_before() -> None:
    """A trace calls it by tensors: one that takes them by name would get none of them from two such calls."""
    model = make_stack([4] * 5)
    equal = EqualLayers(model)
    for _ in range(2):  # a trace, and a formula that reads the model
        CallAdapter(model, ((), {"x": torch.zeros(TOKENS, WIDTH)}))
    equal.unfold()
    assert model(x=torch.zeros(TOKENS, WIDTH, device="meta")).shape == (TOKENS, WIDTH)


def test_layers_that_share_a_weight_are_not_folded() -> None:
    model = make_stack([4] * 5)
    model.layers[3].up = model.layers[1].up
    assert not EqualLayers(model).like


def test_a_layer_that_is_like_another_one_in_a_second_round_is_told() -> None:
    for masks, differs in (([0] * 5, False), ([0, 1, 0, 0, 1], True)):
        model = make_stack([4] * 5, masks, times=2)
        equal = EqualLayers(model)
        take_trace(model, trains_input=True)
        assert equal.is_uniform is not differs, masks


def test_layers_that_are_called_more_often_than_others_are_told() -> None:
    for later, uniform in ((5, True), (3, False)):
        model = make_stack([4] * 5, times=2)
        model.later = later
        equal = EqualLayers(model)
        take_trace(model, trains_input=True)
        assert set(equal.like.values()) == {"layers.0"}, later
        assert equal.is_uniform is uniform, later


def test_layers_that_formulas_count_apart_are_grouped_apart() -> None:
    model = make_stack([4] * 6)
    equal = EqualLayers(model)
    trace = take_trace(model)
    groups = equal.group({f"layers.{number}": number % 2 for number in range(6)})
    assert groups == {
        "layers.0": ("layers.0", 1),
        "layers.1": ("layers.1", 3),
        "layers.2": ("layers.1", 2),
    }
    expanded = equal.expand(trace)
    each = 2 * TOKENS * WIDTH * 4 + TOKENS * TOKENS * WIDTH
    found = {path: macs(expanded, path + ".", forward=True) for path in groups}
    assert found == {"layers.0": each, "layers.1": 3 * each, "layers.2": 2 * each}
    assert len({op.id for op in expanded.ops}) == len(expanded.ops)
