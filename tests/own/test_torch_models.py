"""PyTorch models made of parts that libraries use and textbooks do not: each is recorded, and what a counter says of it kept."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from reconcile.align.alignment import Alignment
from reconcile.core.conventions import MATMUL, Conventions
from reconcile.core.records import Ledger, Trace
from reconcile.engine.reconcile import books_of, gather_facts
from reconcile.model_zoo.pair import Input, Pair
from reconcile.work import work_of

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]  # PyTorch's and thop's own
torch = pytest.importorskip("torch")
nn = torch.nn


class Built(Pair):
    """A pair of one model, which this function builds, called with float32 tensors of these shapes."""

    def __init__(self, build: Callable[[], Any], shapes: tuple[tuple[int, ...], ...]) -> None:
        super().__init__("built")
        self.build_torch = lambda _params: build()
        self.shapes = shapes

    def inputs(self, p: object) -> list[Input]:
        return [Input(f"x{i}", shape) for i, shape in enumerate(self.shapes)]


def model_of(build: Callable[[], Any], *shapes: tuple[int, ...]) -> Any:
    from reconcile.adapters.pytorch.model import TorchModel

    return TorchModel(Built(build, shapes), None)


def traced(build: Callable[[], Any], *shapes: tuple[int, ...]) -> Trace:
    from reconcile.adapters.pytorch.trace import trace

    return trace(model_of(build, *shapes))


def counted(counter: str, build: Callable[[], Any], *shapes: tuple[int, ...]) -> Ledger:
    capture = importlib.import_module(f"reconcile.adapters.counters.{counter}.capture").capture
    ledger: Ledger = capture(counter, model_of(build, *shapes))
    return ledger


def products(trace: Trace) -> int:
    """Multiply-adds of a trace, by our formulas; UnknownWork where one is not known."""
    return sum(work_of(op).mac * op.calls for op in trace.ops)


class Padded(nn.Module):  # type: ignore[name-defined, misc]
    """Its first sequence is of 2 steps, the other of 4: PyTorch packs them into a nested tensor of 6 rows."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x: Any) -> Any:
        mask = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        mask[0, 2:] = True
        return self.encoder(x, src_key_padding_mask=mask)


def test_a_mask_that_meta_cannot_look_at_is_looked_at_on_the_cpu() -> None:
    """An encoder that is not told to check its mask packs the positions that it keeps; on meta it takes all of them."""
    from reconcile.adapters.pytorch.trace import trace

    def make() -> Any:
        padded = Padded()
        padded.encoder.mask_check = False
        return padded

    model = model_of(make, (2, 4, 8))
    model.device = "meta"
    recorded = trace(model)
    assert recorded.device == "cpu"
    assert recorded.notes[0].startswith("calls other operators on meta than on the CPU"), recorded.notes
    assert products(recorded) == 2 * (6 * 8 * 24 + 2 * (2 * 4 * 4 * 8) + 6 * 8 * 8 + 2 * (6 * 8 * 16))


def test_nested_tensors_without_common_rows_have_no_shape() -> None:
    from reconcile.adapters.pytorch.tracing.records import tensor_record

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


def test_a_weight_without_a_size_has_no_shape_and_no_room() -> None:
    from reconcile.adapters.pytorch.module_tensors import parameter_bytes
    from reconcile.adapters.pytorch.tracing.records import tensor_record

    module = nn.Sequential(nn.LazyLinear(4), nn.Linear(2, 3))
    assert tensor_record(module[0].weight) == (None, "float32")
    assert parameter_bytes(module) == 4 * (2 * 3 + 3)


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


def test_flop_counter_counts_frozen_weights_where_others_fail() -> None:
    from reconcile.adapters.counters.flop_counter.capture import WEIGHTS_WERE_FROZEN

    ledger = counted("flop_counter", Latents, (2, 3, 8))
    assert ledger.total == 2 * (2 * 3) * 8 * 8
    assert ledger.notes == (WEIGHTS_WERE_FROZEN,)


def test_an_assertion_of_the_model_is_no_failure_of_flop_counter() -> None:
    class Asserts(nn.Module):  # type: ignore[name-defined, misc]
        """It passes with frozen weights: a second call with these would hide its failure."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(3))

        def forward(self, x: Any) -> Any:
            if self.weight.requires_grad:
                raise AssertionError("mine")
            return x * self.weight

    with pytest.raises(AssertionError, match=r"^mine$"):
        counted("flop_counter", Asserts, (2, 3))


class Experts(nn.Module):  # type: ignore[name-defined, misc]
    """Four experts, each on its rows: PyTorch's kernel for meta takes bfloat16 alone."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 8, 24))

    def forward(self, x: Any) -> Any:
        ends = torch.tensor([4, 8, 8, 16], dtype=torch.int32, device=x.device)
        return torch.nn.functional.grouped_mm(x, self.weight, offs=ends)


@pytest.mark.skipif(not hasattr(torch.nn.functional, "grouped_mm"), reason="PyTorch 2.10")
def test_products_of_groups_run_on_meta_in_any_precision() -> None:
    from reconcile.adapters.pytorch.trace import trace as traced_of

    model = model_of(Experts, (16, 8))
    model.device = "meta"
    trace = traced_of(model)
    assert trace.device == "meta"
    assert products(trace) == 16 * 8 * 24
    assert [op.outputs for op in trace.ops if op.op == "aten._grouped_mm"] == [(((16, 24), "float32"),)]


@pytest.mark.parametrize(
    ("first", "second"), [((8, 4), (2, 4, 12)), ((2, 4, 4), (4, 8)), ((2, 4, 4), (2, 4, 12)), ((4, 8), (8, 12))]
)
def test_the_stand_in_has_the_shape_that_the_cpu_gives(first: Any, second: Any) -> None:
    from reconcile.adapters.pytorch.tracing.meta_kernels import grouped_mm

    a, b = torch.zeros(first), torch.zeros(second)
    ends = torch.tensor([4, 8], dtype=torch.int32) if len(first) + len(second) != 6 else None
    assert grouped_mm(a, b, ends).shape == torch._grouped_mm(a, b, offs=ends).shape


PREDICATES: dict[str, Callable[[Any], Any]] = {
    "dot": lambda x: torch.dot(x[0], x[0]),
    "vectors": lambda x: x[0] @ x[0],
    "einsum": lambda x: torch.einsum("i,i->", x[0], x[0]),
    "matrix": lambda x: (x @ x[0]).max(),
}


class Decides(nn.Module):  # type: ignore[name-defined, misc]
    """A product of its input, if a product that no output depends on says so."""

    def __init__(self, predicate: Callable[[Any], Any]) -> None:
        super().__init__()
        self.predicate = predicate

    def forward(self, x: Any) -> Any:
        return x @ x if self.predicate(x) > -1 else x


@pytest.mark.parametrize("name", PREDICATES)
def test_fvcore_is_explained_where_a_product_decides_a_branch(name: str) -> None:
    trace = traced(lambda: Decides(PREDICATES[name]), (3, 3))
    ledger = counted("fvcore", lambda: Decides(PREDICATES[name]), (3, 3))
    assert ledger.total == 3 * 3 * 3
    assert products(trace) - ledger.total == (9 if name == "matrix" else 3)
    books = books_of(gather_facts([trace], [ledger], Alignment([])), Conventions(MATMUL))
    assert [(s.residual, s.residuals) for s in books.statements] == [(0, ())]
