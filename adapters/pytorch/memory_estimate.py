"""Estimates a PyTorch model's memory (weights, gradients, optimizer state) in a forked process on ``meta``, and compares it with
the free memory of system, cgroup and ulimit.

A model that does not fit is counted on meta, where tensors have shapes and no elements; traces and counters need no more.  If
it cannot be made on meta, memory_guard.py checks each allocation on the CPU and ends the run before the system is out of
memory.  Python 3.8, torch 1.x and later.
"""

import os
import select
import signal
from typing import Callable, List, Optional, Tuple

from ...core.message import text_of

COUNTED_ON_META = (
    "the model's %s take %s bytes, more than the memory that is free: counted on meta, where nothing is allocated and "
    "no fused path of the CPU's is taken"
)
"""Note of a ledger whose counter ran on meta though the CPU was asked for."""

COPIES_OF_WEIGHTS = {
    "": (1, "weights"),
    "sgd": (2, "weights and their gradients"),
    "adam": (4, "weights, their gradients and Adam's two moments"),
    "adamw": (4, "weights, their gradients and AdamW's two moments"),
}
"""What is kept in memory, as copies of the weights and by name, by the optimiser of a training step ('' for a call)."""
COPIES_BY_DEFAULT = (2, "weights, their gradients and what the optimizer keeps")
"""The same of any other optimizer: it keeps these two at least."""

GROUPS = "/sys/fs/cgroup"


class MemoryNeed:
    """The memory that one model takes, as far as it is known: ``weights`` bytes of parameters and buffers, None before it was
    weighed; ``why`` it cannot be made on meta, '' if it can.

    ``in_caller_process`` says that this process is the caller's own: there, no model is made on meta, because what its libraries
    keep from one call to the next would be on meta too.
    """

    def __init__(self, in_caller_process: bool = False, weights: Optional[int] = None) -> None:
        self.weights = weights
        self.in_caller_process = in_caller_process
        self.why = ""

    def weigh(self, weigh: Callable[[], int]) -> None:
        """Make the model on meta, once, to see what it takes; in a process of its own, so that nothing of that stays."""
        if self.weights is None and not self.why and not self.in_caller_process:
            self.weights, self.why = run_in_fork(weigh)

    def takes(self, training: str = "") -> Optional[int]:
        """Bytes of the weights, and of what a training step with this optimiser keeps beside them; None if not known."""
        return None if self.weights is None else self.weights * COPIES_OF_WEIGHTS.get(training, COPIES_BY_DEFAULT)[0]

    def note(self, training: str = "") -> str:
        """The note of a ledger whose counter ran on meta because the model does not fit."""
        return COUNTED_ON_META % (COPIES_OF_WEIGHTS.get(training, COPIES_BY_DEFAULT)[1], f"{self.takes(training):,}")

    def shortage_message(self, training: str = "") -> str:
        """The memory that it takes, and the memory that is free."""
        return f"it takes at least {gib(self.takes(training) or 0)} and {gib(free_memory() or 0)} of memory are free"

    def exceeds_free(self, training: str = "") -> bool:
        """Whether it is known to take more than is free."""
        takes, left = self.takes(training), free_memory()
        return takes is not None and left is not None and takes > left


PATIENCE = 120
"""Seconds that a model may take to be made on meta."""


def run_in_fork(weigh: Callable[[], int]) -> Tuple[Optional[int], str]:
    """Call ``weigh`` in a fork of this process: what it returns, or None and why there is none."""
    if not hasattr(os, "fork"):
        return None, "this system copies no processes"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)  # what it prints, it prints once more when it is made for real
            os.dup2(nothing, 2)
            os.write(writing, _weigh_text(weigh).encode("utf-8"))
        finally:
            os._exit(0)
    os.close(writing)
    late = not select.select([reading], [], [], PATIENCE)[0]
    text = (
        "" if late else os.read(reading, 4096).decode("utf-8", "replace")
    )  # once: what it started may keep the pipe open
    os.close(reading)
    if late:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if text.isdigit():
        return int(text), ""
    return None, text or (f"it took more than {PATIENCE} s" if late else "its process ended")


def _weigh_text(weigh: Callable[[], int]) -> str:
    try:
        return str(weigh())
    except Exception as error:  # whatever their code does that needs values
        first = text_of(error).strip().split("\n")[0]
        return f"{type(error).__name__}: {first[:120]}"


def gib(amount: int) -> str:
    """A number of bytes in words: ``240.0 GiB``."""
    return f"{amount / (1 << 30):.1f} GiB"


def free_memory() -> Optional[int]:
    """Bytes that this process may still take: what the system, its control group and its own limit leave of theirs, the
    least of them; None where nothing says."""
    known = [left for left in (_of_system(), _of_group(), _of_limit()) if left is not None]
    return max(min(known), 0) if known else None


def _of_system() -> Optional[int]:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _of_group() -> Optional[int]:
    """What the control groups around this process leave it (both versions of them); files in their cache can go."""
    found: List[int] = []
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.strip().split(":", 2)
        if controllers == "memory":
            top, names = os.path.join(GROUPS, "memory"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
        elif not controllers:
            top, names = GROUPS, ("memory.max", "memory.current")
        else:
            continue
        parts = [part for part in path.split("/") if part]
        for end in range(len(parts) + 1):
            folder = os.path.join(top, *parts[:end])
            left = _memory_left(folder, names)
            if left is not None:
                found.append(left)
    return min(found) if found else None


def _memory_left(folder: str, names: Tuple[str, str]) -> Optional[int]:
    limit, used = ("".join(_lines(os.path.join(folder, name))).strip() for name in names)
    if not limit.isdigit() or not used.isdigit():
        return None
    cached = [
        line.split()[1] for line in _lines(os.path.join(folder, "memory.stat")) if line.startswith("inactive_file ")
    ]
    return int(limit) - int(used) + sum(map(int, cached))


def _of_limit() -> Optional[int]:
    """What the limit of this process's address space (``ulimit -v``) leaves it."""
    try:
        import resource
    except ImportError:
        return None
    limit, used = resource.getrlimit(resource.RLIMIT_AS)[0], "".join(_lines("/proc/self/statm")).split()
    if limit == resource.RLIM_INFINITY or not used:
        return None
    return limit - int(used[0]) * resource.getpagesize()


def _lines(path: str) -> List[str]:
    """The lines of a small file, none where it cannot be read."""
    try:
        with open(path) as file:
            return file.readlines()
    except OSError:
        return []
