"""Runs torch.utils.flop_counter.FlopCounterMode and returns its ledger, one entry per module and ATen op.

Every op that the counter lets run passes its ``_count_flops``; there reconcile records what it added to its global count.  The
op's shapes are recorded by a dispatch mode of reconcile underneath, which sees exactly what the counter lets through: of an op
that the counter decomposes, it sees the parts.

For a training step the counter counts the whole step, as if a user wrapped it: forward, loss, gradients, optimiser.
"""

from __future__ import annotations

from functools import partial
from traceback import walk_tb
from typing import Any, Callable

import torch
from torch.utils.flop_counter import FlopCounterMode

from ....core.records import FLOP, Ledger
from ...pytorch.model import TorchModel, versions
from ...pytorch.tracing.module_path import ModulePath
from ...pytorch.tracing.numpy_crossings import keep_numbers
from ...pytorch.tracing.recorder import Recorder
from ...pytorch.tracing.threads import record_new_threads
from ...shared.refusal import BeyondCounter
from ..added_amounts import AddedAmounts
from ..limits import Limit, explain_limits

COUNTER = "flop_counter"


RUNS_FUNCTIONS = (
    "it has no formula for an operator that runs functions (while_loop, flex_attention): leave flop_counter out"
)
LIMITS = (
    Limit(
        ("we are currently running autograd.grad()", "/_functorch/eager_transforms.py"),
        "it follows modules by their gradients' functions, which fails in a model that takes gradients itself: leave "
        "flop_counter out, or give the forward pass alone",
    ),
    Limit(("/_higher_order_ops/", "torch.ops.higher_order.", "'NotImplementedType' object"), RUNS_FUNCTIONS),
    Limit(
        ("/torch/nested/", "NestedTensorImpl"),
        "its formulas have no shape of a nested tensor: leave flop_counter out, or give padded tensors",
    ),
)
"""What flop_counter cannot count."""


class RecordedFlopCounter(FlopCounterMode):
    """FlopCounterMode, which records with each op and its module (``where``) what it adds to its count."""

    def __init__(self, where: Callable[[], str]) -> None:
        super().__init__(display=False)
        self.added = AddedAmounts(where, self.so_far)

    if hasattr(FlopCounterMode, "_count_flops"):

        def _count_flops(self, func_packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
            count = partial(super()._count_flops, func_packet, out, args, kwargs)
            return self.added.by(packet_name(func_packet), count)

    else:  # PyTorch 2.1 and 2.2 count where they dispatch

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            count = partial(super().__torch_dispatch__, func, types, args, kwargs)
            return self.added.by(packet_name(func._overloadpacket), count)

    def so_far(self) -> int:
        """Its total. Entries that it has not begun are not created: it uses them to tell the branches of torch.cond apart."""
        return sum(self.flop_counts["Global"].values()) if "Global" in self.flop_counts else 0


def packet_name(packet: Any) -> str:
    """``aten.addmm`` of an OpOverloadPacket, no in-place underscore."""
    name = str(getattr(packet, "_qualified_op_name", packet)).replace("::", ".")
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


WEIGHTS_WERE_FROZEN = (
    "its weights were frozen (requires_grad_(False)): on weights that may be trained, flop_counter fails under no_grad where "
    "a module takes or returns a view of one (torch.utils.module_tracker asks for its gradient function)"
)
"""Note of a ledger that flop_counter makes of frozen weights alone."""


def _record_call(model: TorchModel, frozen: bool = False) -> tuple[Recorder, RecordedFlopCounter]:
    module = model.build(model.device)
    if frozen:
        module.requires_grad_(False)
    inputs = model.example(model.device)
    path = ModulePath(module)
    recorder = Recorder(path)
    watched = RecordedFlopCounter(lambda: path.current)
    threads = record_new_threads(lambda: recorder.beside(path.current))  # where the counter sees nothing
    with keep_numbers(), torch.no_grad(), path, recorder, watched, threads:
        module(*inputs)
    return recorder, watched


def _fails_unfrozen(error: AssertionError) -> bool:
    """Whether the counter's tracker of modules failed: on a tensor for which no_grad kept no gradient function."""
    return any(frame.f_code.co_filename.endswith("module_tracker.py") for frame, _ in walk_tb(error.__traceback__))


def _record_training(model: TorchModel) -> tuple[Recorder, RecordedFlopCounter]:
    from ...pytorch.optimizers import update_of
    from ...pytorch.phases import TrainingRecorder
    from ...pytorch.tracing.nodes import TrainingPath
    from ...pytorch.training import step

    module = model.build(model.device)
    module.train()
    inputs = model.example(model.device)
    path = TrainingPath(module)
    recorder = TrainingRecorder(path, module)
    recorder.beneath_autograd = False
    watched = RecordedFlopCounter(recorder.where)
    with keep_numbers(), torch.enable_grad(), path, recorder, watched:
        step(module, inputs, update_of(model), recorder)
    if recorder.remarks:  # such an operator was written out
        raise BeyondCounter(RUNS_FUNCTIONS)
    return recorder, watched


def _count_model(model: TorchModel) -> tuple[Recorder, RecordedFlopCounter, tuple[str, ...]]:
    try:
        return (_record_training(model) if model.training else _record_call(model)) + ((),)
    except AssertionError as error:
        if model.training or not _fails_unfrozen(error):
            raise
        return _record_call(model, frozen=True) + ((WEIGHTS_WERE_FROZEN,),)


def _count_smallest_model() -> None:
    with torch.no_grad(), FlopCounterMode(display=False):
        torch.nn.Linear(1, 1)(torch.zeros(1, 1))


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call (eval, no_grad) of a fresh module on ``model.device``, or one training step."""
    with explain_limits(LIMITS, _count_smallest_model):
        recorder, watched, notes = _count_model(model)
    entries, sightings = watched.added.beside(list(recorder.ops.values()))
    total = int(watched.get_total_flops())
    whole = sum(e.value for e in entries)
    if total != whole:
        raise BeyondCounter(
            f"its ops add up to {whole} and its total is {total}: of torch.cond it counts the larger branch, whichever is taken"
        )
    numbers = versions(recorder.path.root)
    return Ledger(
        COUNTER, "torch", FLOP, model.device, numbers, total, tuple(entries), tuple(sightings), notes=tuple(notes)
    )
