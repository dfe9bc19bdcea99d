"""RankStep of JAX, for ``reconcile run --ranks``: the trace of one rank of a program that XLA partitions over all devices.

A JAX process runs one program on all of its devices, each on its shard of every array. So one compilation gives the work of all
ranks. The devices are simulated on the host (``--xla_force_host_platform_device_count``), and nothing is computed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from ....core.records import CALLED_WITH, Op, Trace
from ...shared import adapter, nested
from . import FLAG

ONE_PROCESS_COMPILED = (
    "one process compiled the program for %d devices of the host, and XLA cut it as it says there: on other devices the compiler "
    "may cut it otherwise where the program leaves it a choice"
)


class RankStep:
    """The program of one device: a trace, and what is known of its place. ``training`` names the optimizer of a step, '' for a
    call. Counters of programs count the call that ``recorded_model`` gives them."""

    def __init__(self, nested: Sequence[Callable[[Any], Any]], device: str, training: str) -> None:
        self.training = training
        self.told: dict[str, Any] = {}
        self._call: Any = None
        self._trace: Trace | None = None

    def run(self, rank: int, world: int, exchange: str, ready: Callable[[], Any]) -> None:
        """Compile it, of the program that ``ready`` imports. Raises FactoryError for a program that cannot be used."""
        flags = re.sub(rf"{FLAG}=\S*", "", os.environ.get("XLA_FLAGS", ""))
        os.environ["XLA_FLAGS"] = f"{flags} {FLAG}={world}".strip()
        os.environ["JAX_PLATFORMS"] = "cpu"
        pair = ready()
        made = pair.build_jax({})
        positional, named = pair.arguments({})
        given = nested.describe_arguments((positional, named), adapter.is_leaf, adapter.tell)
        self._call = self._make_call(made, positional, named, world)
        self.told = {
            "mesh": {"names": ["device"], "sizes": [world], "ranks": list(range(world))},
            "asked": [],
            "where": "",
            "at_import": False,
            "batches": [],
            "sequences": [],
            "read": 0,
            "given": given,
            "one_batch": True,
            "one_program": True,
        }
        with adapter.blame_model(pair, self._plainly, lambda: given):
            self._take_step(rank, world)
        assert self._trace is not None
        notes = [CALLED_WITH + given, *([ONE_PROCESS_COMPILED % world] if world > 1 else [])]
        self._trace = self._trace._replace(notes=(*self._trace.notes, *notes))

    def _make_call(self, made: Any, positional: Any, named: Any, world: int) -> Any:
        from .. import model

        call = model.call(made, positional, named, training=bool(self.training))
        if self.training:
            from ..training import step

            call = step(call, self.training)
        return call._replace(devices=world)

    def _plainly(self) -> None:
        import jax

        jax.eval_shape(self._call.function, *self._call.arguments)

    def _take_step(self, rank: int, world: int) -> None:
        import jax

        from .. import trace
        from ..phases import mark_optimizer
        from . import program, tags, walk

        call = self._call
        if world == 1:
            self._trace = trace.trace(call)
            return
        closed, numbers = tags.tag_equations(mark_optimizer(trace.program(call.function, call.arguments)))
        arguments = jax.tree.leaves(call.arguments)
        part = program.compile_program(closed, arguments, world, numbers)
        self.told["mesh"] = program.mesh_of(closed, arguments, world)
        found = walk.LocalWalk(call.root, part, rank)
        found.enter(closed, call.values)
        found.add_unplaced()
        self._trace = trace.finish_trace(found, ())

    def trace(self) -> Trace:
        """The trace of one device."""
        assert self._trace is not None
        return self._trace

    def recorded_model(self) -> Any:
        """The call that counters of programs count: that of the user's function, on all devices."""
        return self._call

    def ledgers(self) -> list[Any]:
        """None: no counter is nested in a program."""
        return []


step = RankStep
"""What products/ranks/worker.py makes for each rank."""


def install() -> None:
    """Each rank sets its number of devices before it imports JAX: there is nothing to prepare."""


def waits(error: BaseException) -> int | None:
    """None: no device waits for another's program."""
    return None


def digest(ops: Sequence[Op]) -> str:
    """A hash of a device's ops (names, layers, phases, shapes, calls): equal for devices that do the same work."""
    text = hashlib.sha256()
    for op in ops:
        text.update(repr((op.op, op.layer, op.phase, op.inputs, op.outputs, op.calls)).encode())
    return text.hexdigest()
