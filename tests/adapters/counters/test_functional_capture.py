"""The capture of counters of functions, with a counter of their design that patches three functions and hooks nn.GRU."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from reconcile.adapters.counters.patched_functions.flops_profiler import Profiler, ledger
from reconcile.adapters.pytorch.model import TorchModel
from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.core.records import Ledger
from tests.adapters.counters.small_nets import Does

F = torch.nn.functional
COUNTS: list[list[float]] = []
ORIGINALS: dict[Any, Any] = {}


def wrap(function: Any, formula: Any) -> Any:
    """As the counters do it: the original is found again by its __str__."""
    ORIGINALS[function.__str__] = function

    def patched(*args: Any, **kwargs: Any) -> Any:
        COUNTS[-1].append(formula(*args, **kwargs))
        return function(*args, **kwargs)

    patched.__str__ = function.__str__
    return patched


def of_gru(module: Any, inputs: Any, output: Any) -> None:
    module.__flops__ += 5


MODULE = SimpleNamespace(wrapFunc=wrap, MODULE_HOOK_MAPPING={nn.GRU: of_gru})


def relu(input: Any, inplace: bool = False) -> float:
    assert input.dim() < 4, "a formula that stops"
    return int(input.numel()) * 1.0  # as the scale of an interpolation makes it


def product(input: Any, other: Any, *, out: Any = None) -> int:
    return int(input.numel() * other.shape[-1])


class Pipeline:
    """Puts hooks on modules, and takes the counts off them at the end."""

    def __init__(self, root: nn.Module) -> None:
        self.root = root
        F.relu = MODULE.wrapFunc(F.relu, relu)
        torch.matmul = MODULE.wrapFunc(torch.matmul, product)
        torch.Tensor.matmul = MODULE.wrapFunc(torch.Tensor.matmul, product)
        for module in root.modules():
            module.__flops__ = 0
            if type(module) in MODULE.MODULE_HOOK_MAPPING:
                module.register_forward_hook(MODULE.MODULE_HOOK_MAPPING[type(module)])
                continue
            module.register_forward_pre_hook(lambda module, inputs: COUNTS.append([]))
            module.register_forward_hook(self._returned)

    @staticmethod
    def _returned(module: Any, inputs: Any, output: Any) -> None:
        module.__flops__ += sum(COUNTS.pop())

    def end(self) -> None:
        F.relu = ORIGINALS[F.relu.__str__]
        torch.matmul = ORIGINALS[torch.matmul.__str__]
        torch.bmm = torch.matmul  # as calflops 0.2.7 leaves it
        torch.Tensor.matmul = ORIGINALS[torch.Tensor.matmul.__str__]


def total(module: Any) -> int:
    return module.__flops__ + sum(total(child) for child in module.children())


def run(module: nn.Module, inputs: list[torch.Tensor]) -> tuple[int, int]:
    pipeline = Pipeline(module)
    module(*inputs)
    flops = total(module)
    pipeline.end()
    return flops, 0


def captured(net: Callable[[], nn.Module], *shape: int) -> Ledger:
    pair = SimpleNamespace(
        build_torch=lambda params: net(), arguments=lambda params: ((torch.ones(shape),), {}), user_model=False
    )
    profiler = Profiler(MODULE, Pipeline, "end", (COUNTS, ORIGINALS), run, per_path=True)
    return ledger("calflops", TorchModel(pair, {}), {"calflops": "0.3.2"}, profiler)


@pytest.fixture(autouse=True)
def intact() -> Any:
    def places() -> list[Any]:
        functions = [F.relu, torch.matmul, torch.bmm, torch.Tensor.matmul, F.scaled_dot_product_attention]
        return [*functions, MODULE.wrapFunc, Pipeline.end]

    before = places()
    yield
    after = places()
    assert [a for a, b in zip(after, before, strict=True) if a is not b] == []
    assert COUNTS == []


def net() -> nn.Module:
    """relu, a patched product and an operator, in a layer that stands at two paths."""
    a = nn.Sequential(nn.ReLU())
    return Does(
        lambda m, x: torch.matmul(m.a(x), x.mT) @ x + m.gru(x)[0].sum(), a=a, b=nn.Sequential(a[0]), gru=nn.GRU(3, 4)
    )


def test_calls_have_their_entry_and_ops_their_calls() -> None:
    taken = captured(net, 2, 5, 3)
    assert ORIGINALS == {}  # nothing of the run is kept
    n = 2 * 5 * 3
    # relu's n at both paths, a product with 5 columns at the root, and the hook's 5
    assert {entry.id: entry.value for entry in taken.entries} == {"a.0": n, "b.0": n, "(root)": n * 5, "gru": 5}
    assert taken.total == 2 * n + n * 5 + 5
    assert {type(value) for value in (taken.total, *(entry.value for entry in taken.entries))} == {int}
    calls = {(s.op.op, s.entry, s.role, s.op.calls) for s in taken.sightings if s.entry}
    assert calls == {
        ("torch.nn.functional.relu", "a.0", "live", 1),
        ("torch.nn.functional.relu", "b.0", "alias", 1),
        ("torch.matmul", "(root)", "live", 1),
        ("torch.nn.modules.rnn.GRU", "gru", "live", 1),
    }
    names = {s.op.id: s.op.op for s in taken.sightings if s.entry}
    within = {(s.op.op, *map(names.get, s.op.within)) for s in taken.sightings if not s.entry}
    assert {("aten.relu", "torch.nn.functional.relu"), ("aten.bmm", "torch.matmul"), ("aten.bmm",)} <= within
    assert ("aten.gru", "torch.nn.modules.rnn.GRU") in within  # one op, as in a trace


def test_a_counter_that_stops_leaves_nothing_patched() -> None:
    with pytest.raises(AssertionError, match="a formula that stops"):
        captured(lambda: nn.ReLU(), 1, 2, 3, 4)


def test_a_model_that_stops_leaves_nothing_patched() -> None:
    with pytest.raises((BeyondCounter, RuntimeError)):
        captured(lambda: nn.GRU(7, 4), 2, 5, 3)
