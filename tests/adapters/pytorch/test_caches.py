"""What a library caches while one model is made or called does not reach the next: neither tensors on meta, nor work done."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from reconcile.adapters.pytorch import caches
from reconcile.adapters.pytorch.trace import _record, trace
from tests.own.test_torch_models import model_of


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(functools, "lru_cache", functools.lru_cache)  # what watch() changes goes back
    caches.watch()
    yield
    caches._WATCHED.clear()


WAYS: dict[str, Callable[[Any], Any]] = {
    "unbounded": lambda function: functools.lru_cache(maxsize=None)(function),
    "bounded": lambda function: functools.lru_cache(maxsize=8)(function),
    "bare": lambda function: functools.lru_cache(function),
    "cache": lambda function: functools.cache(function),
}


def of_cached_table(cached: Any, refuses_meta: bool = False) -> type:
    """A model whose maker keeps a table of cosines in a cache of a function."""

    @cached
    def table(width: int) -> Any:
        return torch.cos(torch.arange(width * 4.0).reshape(width, 4))

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = table(6)
            if refuses_meta:
                assert float(self.table[0, 0]) == 1.0

        def forward(self, x: Any) -> Any:
            return x @ self.table

    return Net


@pytest.mark.parametrize("way", WAYS)
def test_a_model_in_memory_follows_a_trace_on_meta(way: str) -> None:
    model = model_of(of_cached_table(WAYS[way]), (3, 6))
    model.device = "meta"
    assert trace(model).device == "meta"
    assert model.build("cpu").table.device.type == "cpu"


def test_a_factory_that_needs_values_makes_its_model_in_memory() -> None:
    model = model_of(of_cached_table(WAYS["unbounded"], refuses_meta=True), (3, 6))
    assert trace(model).device == "cpu"
    model.device = "meta"
    assert model.build("meta").table.device.type == "cpu"


def test_what_one_call_caches_spares_the_next_no_work() -> None:
    """A library may cache tensors of its own for sizes that it met (the anchors of RT-DETR): every model is a first one."""

    @functools.cache
    def table(width: int) -> Any:
        return torch.cos(torch.arange(width * 4.0)).reshape(width, 4)

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x @ table(x.shape[1]).to(x.device)

    model = model_of(Net, (3, 6))
    for _ in range(2):
        recorder = _record(model, "cpu")
        assert [op.op for op in recorder.ops.values() if op.op == "aten.cos"] == ["aten.cos"]


def test_caches_without_tensors_stay() -> None:
    calls = []

    @functools.cache
    def number(of: int) -> int:
        calls.append(of)
        return of

    @functools.lru_cache(maxsize=2)
    def tables(of: int) -> dict[str, tuple[Any, ...]]:
        calls.append(-of)
        return {"table": (torch.zeros(of),)}

    for _ in range(2):
        number(1), tables(1)
    assert calls == [1, -1]
    caches.forget()
    number(1), tables(1)
    assert calls == [1, -1, -1]


def test_a_cache_that_goes_is_let_go() -> None:
    def make() -> None:
        functools.cache(lambda: 1)()

    make()
    assert list(caches._WATCHED) == []


def test_a_proxy_of_what_is_gone_is_passed_by() -> None:
    """Python asks a proxy for the class of its object, and one whose object is gone raises."""
    gc.freeze()  # of every object of these tests, the one that matters is to be looked at
    gone = weakref.proxy(torch.zeros(1))
    with pytest.raises(ReferenceError):
        isinstance(gone, int)
    caches.went_to_meta()
    caches.forget_meta()
    gc.unfreeze()
