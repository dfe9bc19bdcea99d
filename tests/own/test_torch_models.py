"""PyTorch models made of parts that libraries use and textbooks do not: each is recorded, and what a counter says of it kept."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.core.records import Ledger, Trace

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]  # PyTorch's and thop's own
torch = pytest.importorskip("torch")
nn = torch.nn


def model_of(build: Callable[[], Any], *shapes: tuple[int, ...]) -> Any:
    """A model that is called with float32 tensors of these shapes."""
    from reconcile.adapters.pytorch.model import TorchModel

    inputs = [SimpleNamespace(shape=shape, dtype="float32") for shape in shapes]
    return TorchModel(SimpleNamespace(build_torch=lambda _params: build(), inputs=lambda _params: inputs), None)


def traced(build: Callable[[], Any], *shapes: tuple[int, ...]) -> Trace:
    from reconcile.adapters.pytorch.trace import trace

    return trace(model_of(build, *shapes))


def counted(counter: str, build: Callable[[], Any], *shapes: tuple[int, ...]) -> Ledger:
    capture = importlib.import_module(f"reconcile.adapters.counters.{counter}.capture").capture
    ledger: Ledger = capture(counter, model_of(build, *shapes))
    return ledger


class Padded(nn.Module):  # type: ignore[name-defined, misc]
    """Its first sequence is of 2 steps, the other of 4: PyTorch packs them into a nested tensor of 6 rows."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x: Any) -> Any:
        mask = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        mask[0, 2:] = True
        return self.encoder(x, src_key_padding_mask=mask)


def test_a_nested_tensor_is_recorded_by_its_rows() -> None:
    from reconcile.adapters.pytorch.trace import PADDING

    ledger = counted("thop", Padded, (2, 4, 8))
    linear = {entry.id: entry.value for entry in ledger.entries if "linear" in entry.id}
    assert linear == {f"encoder.layers.{i}.linear{j}": 6 * 8 * 16 for i in (0, 1) for j in (1, 2)}
    shapes = {s.op.inputs[0].shape for s in ledger.sightings if s.op.layer.endswith("linear1")}
    assert shapes == {(6, 8)}
    met = [s.op for s in counted("flop_counter", Padded, (2, 4, 8)).sightings]
    fused = [op for op in met if op.op == "aten._transformer_encoder_layer_fwd"]
    assert [op.inputs[0].shape for op in fused] == [(6, 8), (6, 8)]
    assert traced(Padded, (2, 4, 8)).notes[-1] == PADDING


def test_nested_tensors_without_common_rows_have_no_shape() -> None:
    from reconcile.adapters.pytorch.records import tensor_record

    columns = torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(2, 5)])
    assert tensor_record(columns).shape is None
    jagged = torch.nested.nested_tensor([torch.zeros(2, 8), torch.zeros(4, 8)], layout=torch.jagged)
    assert tensor_record(jagged).shape == (6, 8)


def lazy() -> Any:
    return nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyConv1d(3, 2))


def test_lazy_modules_get_their_weights_before_they_are_counted() -> None:
    macs = 2 * 5 * 8 * 4 + 2 * 3 * 3 * (5 * 2)
    trace = traced(lazy, (2, 5, 8))
    assert [op.op for op in trace.ops if "uniform" in op.op or "empty" in op.op] == []
    totals = {name: counted(name, lazy, (2, 5, 8)).total for name in ("thop", "fvcore", "flop_counter")}
    assert totals == {"thop": macs, "fvcore": macs, "flop_counter": 2 * macs}


def test_a_weight_without_a_size_yet_has_no_shape_and_takes_no_room() -> None:
    from reconcile.adapters.pytorch.memory import weight_of
    from reconcile.adapters.pytorch.records import tensor_record

    module = nn.Sequential(nn.LazyLinear(4), nn.Linear(2, 3))
    assert tensor_record(module[0].weight) == (None, "float32")
    assert weight_of(module) == 4 * (2 * 3 + 3)


class Queries(nn.Module):  # type: ignore[name-defined, misc]
    """Returns a view of a parameter, as the latents of a Perceiver and the prompts of SAM are."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.zeros(3, 8))

    def forward(self, batch: int) -> Any:
        return self.values.expand(batch, -1, -1)


class Latents(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.queries, self.mix = Queries(), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return x + self.mix(self.queries(len(x)))


def test_flop_counter_counts_frozen_weights_where_it_fails_on_others() -> None:
    from reconcile.adapters.counters.flop_counter.capture import FROZEN

    ledger = counted("flop_counter", Latents, (2, 3, 8))
    assert ledger.total == 2 * (2 * 3) * 8 * 8
    assert ledger.notes == (FROZEN,)


def test_an_assertion_of_the_models_own_is_no_failure_of_flop_counter() -> None:
    class Asserts(nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, _x: Any) -> Any:
            raise AssertionError("mine")

    with pytest.raises(AssertionError, match=r"^mine$"):
        counted("flop_counter", Asserts, (2, 3))
