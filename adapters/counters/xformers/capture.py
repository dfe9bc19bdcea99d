"""Runs xformers' AnalyzedTrace and returns its ledger: one entry per module and operator that the module's own code calls.

It reads the raw events of torch.profiler. Its own profiler gives it those of a run on a GPU; here it gets those of one call.
PyTorch 2.10 and later.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ....core.records import Ledger
from ...pytorch.model import TorchModel
from ...shared.distribution import version_of
from ..torch_profiler.capture import Node, event_ledger
from . import ATTENTION


class Analyzed(Node):
    """An event, with the arguments that either formula reads."""

    READ = (*Node.READ, ATTENTION)


def capture(counter: str, model: TorchModel) -> Ledger:
    """Profile one inference call (eval, no_grad) of a fresh module on ``model.device``."""
    packages = {"xformers": version_of("xformers", import_module("xformers"))}
    return event_ledger(counter, model, _sums, Analyzed, packages)


def _sums(profiler: Any) -> tuple[int, Callable[[Any], int]]:
    raw = list(profiler.profiler.kineto_results.events())
    by_id = {event.correlation_id(): event for event in raw if event.device_type().name == "CPU"}
    return _analyzed_flops(raw), lambda event: _analyzed_flops([by_id[each.id] for each in _all(event)])


def _all(event: Any) -> list[Any]:
    """An event and all within it."""
    return [event, *(each for inner in event.cpu_children for each in _all(inner))]


def _analyzed_flops(events: list[Any]) -> int:
    """FLOPs of all types of numbers, as its TFlop/step adds them up (xformers/profiler/profiler.py:126)."""
    from xformers.profiler.profile_analyzer import AnalyzedTrace

    found = AnalyzedTrace.from_profile(events)
    return int(sum(found.compute_num_ops(dtype) for dtype in found.operations_per_dtype_fw))
