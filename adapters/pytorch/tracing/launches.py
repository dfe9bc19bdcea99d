"""Kernels of Triton, which a program launches past PyTorch's dispatcher, as operators: ``triton::name``.

Each launch becomes a call of an operator that is named as the kernel, takes its arguments by their names and its grid, and
launches it.  So every mode meets it, and within an operator of a library it is a part of that one, as any other call is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from os import environ
from threading import Lock, local
from typing import Any

import torch

SPACE = "triton"
"""The namespace of these operators: ``triton.name`` in a trace and in files of formulas."""
GRID = "grid"
KINDS = {bool: "bool", int: "int", float: "float", str: "str"}
"""Types of arguments that stand in a record, and how a schema calls them."""
LARGEST = 1 << 63
"""What an ``int`` of a schema is less than."""
RUNNING = ("JITFunction", "Heuristics", "Autotuner", "InterpretedFunction")
"""The classes of Triton that launch a kernel by ``run(*args, grid=, warmup=, **kwargs)``; the outermost is the launch
(triton/runtime/jit.py, autotuner.py and interpreter.py of 3.1 to 3.9)."""

_now = local()
_lock = Lock()
_depth: list[int] = []
_held: list[tuple[Any, Any]] = []
_operators: dict[tuple[str, str], Any] = {}
_libraries: list[Any] = []


def may_launch() -> bool:
    """Whether a kernel of Triton can be launched here: on a GPU, or in its interpreter."""
    return SPACE in sys.modules or (
        (torch.cuda.is_initialized() or environ.get("TRITON_INTERPRET") == "1") and find_spec(SPACE) is not None
    )


def see() -> None:
    """From now on each launch of a kernel of Triton is a call of an operator, until ``unsee`` was called as often."""
    with _lock:
        if not _held and may_launch():
            for kind in _classes():
                _held.append((kind, kind.run))
                kind.run = _seen(kind.run)
        _depth.append(1)


def is_launching() -> bool:
    """Whether a kernel is being launched on this thread: at the first launch Triton starts its compiler."""
    return getattr(_now, "launch", None) is not None


def unsee() -> None:
    """See ``see``."""
    with _lock:
        _depth.pop()
        while _held and not _depth:
            kind, run = _held.pop()
            kind.run = run


def _classes() -> list[Any]:
    try:
        from triton.runtime import autotuner, interpreter, jit
    except ImportError:  # its own, for a machine that it does not know
        return []
    found = [getattr(module, name, None) for name in RUNNING for module in (jit, autotuner, interpreter)]
    return [kind for kind in dict.fromkeys(found) if kind is not None and "run" in vars(kind)]


def _seen(run: Callable[..., Any]) -> Callable[..., Any]:
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("warmup") or is_launching():
            return run(self, *args, **kwargs)
        given = dict(zip(self.arg_names, args), **{k: v for k, v in kwargs.items() if k in self.arg_names})
        given[GRID] = _grid(kwargs.get(GRID), given)
        results: list[Any] = []
        _now.launch = lambda: results.append(run(self, *args, **kwargs))
        try:
            _call(_name(self), {name: value for name, value in given.items() if _kind(value)})
        finally:
            _now.launch = None
        return results[0] if results else None

    return seen


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


def _kind(value: Any) -> str:
    """The type of an argument in a schema; '' for one that no schema takes."""
    if isinstance(value, torch.Tensor):
        return "Tensor"
    if isinstance(value, list) and all(isinstance(size, int) for size in value):
        return "int[]"
    if isinstance(value, int) and not -LARGEST <= value < LARGEST:  # an address, say
        return ""
    return KINDS.get(type(value), "")


def _call(name: str, given: dict[str, Any]) -> None:
    """Call the operator that launches what is to be launched now."""
    schema = ", ".join(f"{_kind(value)} {argument}" for argument, value in given.items())
    operator = _operators.get((name, schema))
    if operator is None:
        overload = f"of{len(_operators)}"
        library = torch.library.Library(SPACE, "FRAGMENT")
        library.define(f"{name}.{overload}({schema}) -> ()")
        library.impl(f"{name}.{overload}", _launched, "CompositeExplicitAutograd")
        _libraries.append(library)  # an operator lives as long as its library
        operator = _operators[(name, schema)] = getattr(getattr(getattr(torch.ops, SPACE), name), overload)
    operator(*given.values())


def _launched(*_: Any) -> None:
    _now.launch()
