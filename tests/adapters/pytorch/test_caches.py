"""What a library caches while one model is made or called does not reach the next: neither tensors on meta, nor work done."""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from reconcile.adapters.pytorch.caches import Caches  # noqa: E402
from reconcile.adapters.pytorch.trace import _record, trace  # noqa: E402
from tests.own.test_torch_models import model_of  # noqa: E402


def of_cached_table(cached: Any, refuses_meta: bool = False) -> type:
    """A model whose maker keeps a table of cosines in a cache of a function."""

    @cached
    def table(width: int) -> Any:
        return torch.cos(torch.arange(width * 4.0).reshape(width, 4))

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = table(6)
            if refuses_meta:
                assert float(self.table[0, 0]) == 1.0

        def forward(self, x: Any) -> Any:
            return x @ self.table

    return Net


WAYS = {"unbounded": functools.lru_cache(maxsize=None), "bounded": functools.lru_cache(maxsize=8)}


@pytest.mark.parametrize("way", WAYS)
def test_a_model_in_memory_follows_a_trace_on_meta(way: str) -> None:
    model = model_of(of_cached_table(WAYS[way]), (3, 6))
    assert trace(model).device == "meta"
    assert model.build("cpu").table.device.type == "cpu"


def test_a_factory_that_cannot_run_on_meta_runs_in_memory() -> None:
    assert trace(model_of(of_cached_table(WAYS["unbounded"], refuses_meta=True), (3, 6))).device == "cpu"


def test_what_one_call_caches_spares_the_next_no_work() -> None:
    """A library may cache tensors of its own for sizes that it met (the anchors of RT-DETR): every model is a first one."""

    @functools.cache
    def table(width: int) -> Any:
        return torch.cos(torch.arange(width * 4.0)).reshape(width, 4)

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x @ table(x.shape[1]).to(x.device)

    model = model_of(Net, (3, 6))
    for _ in range(2):
        recorder = _record(model, "cpu")
        assert [op.op for op in recorder.ops.values() if op.op == "aten.cos"] == ["aten.cos"]


def test_other_caches_stay() -> None:
    calls = []

    @functools.cache
    def table(device: str) -> tuple[Any, ...]:
        calls.append(device)
        return (torch.zeros(2, device=device),)

    @functools.cache
    def number(of: int) -> int:
        calls.append("number")
        return of

    def all_of_them() -> list[str]:
        calls.clear()
        table("cpu"), number(1)
        return list(calls)

    assert all_of_them() == ["cpu", "number"]
    kept = Caches()
    kept.forget()
    assert all_of_them() == []
    table("meta")
    kept.forget()
    assert all_of_them() == ["cpu"]
    kept.forget()
    assert all_of_them() == ["cpu"]
