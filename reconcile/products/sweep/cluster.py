"""A Dask cluster as an executor, for ``--dask``: time limits for connecting to its scheduler and for noticing its loss."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import Any

from ...core.errors import UsageError, short
from ...core.escaping import escape_line

ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^/\s]+:\d+")
SECURED = ("tls", "wss")
"""Ways to connect that need certificates."""
NOT_A_SCHEDULER = "what answers is not a Dask scheduler"
PATIENCE = 10.0
"""Seconds that a scheduler may take to be connected to, and to let go of."""
PULSE = 15.0
"""Seconds without any result after which a scheduler is asked whether it is there."""
ANSWER = 30.0
"""Seconds that it may then take, busy as it may be."""


class Cluster:
    """A client's executor, and whether its scheduler is still there."""

    def __init__(self, client: Any) -> None:
        self.executor: Executor = client.get_executor(pure=False)
        self._client = client
        self._asked = time.monotonic()

    def why_lost(self) -> str:
        """Why the scheduler counts as gone, '' as long as it is there.

        A connection that breaks says so; a machine that stops does not, so that it is asked now and then.
        """
        if self._client.status != "running":
            return "the connection to its scheduler is lost"
        if time.monotonic() - self._asked < PULSE:
            return ""
        try:
            self._client.sync(self._client.scheduler.who_has, keys=[], callback_timeout=ANSWER)
        except Exception as error:  # whatever its connection makes of that
            return f"its scheduler gives no answer: {type(error).__name__}"
        self._asked = time.monotonic()
        return ""


@contextmanager
def connect_cluster(address: str) -> Iterator[Cluster]:
    """The cluster whose scheduler is at that address.

    Raises UsageError, within ``PATIENCE`` and little more, for an address that cannot be one or where no scheduler answers,
    and without dask.distributed.
    """
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise UsageError("--dask needs dask.distributed: pip install 'flop-reconcile[dask]'") from error
    if not ADDRESS.fullmatch(address):
        raise UsageError(f"--dask takes an address such as tcp://10.0.0.1:8786, not {short(escape_line(address))}.")
    scheme = address.partition("://")[0]
    if scheme in SECURED and not _has_certificates():
        raise UsageError(
            f"--dask {scheme}:// needs certificates: name them in Dask's configuration (distributed.comm.tls: ca-file and "
            "client.cert and client.key), or give a tcp:// address."
        )
    _hush()
    client = _connect(address)
    try:
        yield Cluster(client)
    finally:
        with suppress(Exception):  # of a scheduler that is gone there is nothing to let go of
            client.close(timeout=PATIENCE)


def _has_certificates() -> bool:
    """Whether Dask's configuration names certificates that can be used."""
    from distributed import Security

    try:
        return Security().get_connection_args("client").get("ssl_context") is not None
    except (OSError, ValueError):  # a file that is missing or no certificate: connecting says which
        return True


async def _ask(address: str) -> None:
    """Raise, whatever it is, where no scheduler answers: asked before there is a client, which one that stays silent holds up
    for minutes, and which is as long in letting go of one that talks nonsense."""
    from distributed import Security, rpc

    async with rpc(address, timeout=PATIENCE, connection_args=Security().get_connection_args("client")) as there:
        said = await there.identity()
    if said.get("type") != "Scheduler":
        raise ValueError(NOT_A_SCHEDULER)


def _connect(address: str) -> Any:
    from distributed import Client

    try:
        asyncio.run(asyncio.wait_for(_ask(address), PATIENCE))
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except asyncio.TimeoutError as error:
        raise _none_at(address, f"no answer within {PATIENCE:g} s") from error
    except (OSError, TypeError, ValueError) as error:
        said = next(iter(str(error).strip().splitlines()), "")
        raise _none_at(address, escape_line(said[:300]).rstrip(".") or type(error).__name__) from error
    except Exception as error:  # bytes that mean something else, such as a length that no memory has
        raise _none_at(address, NOT_A_SCHEDULER) from error


def _none_at(address: str, why: str) -> UsageError:
    return UsageError(f"there is no Dask scheduler at {escape_line(address)}: {why}.")


def _hush() -> None:
    """What Dask has to say of a connection that broke is many lines; this tool says it in one."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
