"""Ledger of the log of MKL and oneDNN in a program's own step (``reconcile.count``), from the execution that the trace records.

Nothing runs twice: the lines since the last op belong to the op that just ran. The recorder merges equal calls when the step is
done, so the lines are stored by what tells calls apart, and each call of an op takes its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ....core.records import MAC, REST, Ledger, Op, Sighting
from ...pytorch.tracing.records import tensors_in
from ...pytorch.tracing.wrappers import is_distributed
from ...shared.refusal import BeyondCounter
from ..call_pools import call_key, draw_calls
from ..step_counter import StepCounter
from .algorithm_notes import notes_of
from .capture import COUNTER, ON_META, entries_of
from .log_reader import NOTHING_WRITTEN_HERE, Listening, check
from .log_recorders import Log, read_batch_sizes, with_lines

ANOTHER_CONTEXT_LISTENS = (
    "another context of reconcile listens to MKL and oneDNN already, and a process has one standard output"
)
OTHERS_HAVE_PARTS = "other processes have parts of its tensors, and this one's log is about its own part"


class Nested(StepCounter):
    """The log of a step."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.log: Log | None = None
        self._after = 0
        self._inner: Any = None
        self._calls: dict[tuple[int, str], _Calls] = {}
        try:
            check()
        except BeyondCounter as error:
            self.failed = error

    def saw(self, _func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """An op ran and was recorded: what was written is its own."""
        if self.log is None:
            return
        op = self.recorder.latest
        if any(is_distributed(type(t)) for t in tensors_in([*args, *kwargs.values(), out])):
            self.withhold(OTHERS_HAVE_PARTS)
        key = id(op.attrs), str(op.layer)
        calls = self._calls.get(key)
        if calls is None:
            calls = self._calls[key] = _Calls(op)
        calls.add(self.log.read_lines(op))

    def skip_op(self) -> None:
        """An op ran that is no part of the step: its lines are dropped."""
        if self.log is not None:
            self.log.listening.read_products()

    def enter(self, _others: bool) -> None:
        """The step begins."""
        if Listening.running is not None:
            self.withhold(ANOTHER_CONTEXT_LISTENS)
        elif not self.failed:
            self.log = Log(Listening().__enter__())
            self._inner, self.recorder.around = self.recorder.around, self._around

    def _around(self, func: Any, args: Any, kwargs: Any) -> Any:
        assert self.log is not None
        with read_batch_sizes(self.log, func):
            return func(*args, **kwargs) if self._inner is None else self._inner(func, args, kwargs)

    def leave(self) -> None:
        """The step is done."""
        if self.log is not None:
            if self.recorder.around == self._around:
                self.recorder.around = self._inner
            self._after = self.log.rest()
            self.log.listening.__exit__(None, None, None)

    def ledger(self, recorder: Any, device: str, versions: dict[str, str]) -> Ledger:
        """The ledger of the step. Raises BeyondCounter where the logs are not of all of it."""
        if device != "cpu":
            raise BeyondCounter(ON_META % device)
        if self.failed is not None or self.log is None:
            raise self.failed or BeyondCounter(NOTHING_WRITTEN_HERE)
        self.log.move(recorder.renamed)
        entries = entries_of(self.log, self._after)
        sightings = tuple(self._sightings(list(recorder.ops.values()), recorder.renamed))
        notes = notes_of(sightings)
        return Ledger(COUNTER, "torch", MAC, device, versions, self.log.total, entries, sightings, notes=notes)

    def _sightings(self, ops: list[Op], renamed: dict[str, str]) -> Iterator[Sighting]:
        """Each op with the lines of its calls; a gradient that is one of several has those of all of them."""
        heard: dict[Any, Counter[str]] = {}
        lines: dict[str, list[Any]] = {}
        for calls in self._calls.values():
            layer = renamed.get(str(calls.op.layer), str(calls.op.layer))
            heard.setdefault(call_key(calls.op, layer), Counter()).update(calls.texts)
            lines.update(calls.lines)
        pools: dict[Any, Counter[str]] = {}
        for op in ops:
            key = call_key(op, op.layer)
            pool = pools.setdefault((key, op.attrs.get("part"), REST in op.attrs), heard.get(key, Counter()).copy())
            found, left = draw_calls(pool, op.calls)
            for text, calls_of in found:
                yield _make_sighting(op, calls_of, lines[text])
            if left:
                yield _make_sighting(op, left, [])


class _Calls:
    """Calls that share a record: how often each of them had which lines."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.texts: Counter[str] = Counter()
        self.lines: dict[str, list[Any]] = {"": []}

    def add(self, lines: list[Any]) -> None:
        text = repr(lines) if lines else ""
        self.texts[text] += 1
        self.lines[text] = lines


def _make_sighting(op: Op, calls: int, lines: list[Any]) -> Sighting:
    return Sighting(with_lines(op._replace(calls=calls), lines), f"{op.layer}|{op.op}")


nested: Callable[[Any], Nested] = Nested
"""What ``reconcile.count`` makes for this counter."""
