"""``--dask``, with nothing of Dask there: a scheduler that is none, that stays silent, that stops, ends in a sentence soon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.sweep import cell, cluster
from tests.products.sweep.conftest import Sweep
from tests.products.sweep.fakes import answer

CERTIFIED = True
"""Whether the configuration names certificates."""
PLACE = "tcp://127.0.0.1:1"


class ClientExecutor(ThreadPoolExecutor):
    """As distributed's: ``shutdown`` takes nothing but ``wait``."""

    def shutdown(self, wait: bool = True) -> None:  # type: ignore[override]
        super().shutdown(wait=wait)


class Client:
    """As distributed's, in as far as it is used."""

    status = "running"
    answers = True

    def __init__(self, address: str, timeout: float, set_as_default: bool) -> None:
        self.scheduler = self
        self.closed = 0.0

    def get_executor(self, **_kwargs: Any) -> Executor:
        return ClientExecutor(1)

    def who_has(self, keys: list[str]) -> dict[str, Any]:
        return dict.fromkeys(keys)

    def sync(self, asked: Callable[..., Any], *, callback_timeout: float, **kwargs: Any) -> Any:
        if not self.answers:
            raise TimeoutError(f"timed out after {callback_timeout} s.")
        return asked(**kwargs)

    def close(self, timeout: float) -> None:
        self.closed = timeout
        raise TimeoutError


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Makes a ``distributed`` whose scheduler says what that returns or raises, or awaits it."""
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)

    def put(says: Callable[[], Any]) -> None:
        class rpc:
            def __init__(self, address: str, timeout: float, connection_args: dict[str, Any]) -> None:
                pass

            async def __aenter__(self) -> rpc:
                return self

            async def __aexit__(self, *_error: object) -> None:
                pass

            async def identity(self) -> Any:
                said = says()
                return await said if asyncio.iscoroutine(said) else said

        class Security:
            def get_connection_args(self, _role: str) -> dict[str, Any]:
                return {"ssl_context": object() if CERTIFIED else None}

        module = ModuleType("distributed")
        vars(module).update(rpc=rpc, Security=Security, Client=Client)
        monkeypatch.setitem(__import__("sys").modules, "distributed", module)

    return put


@pytest.mark.parametrize("scheme", ["tls", "wss"])
def test_an_address_that_needs_certificates_says_so(
    dask: Callable[[Callable[[], Any]], None], monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    dask(scheduler)
    monkeypatch.setitem(globals(), "CERTIFIED", False)
    with pytest.raises(UsageError, match=f"^--dask {scheme}:// needs certificates: .* or give a tcp:// address\\.$"):
        cluster.connect_cluster(f"{scheme}://x:1").__enter__()


def scheduler() -> dict[str, str]:
    return {"type": "Scheduler"}


def raises(error: Exception) -> Callable[[], Any]:
    def say() -> None:
        raise error

    return say


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (lambda: asyncio.sleep(1000), "no answer within 0.2 s"),
        (raises(OSError("Timed out.")), "Timed out"),
        (raises(TypeError("TLS expects a `ssl_context`")), "TLS expects a `ssl_context`"),
        (raises(ValueError("\x1b[31m")), r"\x1b[31m"),
        (raises(ValueError("")), "ValueError"),
        (raises(MemoryError("Unable to allocate 3 EiB")), "what answers is not a Dask scheduler"),
        (lambda: {"type": "Worker"}, "what answers is not a Dask scheduler"),
        (list, "what answers is not a Dask scheduler"),
    ],
)
def test_what_is_no_scheduler_is_a_sentence_soon(
    dask: Callable[[Callable[[], Any]], None], says: Callable[[], Any], said: str
) -> None:
    dask(says)
    began = time.monotonic()
    with pytest.raises(UsageError) as caught, cluster.connect_cluster(PLACE):
        pass
    assert str(caught.value) == f"there is no Dask scheduler at {PLACE}: {said}."
    assert time.monotonic() - began < 500


@pytest.mark.parametrize(
    "address", ["", "foo", "tcp://", "tcp://x", "tcp://x:y", "inproc://x:1", "http://x:1", "x:1\n", "\x1b"]
)
def test_what_is_no_address_is_a_sentence(dask: Callable[[Callable[[], Any]], None], address: str) -> None:
    dask(scheduler)
    with pytest.raises(UsageError, match="--dask takes an address such as tcp://10") as caught:
        cluster.connect_cluster(address).__enter__()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("address", ["x:1", "tcp://10.0.0.1:8786", "tls://[::1]:8786"])
def test_an_address(dask: Callable[[Callable[[], Any]], None], address: str) -> None:
    dask(scheduler)
    with cluster.connect_cluster(address) as found:
        assert isinstance(found.executor, Executor)


def test_a_scheduler_is_asked_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster.Cluster(client := Client(PLACE, 1.0, False))
    client.answers = False
    assert found.why_lost() == ""  # it is not yet time to ask
    monkeypatch.setattr(cluster, "PULSE", 0.0)
    assert found.why_lost() == "its scheduler gives no answer: TimeoutError"
    client.answers = True
    assert found.why_lost() == ""
    client.status = "connecting"
    assert found.why_lost() == "the connection to its scheduler is lost"


COMMAND = ("a:make", "b:make", "--dask", PLACE, "-q")


def test_a_sweep_on_a_cluster(dask: Callable[[Callable[[], Any]], None], sweep: Sweep) -> None:
    dask(scheduler)
    done = sweep(*COMMAND)
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_scheduler_that_stops_ends_the_sweep_and_keeps_results(
    dask: Callable[[Callable[[], Any]], None],
    sweep: Sweep,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its one worker finishes the first model; then there is no news of the second."""
    dask(scheduler)
    stopped = []

    def half(text: str) -> str:
        if "a:make" in text:
            return answer(text)
        stopped.append(True)
        while stopped:
            time.sleep(0.01)
        return ""

    monkeypatch.setattr(cell, "run_cell", half)
    monkeypatch.setattr(Client, "answers", property(lambda _client: not stopped))
    monkeypatch.setattr(cluster, "PULSE", 0.0)
    try:
        done = sweep(*COMMAND)
    finally:
        stopped.clear()
    assert done.exit_code == 2
    assert done.stderr == (
        "Error: lost the executor (its scheduler gives no answer: TimeoutError). Finished models are saved; run the command "
        "again to resume.\n"
    )
    assert [path.name for path in (tmp_path / "sweep" / "cells").glob("*.json")] == ["a.make.json"]
