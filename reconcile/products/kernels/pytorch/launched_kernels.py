"""Watches the classes of Triton that launch a kernel: each launch becomes a call of an operator (tracing/launches.py)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from ....adapters.pytorch.tracing.launches import SPACE, call_as_operator, is_launching, kind_of

GRID = "grid"
MOST_ARGUMENTS = 64
"""So many arguments an operator may have; of a kernel with more, the first are told."""
RUNNING = ("JITFunction", "Heuristics", "Autotuner", "InterpretedFunction")
"""The classes of Triton that launch a kernel by ``run(*args, grid=, warmup=, **kwargs)``; the outermost is the launch
(triton/runtime/jit.py, autotuner.py and interpreter.py of 3.1 to 3.9)."""


def list_launchers() -> list[Any]:
    """The classes that launch kernels here."""
    try:
        from triton.runtime import autotuner, interpreter, jit
    except ImportError:  # its own, for a machine that it does not know
        return []
    found = [getattr(module, name, None) for name in RUNNING for module in (jit, autotuner, interpreter)]
    return [kind for kind in dict.fromkeys(found) if kind is not None and "run" in vars(kind)]


def run_as_operator(
    begin: Callable[[], None], note: Callable[..., None], run: Callable[..., Any], self: Any, *args: Any, **kwargs: Any
) -> Any:
    """A call of a method that launches, as an operator's call; ``begin()`` comes before the launch, and then ``note(kernel,
    arguments, grid)`` with what was launched."""
    if kwargs.get("warmup"):
        return run(self, *args, **kwargs)
    given = dict(zip(self.arg_names, args, strict=False), **{k: v for k, v in kwargs.items() if k in self.arg_names})
    grid = _grid(kwargs.get(GRID), given)

    def launch() -> Any:
        kernel = run(self, *args, **kwargs)
        note(kernel, given, grid)
        return kernel

    if is_launching():
        return launch()
    readable = ((name, value) for name, value in {GRID: grid, **given}.items() if kind_of(value))
    begin()
    return call_as_operator(SPACE, _name(self), dict(islice(readable, MOST_ARGUMENTS)), launch)


def _grid(grid: Any, given: dict[str, Any]) -> list[int]:
    """How many programs run in each direction; none where only the launch itself can tell, as of an autotuned kernel."""
    try:
        return [int(size) for size in (grid(given) if callable(grid) else grid)]
    except (KeyError, TypeError, ValueError):
        return []


def _name(kernel: Any) -> str:
    """The kernel's own name: an autotuned one has it from the function inside."""
    while not hasattr(kernel, "__name__") or hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(kernel.__name__)
