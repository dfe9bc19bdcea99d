"""FLOPs of a whole training run: one micro-batch of each kind is recorded, and later ones of that kind are taken to be equal.

The callbacks of training libraries (``reconcile.transformers``, ``.lightning``, ``.keras``) tell ``TrainingRun`` where a
micro-batch begins and ends.  A micro-batch lasts from one forward pass to the next: forward, backward, and the optimizer step
if there is one.  Batches of several lengths come in more combinations than a run has steps, so whole steps would hardly ever
repeat.

Two micro-batches are of one kind if the model was called with the same shapes, the same weights took part and had gradients to
add to, the same modules were in training mode, and the same optimizers stepped.  The first step of an optimizer is of a kind of
its own, because it makes its state, and so is the first micro-batch after one.  Before a micro-batch runs, its kind is
predicted from the first model call and the library's hints; only unknown kinds are recorded.

With ``check_every``, known kinds are counted again.  The total is withheld if two micro-batches of one kind did different work,
or if the work of one is not known: ``flops`` is None then, and ``withheld`` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ...api.results import Found
from ...core.errors import NotInResult
from ...core.number_format import number
from .count import Step, count, framework_of, step_module

if TYPE_CHECKING:
    import pandas

KIND_NEVER_COUNTED = (
    "steps of one kind ran %s times and none of them was counted yet: the kind showed only after the step had begun."
)
MODEL_NOT_CALLED = (
    "a step ran in which no call of the model was seen, so its shapes are not known. Count it by reconcile.count."
)
COMPUTES_BEFORE_CALL = (
    "the program computes %s FLOPs before it calls the model, and the shapes of these are not known. Count the step by "
    "reconcile.count."
)
SAME_SHAPES_OTHER_WORK = (
    "two steps of the same shapes are not the same work: %s and %s FLOPs. Count by reconcile.count what depends on more than "
    "shapes."
)
STEP_ENDED_EARLY = "a step ended early (%s)."


@dataclass
class Kind:
    """Steps that do the same work: ``metrics`` are the numbers of one of them, ``reason`` is '' unless they are withheld."""

    shapes: str
    calls: int = 0
    metrics: dict[str, int] | None = None
    reason: str = ""


@dataclass
class _MicroBatch:
    """One micro-batch that runs.

    Attributes:
        hint: Says, when the model is called, whether an optimizer will step; None where that is learnt by position.
        batch_shapes: The shapes of the batch, where the library has them; () otherwise.
        position: The number of micro-batches since the last step of an optimizer.
        calls: The shapes of each call of the model.
        stepped: Each step of an optimizer: the optimizer's number, and whether it was its first one.
        lookup_key: What is known of it where it begins, by which it is looked up; None before that.
        will_step: Whether an optimizer will step, as ``hint`` says; None without one.
        state: The model and the modes of its modules where it begins, as a number.
        step: The count of this micro-batch; None if it is not counted.
    """

    hint: Callable[[], Hashable] | None
    batch_shapes: tuple[str, ...]
    position: int
    calls: list[tuple[str, ...]] = field(default_factory=list)
    stepped: list[tuple[int, bool]] = field(default_factory=list)
    lookup_key: Hashable = None
    will_step: Hashable = None
    state: Hashable = None
    step: Step | None = None


@dataclass
class _Known:
    """What is known of a micro-batch where it begins: how many there were, and the kinds that they turned out to be."""

    calls: int = 0
    kinds: dict[Hashable, Kind] = field(default_factory=dict)


class TrainingRun:
    """Cumulative counts of a training run. ``check_every`` counts each n-th micro-batch of a known kind again.

    ``options`` are those of ``reconcile.count``. Raises UsageError for them as it does.
    """

    def __init__(self, check_every: int = 0, **options: Any) -> None:
        count(**options)  # refuses what is wrong before hours of training
        self._options = options
        self._calls: Any = None
        self._micro_batch: _MicroBatch | None = None
        self._before: Step | None = None  # counts what runs before the first call of the model
        self._optimizers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._known: dict[Hashable, _Known] = {}
        self._numbers: dict[Hashable, int] = {}  # what is told apart by its position, so that keys stay small
        self._warm = False
        self._position = 0
        self.start(check_every)

    def start(self, check_every: int) -> None:
        """Set the state in which nothing has run yet."""
        self.check_every = check_every
        self._kinds: dict[Hashable, Kind] = {}
        self._models: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._model: Any = None
        self._withheld = ""
        self.last: Found | None = None

    # What the callbacks tell.

    def attach(self, model: Any, inner: bool = False) -> None:
        """The training of this model begins. With ``inner``, calls of the modules that it holds are followed as well."""
        self.close()
        self._model, self._warm = model, False
        self._models.setdefault(model, len(self._models))
        calls = step_module(framework_of((model,)), "calls")
        self._calls = calls.Calls(model, self._note_call, self._note_step, inner)

    def begin(self, hint: Callable[[], Hashable] | None = None, batch_shapes: Iterable[str] = ()) -> None:
        """A micro-batch begins. ``hint`` says, when the model is called, whether an optimizer will step. Without it, that is
        learnt for each position since the last step.

        ``batch_shapes`` are given where the library has the batch; else the shapes are those of the first call of the model.
        """
        self._micro_batch = batch = _MicroBatch(hint, tuple(batch_shapes), self._position)
        if batch.batch_shapes:
            self._decide(batch)
        elif not self._known and not self._withheld:
            self._before = count(self._model, **self._options)
            self._before.enter()

    def end(self, error: BaseException | None = None) -> None:
        """The micro-batch is done, or ``error`` ended it."""
        batch, self._micro_batch = self._micro_batch, None
        if batch is None:
            return
        self._end_before(None)
        if batch.step is not None:
            batch.step.leave(error)
        if error is not None:
            self._withheld = self._withheld or STEP_ENDED_EARLY % type(error).__name__
            return
        if batch.lookup_key is None:
            self._withheld = self._withheld or MODEL_NOT_CALLED
            return
        self._position = 0 if batch.stepped or batch.will_step is True else self._position + 1
        self._warm = self._warm or bool(batch.stepped)
        self._add(batch)

    def close(self, error: BaseException | None = None) -> None:
        """The training is done, or ``error`` ended it. Nothing is left on the model."""
        if self._micro_batch is not None:
            self.end(error or InterruptedError())
        if self._calls is not None:
            self._calls.close()
        self._calls = None

    def _note_call(self, call: tuple[str, ...], inside: Callable[[Any], None]) -> None:
        batch = self._micro_batch
        if batch is None:
            return
        batch.calls.append(call)
        if batch.lookup_key is None:
            self._end_before(batch)
            self._decide(batch)
            if batch.step is not None:
                inside(batch.step.context)

    def _note_step(self, optimizer: Any, cold: bool) -> None:
        if self._micro_batch is not None:
            index = self._optimizers.setdefault(optimizer, len(self._optimizers))
            self._micro_batch.stepped.append((index, cold))

    def _end_before(self, batch: _MicroBatch | None) -> None:
        """The first micro-batch is recorded from its beginning: what a later one does before its call is not seen."""
        step, self._before = self._before, None
        if step is None:
            return
        step.leave()
        if batch is None or not step.context.has_ops:
            return
        try:
            flops = step.flops()["flops"]
        except NotInResult as error:
            self._withheld = str(error)
        else:
            self._withheld = COMPUTES_BEFORE_CALL % number(flops) if flops else ""

    def _decide(self, batch: _MicroBatch) -> None:
        """Record this micro-batch, unless each kind that it can be is known."""
        batch.will_step = batch.hint() if batch.hint is not None else None
        hint, first = batch.position if batch.hint is None else batch.will_step, tuple(batch.calls)
        batch.state = self._number((self._models[self._model], self._calls.state()))
        warm = self._warm or batch.will_step is False
        batch.lookup_key = (batch.batch_shapes, first, batch.state, not batch.position, hint, warm)
        known = self._known.get(batch.lookup_key)
        new = known is None or any(kind.metrics is None for kind in known.kinds.values())
        due = known is not None and self.check_every and known.calls % self.check_every == 0
        if not self._withheld and (new or due):
            batch.step = count(self._model, **self._options)
            batch.step.enter()

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    # Counts.

    def _add(self, batch: _MicroBatch) -> None:
        first, steps = not batch.position, tuple(batch.stepped)
        key = (batch.batch_shapes, tuple(batch.calls), batch.state, first, batch.will_step, steps)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(_describe(batch))
            self._calls.refresh()  # modules may be made in the first call
        known = self._known.setdefault(batch.lookup_key, _Known())
        known.kinds[key] = kind
        known.calls += 1
        kind.calls += 1
        if batch.step is not None:
            self._note_count(kind, batch.step, batch.step.flops)

    def _note_count(self, kind: Kind, found: Found, flops: Callable[[], dict[str, int]]) -> None:
        self.last = found
        try:
            metrics = flops()
        except NotInResult as error:
            self._withheld = kind.reason = str(error)
            return
        if kind.metrics is not None and kind.metrics != metrics:
            self._withheld = kind.reason = SAME_SHAPES_OTHER_WORK % tuple(
                number(m["flops"]) for m in (kind.metrics, metrics)
            )
        kind.metrics = metrics

    @property
    def withheld(self) -> str:
        """Why there is no total; '' if there is one."""
        missing = [kind.calls for kind in self._kinds.values() if kind.metrics is None]
        return self._withheld or (KIND_NEVER_COUNTED % number(sum(missing)) if missing else "")

    @property
    def flops(self) -> int | None:
        """What ran until now, in FLOPs; None where a step could not be counted: ``withheld`` says why."""
        found = self.metrics()
        return found.get("flops", 0) if found or not self.withheld else None

    def metrics(self) -> dict[str, int]:
        """The total and each phase, for a logger; empty where there is no total."""
        if self.withheld:
            return {}
        total: dict[str, int] = {}
        for kind in self._kinds.values():
            for name, flops in (kind.metrics or {}).items():
                total[name] = total.get(name, 0) + kind.calls * flops
        return total

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Each kind of micro-batch that ran, in the order of the first."""
        return tuple(self._kinds.values())

    @property
    def steps(self) -> pandas.DataFrame:
        """A row per kind: its shapes, how many ran, and the FLOPs of one and of all; None where they are not known."""
        from ...report.frames import make_frame

        each = [(k, k.metrics["flops"] if k.metrics else None) for k in self.kinds]
        rows = ([k.shapes, k.calls, flops, None if flops is None else k.calls * flops] for k, flops in each)
        return make_frame(rows, ["shapes", "calls", "FLOP each", "FLOP"])


def _describe(batch: _MicroBatch) -> str:
    """``input_ids int64 (2, 64), labels int64 (2, 64); optimizer step``."""
    shapes = [", ".join(call) for call in (batch.batch_shapes, *batch.calls) if call]
    first = " (the first)" if any(cold for _, cold in batch.stepped) else ""
    steps = f"{len(batch.stepped)} optimizer steps" if len(batch.stepped) > 1 else "optimizer step"
    end = steps + first if batch.stepped else "accumulated" if batch.will_step is False else ""
    return "; ".join(filter(None, [*shapes, end]))
