"""Counts the products of a kernel that Triton's interpreter runs (``TRITON_INTERPRET=1``): each ``tl.dot``, by its blocks' sizes.

The interpreter runs every program of a launch in numpy (triton/runtime/interpreter.py of 3.1 to 3.9), so loops are as long as
the data say and skipped blocks are left out. Blocks are counted whole, as a GPU multiplies them, masked elements included.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from math import prod
from threading import local
from typing import Any, NamedTuple

from ....core.records import FORWARD, POINTWISE, Op, Tensor

DOT, OTHERS = "tl.dot", "tl.elementwise"
"""The ops inside a launch: its products, and all that it computes beside them, which is not counted."""
COUNTED_IF_INTERPRETED = (
    "it ran compiled, where its products cannot be counted: with TRITON_INTERPRET=1 set before the kernel is declared, "
    "and on the CPU, each is counted as it runs"
)
TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
"""Triton's names of types that PyTorch calls otherwise."""

_now = local()


class CountedLaunch(NamedTuple):
    """What is known of a launch's work: ``inside``, as of an operator of another library (opened_kernels.py)."""

    inside: Any
    parts: tuple[()] = ()


def list_methods() -> list[tuple[Any, str, Callable[..., Any]]]:
    """The methods of the interpreter that run a grid and that multiply two blocks, and what counts a call of them."""
    module = sys.modules.get("triton.runtime.interpreter")
    if module is None:
        return []
    builder = module.InterpreterBuilder
    dots = ((name, _count_dot) for name in ("create_dot", "create_dot_scaled"))
    return [(module.GridExecutor, "__call__", _start_grid), *((builder, name, around) for name, around in dots)]


def begin_launch() -> None:
    """A launch begins on this thread."""
    _now.dots = None


def count_launch() -> CountedLaunch:
    """What the launch that has ended on this thread multiplied."""
    dots = getattr(_now, "dots", None)
    if dots is None:
        return CountedLaunch(COUNTED_IF_INTERPRETED)
    ops = [Op("", DOT, "", dot[:2], dot[2:], {}, calls, FORWARD, ()) for dot, calls in dots.items()]
    ops.append(Op("", OTHERS, "", (), (), {POINTWISE: True}, 1, FORWARD, ()))
    return CountedLaunch([op._asdict() for op in ops])


def _start_grid(run: Callable[..., Any]) -> Callable[..., Any]:
    def run_counted(*args: Any, **kwargs: Any) -> Any:
        _now.dots = Counter()  # of several that an autotuner tries, the last is the launch
        return run(*args, **kwargs)

    return run_counted


def _count_dot(multiply: Callable[..., Any]) -> Callable[..., Any]:
    def multiply_counted(builder: Any, first: Any, *others: Any, **kwargs: Any) -> Any:
        out = multiply(builder, first, *others, **kwargs)
        if getattr(_now, "dots", None) is not None:
            # first, second, sum, ...; or first, its scales and format, second, ...: two numbers of four bits are in a byte
            second, packed = (others[2], 2 - (_name(others[1]) != "E2M1")) if len(others) > 4 else (others[0], 1)
            rows, (*_, columns) = prod(out.data.shape[:-1]), out.data.shape
            inner = first.data.size * packed // rows
            stack = out.data.shape[:-2]
            shapes = ((*stack, rows // prod(stack), inner), (*stack, inner, columns), out.data.shape)
            tensors = zip(shapes, (first, second, out))
            _now.dots[tuple(Tensor(tuple(shape), _type(each)) for shape, each in tensors)] += 1
        return out

    return multiply_counted


def _type(handle: Any) -> str:
    name = str(handle.dtype.scalar)
    return TYPES.get(name, name.replace("fp8", "float8_"))


def _name(format_: Any) -> str:
    return str(getattr(format_, "name", format_)).rpartition(".")[2]
