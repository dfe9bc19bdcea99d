"""Counts the products of a launch of Triton: each ``tl.dot``, by its blocks' sizes.

Of a kernel that was compiled its program says them (kernel_programs.py). The interpreter (``TRITON_INTERPRET=1``) runs every
program of a launch in numpy (triton/runtime/interpreter.py of 3.1 to 3.9), so loops are as long as the data say and skipped
blocks are left out. Blocks are counted whole, as a GPU multiplies them; what masks discard of them is known in the interpreter.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod
from threading import local
from typing import Any

from ....adapters.pytorch.tracing.launches import CountedLaunch
from ....core.records import FORWARD, POINTWISE, Op, Tensor
from .kernel_programs import CannotRead, count_dots
from .launched_kernels import list_launchers, run_as_operator

DOT, OTHERS = "tl.dot", "tl.elementwise"
"""The ops inside a launch: its products, and all that it computes beside them, which is not counted."""
MASKED = "masked"
"""The attribute of a product that says how many multiply-adds a mask discards, as in a Work; none of a compiled kernel's."""
COUNTED_IF_INTERPRETED = (
    "its compiled program does not show its products (%s is not followed): with TRITON_INTERPRET=1 set before the kernel is "
    "declared, and on the CPU, each is counted as it runs"
)

_now = local()


def list_doors() -> list[tuple[Any, str, Callable[..., Any]]]:
    """The methods that launch kernels, and those of the interpreter that run a grid and compute, with what watches each."""
    watch: Callable[..., Any] = partial(run_as_operator, begin_launch, note_compiled)
    launching = [(kind, "run", watch) for kind in list_launchers()]
    module = sys.modules.get("triton.runtime.interpreter")
    if not launching or module is None:
        return launching
    from . import masked_products as masks  # it needs numpy, as the interpreter does

    builder, dots = module.InterpreterBuilder, partial(_count_dot, masks)
    own = {"set_grid_idx": partial(_start_program, masks), "create_dot": dots, "create_dot_scaled": dots}
    grid = (module.GridExecutor, "__call__", partial(_run_grid, masks))
    return [*launching, grid, *((builder, *each) for each in own.items()), *masks.list_methods(module)]


def begin_launch() -> None:
    """A launch begins on this thread."""
    _now.dots = _now.compiled = None


def note_compiled(kernel: Any, given: dict[str, Any], grid: list[int]) -> Any:
    """A kernel, which is returned, was launched so: of several that an autotuner tries, the last is the launch. The autotuner
    returns it, too, and knows less of its arguments."""
    if "ttir" in getattr(kernel, "asm", ()) and (_now.compiled is None or _now.compiled[0] is not kernel):
        # no tensor: it would live on until the next launch
        numbers = {name: value for name, value in given.items() if isinstance(value, int)}
        _now.compiled = kernel, numbers, grid
    return kernel


def count_launch() -> CountedLaunch:
    """What the launch that has ended on this thread multiplied."""
    dots, compiled = getattr(_now, "dots", None), getattr(_now, "compiled", None)
    if dots is None:
        try:
            found = count_dots(compiled[0].asm["ttir"], *compiled[1:]) if compiled and compiled[2] else None
            dots = found if found is None else {(blocks,): calls for blocks, calls in found.items()}
        except CannotRead as error:
            return CountedLaunch(COUNTED_IF_INTERPRETED % error)
        except Exception as error:  # what an unknown version of Triton writes
            return CountedLaunch(COUNTED_IF_INTERPRETED % type(error).__name__)
    if dots is None:
        return CountedLaunch(COUNTED_IF_INTERPRETED % "its grid")
    ops = []
    for (blocks, *masked), calls in dots.items():
        first, second, out = (Tensor(size, _type(kind)) for size, kind in blocks)
        known = {MASKED: masked[0]} if masked else {}
        ops.append(Op("", DOT, "", (first, second), (out,), known, calls, FORWARD, ()))
    ops.append(Op("", OTHERS, "", (), (), {POINTWISE: True}, 1, FORWARD, ()))
    return CountedLaunch([op._asdict() for op in ops])


def _run_grid(masks: Any, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    masks.end_program()
    _now.dots = Counter()  # of several that an autotuner tries, the last is the launch
    out = run(*args, **kwargs)
    _now.dots.update(masks.end_program())
    return out


def _start_program(masks: Any, move: Callable[..., Any], *args: Any) -> Any:
    if getattr(_now, "dots", None) is not None:
        _now.dots.update(masks.end_program())
    return move(*args)


def _count_dot(masks: Any, multiply: Callable[..., Any], builder: Any, first: Any, *others: Any, **kwargs: Any) -> Any:
    out = multiply(builder, first, *others, **kwargs)
    if getattr(_now, "dots", None) is not None:
        # first, second, sum, ...; or first, its scales and format, second, ...: two numbers of four bits are in a byte
        second, packed = (others[2], 2 - (_name(others[1]) != "E2M1")) if len(others) > 4 else (others[0], 1)
        rows, (*_, columns) = prod(out.data.shape[:-1]), out.data.shape
        inner = first.data.size * packed // rows
        stack = out.data.shape[:-2]
        shapes = (*stack, rows // prod(stack), inner), (*stack, inner, columns)
        tensors = (shapes[0], first), (shapes[1], second), (out.data.shape, out)
        blocks = tuple((tuple(shape), str(each.dtype.scalar)) for shape, each in tensors)
        masks.note_dot(blocks, out, first, *others)
    return out


def _type(name: str) -> str:
    """A type by PyTorch's name: fp16, f16 and bf16, f8E5M2 and fp8e5, i8."""
    name = re.sub(r"^(b?)fp?(?=\d)", r"\1float", name)
    return re.sub(r"^i(?=\d)", "int", name)


def _name(format_: Any) -> str:
    return str(getattr(format_, "name", format_)).rpartition(".")[2]
