"""Ledger of FlopCounterMode in a program's own step (``reconcile.count``), from the very execution that the trace records.

The trace's recorder passes the counter each op that ran, and the counter adds what its formulas give.  Neither its mode nor its
tracker of modules is entered: the mode runs both branches of a condition and stops at operators that run functions, the tracker
hooks the program's tensors and fails on some of them (module_tracker.py).  Where the counter by itself would stop the step, it
has no number.  What it cannot count ends its count, never the step.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch._C import DispatchKey, _dispatch_has_kernel_for_dispatch_key
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.flop_counter import FlopCounterMode

from ....adapters.counters.added_amounts import AddedAmounts
from ....adapters.counters.flop_counter.capture import COUNTER, LIMITS, packet_name
from ....adapters.counters.limits import reason_of
from ....adapters.counters.step_counter import StepCounter
from ....adapters.shared.refusal import BeyondCounter
from ....core.records import FLOP, Ledger
from .module_tracker import watch_tracker
from .recorder import StepRecorder


class Nested(StepCounter, FlopCounterMode):
    """The counter itself, within a program's step."""

    def __init__(self, recorder: StepRecorder) -> None:
        FlopCounterMode.__init__(self, display=False)
        self.mod_tracker: Any = SimpleNamespace(parents=("Global",))
        self.added = AddedAmounts(lambda: recorder.last, self._of_packet)
        self._packet: Any = None
        self._tracked = watch_tracker(self.withhold)

    def _of_packet(self) -> int:
        return int(self.flop_counts["Global"].get(self._packet, 0))

    def takes_apart(self, func: Any) -> bool:
        """Whether it counts its parts: it has no formula for it, and this release's mode takes such operators apart."""
        known = func in self.flop_registry or func._overloadpacket in self.flop_registry
        return not known and _decomposes(func) and parts_are_counted()

    def counts(self, func: Any) -> bool:
        """Whether it has a formula for an operator."""
        return func._overloadpacket in self.flop_registry

    def saw(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """An op ran."""
        packet = func._overloadpacket
        if self.failed is not None:
            return
        self._packet = packet
        try:
            self.added.by(packet_name(packet), lambda: self._count_flops(packet, out, args, kwargs))
        except Exception as error:  # a formula of the counter's, or of a library
            self.failed = error

    def enter(self, _others: bool) -> None:
        """The step begins."""
        parts_are_counted()  # asked in the step, it would be seen by what is nested beside
        self._tracked.__enter__()

    def leave(self) -> None:
        """The step is done."""
        self._tracked.__exit__(None, None, None)

    def ledger(self, recorder: StepRecorder, device: str, versions: dict[str, str]) -> Ledger:
        """The ledger of the step. Raises BeyondCounter where the counter failed on an op of it."""
        if self.failed is not None:
            reason = str(self.failed) if isinstance(self.failed, BeyondCounter) else reason_of(self.failed, LIMITS)
            raise BeyondCounter(reason or f"its formula failed ({self.failed})") from self.failed
        for layer, to in recorder.renamed.items():
            self.added.move_amounts(layer, to)
        entries, sightings = self.added.beside(list(recorder.ops.values()))
        total = int(self.get_total_flops())
        assert total == sum(entry.value for entry in entries)
        return Ledger(COUNTER, "torch", FLOP, device, versions, total, tuple(entries), tuple(sightings))


def _decomposes(func: Any) -> bool:
    """Whether an operator is nothing but others (torch/_ops.py: OpOverload.decompose; PyTorch 2.4 has no name for it)."""
    key = DispatchKey.CompositeImplicitAutograd
    return key in func.py_kernels or _dispatch_has_kernel_for_dispatch_key(func.name(), key)


@cache
def parts_are_counted() -> bool:
    """Whether this release's own mode counts the parts of such an operator: 2.13 does, 2.4 does not. A call tests it."""
    with _disable_current_modes(), torch.inference_mode(), FlopCounterMode(display=False) as counter:
        torch.nn.functional.linear(torch.zeros(1, 1), torch.zeros(1, 1))
    return bool(counter.get_total_flops())


nested = Nested
"""What ``reconcile.count`` makes for this counter."""
