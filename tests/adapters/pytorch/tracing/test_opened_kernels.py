"""Operators of other libraries: their work is what their kernels dispatch, and is unknown where a kernel computes otherwise.

The network multiplies (2, 4) by a weight (5, 4) in an operator, and then by a head (3, 5): 2 x 4 x 5 and 2 x 5 x 3 multiply-adds.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.cpp_extension import include_paths, library_paths
from torch.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula

import reconcile
from reconcile.adapters.pytorch.tracing.seal import COMPUTED
from reconcile.core.causes import Cause
from reconcile.core.work import restore_registry
from reconcile.work import Work, formula
from tests.adapters.pytorch.tracing.test_seal_attacks import compile_library

ROWS, WIDE, INNER, OUT = 2, 4, 5, 3
OPENED, HEAD = ROWS * WIDE * INNER, ROWS * INNER * OUT
SPACE = "reconcile_opened"
FEW = np.float32([1.5, 2, 3])


@torch.library.custom_op(f"{SPACE}::product", mutates_args=())
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w.t()


@torch.library.custom_op(f"{SPACE}::gradients", mutates_args=())
def gradients(g: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return g @ w, g.t() @ x


@product.register_fake
def _(x, w):
    return x.new_empty(len(x), len(w))


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


product.register_autograd(lambda ctx, g: gradients(g, *ctx.saved_tensors), setup_context=keep)


def by_python(ctx, g):
    x, w = ctx.saved_tensors
    return g @ w, g.t() @ x


def operator(name: str, kernel: Callable[..., Any], *, gradient: bool = True) -> Any:
    """A custom operator with this kernel, and a gradient in Python."""

    def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return kernel(x, w)

    made = torch.library.custom_op(f"{SPACE}::{name}", run, mutates_args=())
    if gradient:
        made.register_autograd(by_python, setup_context=keep)
    return made


def into_zeros(x, w):
    """Writes into memory, tile by tile, and chooses by numbers of a tensor."""
    out = torch.zeros(len(x), len(w))
    for row in torch.arange(len(x)).tolist():
        out[row] += x[row] @ w.t()
    return out if out.sum().item() == out.sum().item() else -out


library = torch.library.Library(SPACE, "FRAGMENT")
for name, key in (("registered", "CPU"), ("composite", "CompositeExplicitAutograd")):
    library.define(f"{name}(Tensor x, Tensor w) -> Tensor")
    library.impl(name, lambda x, w: x @ w.t(), key)
library.define("add_product(Tensor(a!) out, Tensor x, Tensor w) -> ()")


def add_product(out, x, w):
    out.add_(x @ w.t())


library.impl("add_product", add_product, "CPU")

OPERATORS = {
    "with an operator for its gradients": product,
    "with gradients in Python": operator("python", lambda x, w: x @ w.t()),
    "of an operator": operator("outer", lambda x, w: product(x, w)),
    "a kernel for a device": torch.ops.reconcile_opened.registered.default,
    "a kernel for all devices": torch.ops.reconcile_opened.composite.default,
    "with constants": operator("constants", lambda x, w: (0.5 * x) @ (w * torch.tensor([2.0, 2, 2, 2])).t()),
    "in a loop": operator("loop", into_zeros),
    "by a number that left": operator("number", lambda x, w: (x * (1 + x.abs().max().item())) @ w.t()),
}


class Net(nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.weight, self.head, self.call = nn.Parameter(torch.randn(INNER, WIDE)), nn.Linear(INNER, OUT), [call]

    def __deepcopy__(self, _memo: Any) -> Net:
        made = type(self)(self.call[0])
        made.load_state_dict(self.state_dict())
        return made

    def forward(self, x):
        return self.head(self.call[0](x, self.weight))


def macs_by_phase(found: Any) -> dict[str, int]:
    (trace,) = found.result.traces
    assert trace.complete, trace.reason
    macs = Counter[str]()
    for row in trace.rows:
        macs[row.phase] += row.work.mac
    return {phase: count for phase, count in macs.items() if count}


def causes_of(run: Any) -> dict[Cause, int]:
    """What leads from the counter to the trace."""
    (statement,) = run.result.statements
    return {line.cause: line.amount for line in statement.adjustments}


def count_step(call: Callable[..., Any]) -> Any:
    model = Net(call)
    with reconcile.count(model) as step:
        model(torch.randn(ROWS, WIDE, requires_grad=True)).sum().backward()
    assert model.weight.grad is not None
    return step


@pytest.mark.filterwarnings("ignore:.*an autograd kernel was not registered")
@pytest.mark.parametrize("way", OPERATORS)
def test_an_operator_is_what_its_kernel_dispatches(way):
    """Both gradients cost what the product costs, whether autograd has them by the operator or follows its kernel."""
    each = OPENED + HEAD
    found = macs_by_phase(count_step(OPERATORS[way]))
    assert found == {"forward": each, "input-gradient": each, "weight-gradient": each}
    run = reconcile.run(torch=Net(OPERATORS[way]), inputs=torch.randn(ROWS, WIDE), counters=["flop_counter"])
    assert macs_by_phase(run) == {"forward": each}
    assert causes_of(run) == {Cause.OP_NOT_COUNTED: 2 * OPENED}
    assert run.exit_code == 0


@pytest.mark.filterwarnings("ignore:.*an autograd kernel was not registered")
@pytest.mark.parametrize("way", OPERATORS)
def test_a_step_computes_the_same_gradients_as_without_a_recorder(way):
    model, x = Net(OPERATORS[way]), torch.randn(ROWS, WIDE)
    model(x).sum().backward()
    plain = model.weight.grad
    model.weight.grad = None
    with reconcile.count(model):
        model(x).sum().backward()
    assert torch.equal(model.weight.grad, plain)


def test_an_operator_that_writes_its_argument():
    def call(x, w):
        out = torch.zeros(ROWS, INNER)
        torch.ops.reconcile_opened.add_product(out, x.detach(), w.detach())
        return out

    model = Net(call)
    with reconcile.count(model) as step:
        model(torch.randn(ROWS, WIDE))
    assert macs_by_phase(step) == {"forward": OPENED + HEAD}


def test_a_formula_of_the_operator_comes_before_its_kernel():
    states = 7 * OPENED
    with restore_registry():
        formula(f"{SPACE}.product", source="a test")(lambda op: Work(mac=states))
        found = macs_by_phase(count_step(product))
    assert found["forward"] == states + HEAD


def test_what_a_library_states_is_its_counters_number_and_not_the_work():
    states = 2 * 3 * OPENED
    packet = torch.ops.reconcile_opened.product
    register_flop_formula(packet)(lambda *args, **kwargs: states)
    try:
        model, x = Net(product), torch.randn(ROWS, WIDE)
        run = reconcile.run(torch=model, inputs=x, counters=["flop_counter"])
        with FlopCounterMode(display=False) as counter:
            model(x)
    finally:
        flop_registry.pop(packet, None)
    (ledger,) = run.result.ledgers
    assert ledger.total == counter.get_total_flops() == states + 2 * HEAD
    assert macs_by_phase(run) == {"forward": OPENED + HEAD}
    assert causes_of(run) == {Cause.FORMULA_DIFFERS: 2 * OPENED - states}


MADE_BEFORE: list[Any] = []


def kept(x, w):
    """The product of an earlier call, of which this one shows nothing."""
    if not MADE_BEFORE:
        MADE_BEFORE.append(x.detach() @ w.detach().t())
    return MADE_BEFORE[0] + 0 * x.sum()


def nearest(x, w):
    found = np.argmax(x.detach().numpy() @ w.detach().numpy().T, 1)
    return torch.from_numpy(found)[:, None] + 0 * x[:, :1] @ w[:, :1].t()


def by_address(x, w):
    out = torch.empty(len(x), len(w))
    found = np.ascontiguousarray(x.detach().numpy() @ w.detach().numpy().T)
    ctypes.memmove(out.data_ptr(), found.ctypes.data, found.nbytes)
    return out


def by_scalars(x, w):
    rows, columns = x.tolist(), w.tolist()
    out = x.new_zeros(len(rows), len(columns))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            out[i, j] = out[i, j] + sum(a * b for a, b in zip(row, column, strict=True))
    return out


def first_product(values):
    """Of the first row, whose bytes are these."""
    return (np.frombuffer(values, np.float32)[:WIDE] @ np.ones((WIDE, INNER), np.float32)).tolist()


HIDDEN = {
    "numpy": lambda x, w: torch.from_numpy(x.detach().numpy() @ w.detach().numpy().T),
    "numpy, that operators read": lambda x, w: torch.from_numpy(x.detach().numpy() @ w.detach().numpy().T).relu(),
    "positions by numpy": nearest,
    "memory that is written at its address": by_address,
    "numbers": by_scalars,
    "a list": lambda x, w: torch.tensor((x.detach().numpy() @ w.detach().numpy().T).tolist()),
    "a few numbers": lambda x, w: torch.tensor((x.detach().numpy()[0] @ w.detach().numpy().T).tolist()) + x[:, :1],
    "a few numbers of bytes": lambda x, w: (
        torch.tensor(first_product(ctypes.string_at(x.untyped_storage().data_ptr(), 4 * WIDE))) + x[:, :1]
    ),
    "an earlier call": kept,
    "nothing": lambda x, w: torch.zeros(len(x), len(w)),
}
"""Kernels that compute past the dispatcher, or not at all."""


@pytest.mark.parametrize("way", HIDDEN)
def test_a_kernel_that_computes_elsewhere_withholds_the_number(way):
    call = operator(f"hidden{list(HIDDEN).index(way)}", HIDDEN[way])
    kept(torch.zeros(ROWS, WIDE), torch.zeros(INNER, WIDE))
    founds = [count_step(call), count_step(call)]  # the memory may be that of the first one's result
    if HIDDEN[way] is not kept:
        founds.append(reconcile.run(torch=Net(call), inputs=torch.randn(ROWS, WIDE), counters=["flop_counter"]))
    for found in founds:
        (trace,) = found.result.traces
        assert [item.op for item in trace.unknown] == [call._qualname.replace("::", ".")]


TABLES = {
    "a global": lambda x, w: x @ w.t() + TABLE,
    "a list of the program": lambda x, w: x @ w.t() + torch.tensor([[0.5] * INNER] * ROWS),
    "in an operator of an operator": lambda x, w: by_table(x, w) + TABLE,
    "given from outside": lambda x, w: x @ w.t() + GIVEN[0],
}
"""Kernels that read what was there before the call."""
TABLE, GIVEN = torch.ones(ROWS, INNER), [torch.ones(ROWS, INNER)]
by_table = operator("by_table", TABLES["a global"])


@pytest.mark.parametrize("way", TABLES)
def test_a_table_is_no_work_unless_it_is_computed_from_the_inputs(way):
    """Another call tells: a table is the same one there."""
    model = Net(operator(f"table{list(TABLES).index(way)}", TABLES[way]))
    run = reconcile.run(torch=model, inputs=torch.randn(ROWS, WIDE), counters=["flop_counter"])
    assert macs_by_phase(run) == {"forward": OPENED + HEAD}


class Computing(Net):
    """Gives its operator what numpy computed."""

    def forward(self, x):
        GIVEN[:] = [torch.from_numpy(x.detach().numpy() @ self.weight.detach().numpy().T)]
        return super().forward(x)


def test_a_table_that_numpy_computes_withholds_the_number():
    model = Computing(operator("given", TABLES["given from outside"]))
    run = reconcile.run(torch=model, inputs=torch.randn(ROWS, WIDE), counters=["flop_counter"])
    (trace,) = run.result.traces
    assert {item.op for item in trace.unknown} == {COMPUTED}


@pytest.mark.parametrize("way", ["items", "a list"])
def test_few_numbers_in_each_of_many_kernels_are_many(way):
    """Four leave and five come back in each kernel; eight may leave a layer."""
    made: dict[int, list[float]] = {}

    def of_items(x, w):
        numbers = [value.item() for value in x[0]]
        return x[:, :1] * 0 + torch.tensor([sum(numbers) * column for column in range(INNER)])

    def of_list(x, w):
        return x[:, :1] * 0 + torch.tensor(made[len(made) - 1])

    class EachRow(Net):
        def forward(self, x):
            rows = []
            for row in x.split(1):
                made[len(made)] = (
                    [float(value) for value in range(INNER)] if way == "items" else first_product(row.numpy())
                )
                rows.append(self.call[0](row.clone(), self.weight))
            return self.head(torch.cat(rows))

    call = operator(f"each{len(way)}", of_items if way == "items" else of_list, gradient=False)
    for rows in (2, 3):
        made.clear()
        run = reconcile.run(torch=EachRow(call), inputs=torch.randn(rows, WIDE), counters=["flop_counter"])
        (trace,) = run.result.traces
        is_known = way == "items" and rows == 2
        assert {item.op for item in trace.unknown} == (set() if is_known else {COMPUTED})


def test_sizes_alone_show_no_work():
    """``register_fake`` runs on meta, and a kernel in Python of all devices runs there itself."""
    x = torch.randn(ROWS, WIDE)
    run = reconcile.run(torch=Net(product), inputs=x, counters=["flop_counter"], device="meta")
    (trace,) = run.result.traces
    if trace.device == "meta":
        assert [(item.op, "register_fake" in item.reason) for item in trace.unknown] == [(f"{SPACE}.product", True)]
    composite = Net(OPERATORS["a kernel for all devices"])
    run = reconcile.run(torch=composite, inputs=x, counters=["flop_counter"], device="meta")
    assert macs_by_phase(run) == {"forward": OPENED + HEAD}


def test_a_mode_of_the_program_around_the_step_meets_the_operator_as_before():
    with FlopCounterMode(display=False) as counter:
        step = count_step(product)
    (trace,) = step.result.traces
    assert f"{SPACE}.product" in {item.op for item in trace.unknown}
    assert counter.get_total_flops() == 3 * 2 * HEAD


SOURCE = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <torch/library.h>
using at::Tensor;
static Tensor by_dispatcher(const Tensor& x, const Tensor& w) { return at::relu(at::matmul(x, w.t())); }
static Tensor loops(const Tensor& x, const Tensor& w) {
  auto out = at::empty({x.size(0), w.size(0)});
  const float *p = x.data_ptr<float>(), *q = w.data_ptr<float>();
  for (int i = 0; i < x.size(0); i++)
    for (int j = 0; j < w.size(0); j++) {
      float sum = 0;
      for (int k = 0; k < x.size(1); k++) sum += p[x.size(1) * i + k] * q[w.size(1) * j + k];
      out.data_ptr<float>()[w.size(0) * i + j] = sum;
    }
  return out;
}
static Tensor by_loops(const Tensor& x, const Tensor& w) { return at::relu(loops(x, w)); }
static Tensor by_backend(const Tensor& x, const Tensor& w) { return at::relu(at::cpu::mm(x, w.t())); }
static Tensor by_number(const Tensor& x, const Tensor& w) {
  return at::mul(at::matmul(x, w.t()), loops(x, w).data_ptr<float>()[0]);
}
TORCH_LIBRARY(reconcile_cpp, m) {
  m.def("by_dispatcher(Tensor x, Tensor w) -> Tensor");
  m.def("by_loops(Tensor x, Tensor w) -> Tensor");
  m.def("by_backend(Tensor x, Tensor w) -> Tensor");
  m.def("by_number(Tensor x, Tensor w) -> Tensor");
}
TORCH_LIBRARY_IMPL(reconcile_cpp, CompositeExplicitAutograd, m) {
  m.impl("by_dispatcher", by_dispatcher);
  m.impl("by_loops", by_loops);
  m.impl("by_backend", by_backend);
  m.impl("by_number", by_number);
}
"""


@pytest.mark.slow
def test_a_kernel_in_cpp_is_recorded_where_it_calls_back(tmp_path):
    compiled = [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    folders = [*(f"-I{path}" for path in include_paths()), *(f"-L{path}" for path in library_paths())]
    compile_library(SOURCE, tmp_path, *compiled, *folders, "-ltorch", "-ltorch_cpu", "-lc10")
    x, space = torch.randn(ROWS, WIDE), torch.ops.reconcile_cpp
    for name in ("by_dispatcher", "by_loops", "by_backend", "by_number"):
        call = getattr(space, name)
        with reconcile.count(model := Net(lambda x, w, call=call: call(x, w.detach()))) as step:
            model(x)
        run = reconcile.run(torch=model, inputs=x, counters=["flop_counter"])
        for found in (step, run):
            if name == "by_dispatcher":
                assert macs_by_phase(found) == {"forward": OPENED + HEAD}
            else:
                (trace,) = found.result.traces
                assert [item.op for item in trace.unknown] == [f"reconcile_cpp.{name}"]


@pytest.mark.parametrize(
    ("norm", "products"),
    [(4e-4, 1), (0.01, 2), (0.3, 3), (1.0, 4), (2.0, 5), (10.0, 5 + 2), (20.0, 5 + 3)],
)
def test_an_exponential_takes_the_products_of_its_norm(norm, products):
    """Taylor polynomials of degree 2, 4, 8, 12 and 18 cost 1 to 5 products; a norm above 3.01 is halved first, and the result
    squared as often (Bader, Blanes and Casas 2019, in float32)."""
    size = 6
    with reconcile.count() as step:
        torch.linalg.matrix_exp(norm * torch.eye(size))
    (trace,) = step.result.traces
    assert trace.totals["matmul"] == 2 * products * size**3


def test_counters_that_see_into_a_kernel_agree_with_its_record():
    """The profiler and the log of the math libraries meet the products of both gradients, which one operator computes."""
    model = Net(product)
    with reconcile.count(model, counters=["flop_counter", "torch.profiler"], witness=True) as step:
        model(torch.randn(ROWS, WIDE, requires_grad=True)).sum().backward()
    found = {ledger.counter: ledger for ledger in step.result.ledgers}
    assert found["torch.profiler"].total == 2 * 3 * (OPENED + HEAD)
    assert found["flop_counter"].total == 2 * 3 * HEAD
    states = {name: ledger.state.value for name, ledger in found.items()}
    assert states.pop("cpu_libraries", "equal") == "equal"
    assert states == {"flop_counter": "explained", "torch.profiler": "equal"}
