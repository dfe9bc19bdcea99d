"""Kernels that ran on a GPU within no operator: of CuPy, Numba, or an extension that launches its own.

PyTorch's profiler gives each kernel the operator that launched it.  One without an operator reached no dispatcher, so no trace
has it.  Copies and fills multiply nothing.  A note says so and withholds nothing: this was not yet seen on a GPU to be right
of every kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

RAN_IN_NO_OPERATOR = "%s ran on the GPU within no operator of PyTorch, as its profiler tells: nothing of it is recorded"
SHOWN = 3
"""Kernels that a reason names."""
MOVES = ("Memcpy", "Memset")
NO_OPERATORS = ("autograd::", "profiler::")
"""Ranges of the engine and of profilers, which are named as operators are."""


def outside(events: Iterable[Any]) -> str:
    """What a trace lacks, of all that a profiler saw: kernels that no operator launched. '' if there are none, or if the profiler
    gave no kernel at all an operator."""
    on_cpu: list[Any] = []
    on_gpu: list[Any] = []
    for event in events:
        (on_gpu if event.device_type().name in ("CUDA", "HIP") else on_cpu).append(event)
    # calls of CUDA's own functions are numbered by themselves, and linked to a range as kernels are
    ranges = {event.correlation_id(): event for event in on_cpu if not event.linked_correlation_id()}
    operators = [event for event in ranges.values() if _is_operator(event.name())]
    names: dict[str, None] = {}
    launched_by_operators = 0
    for kernel in on_gpu:
        if kernel.name().startswith(MOVES) or not kernel.duration_ns():
            continue
        launched = ranges.get(kernel.linked_correlation_id())
        if launched is not None and (_is_operator(launched.name()) or _is_within(launched, operators)):
            launched_by_operators += 1
        else:
            names[_plain(kernel.name())] = None
    shown = ", ".join(list(names)[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return RAN_IN_NO_OPERATOR % shown if names and launched_by_operators else ""


def _is_operator(name: str) -> bool:
    space, colons, _ = name.partition("::")
    return bool(colons) and space.isidentifier() and not name.startswith(NO_OPERATORS)


def _is_within(range_: Any, operators: list[Any]) -> bool:
    """Whether an operator was running on that thread when the range began."""
    begun, thread = range_.start_ns(), range_.start_thread_id()
    return any(o.start_thread_id() == thread and o.start_ns() <= begun <= o.end_ns() for o in operators)


def _plain(name: str) -> str:
    """A kernel's name without its return type, templates and arguments."""
    return name.removeprefix("void ").partition("<")[0].partition("(")[0]
