"""Counts the products of a kernel in Triton's interpreter that a mask discards: of padding, or above the diagonal of attention.

Elements of blocks are followed through each program. One is *fixed* if no number from memory decides it: what a masked load fills
in, what ``tl.where`` puts in another's place, and what these make of others (0 times a weight). A result of a product is *kept*
if a sum, another product, or a store whose mask lets it through takes it. A product is discarded if a factor is a fixed 0 in a
block that is not wholly constant, or if its result reaches one of these and is not kept. What decides an element is found by
calling the operation again, with other numbers in place of those from memory; where that cannot be told, nothing is discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import local
from typing import Any

import numpy as np

PROBES = (30000.0, 20000.0), (-50000.0, -40000.0), (1.25, 1.5)
"""What takes the place of numbers from memory, in an operation's first argument and in the others: large, negative, small."""
NOT_REPEATED = ("load", "store", "dot", "atomic", "print", "assert", "assume", "asm", "barrier", "descriptor")
"""Words in the names of operations that read or write memory, or have nothing to follow."""
RANDOM = "create_umulhi"
"""A step of tl.rand: what random numbers leave out is discarded by no mask."""

_now = local()


class Dot:
    """A product: its blocks, how many factors of each result are no fixed 0, and which results are kept."""

    def __init__(self, blocks: Any) -> None:
        self.blocks, (*_, (shape, _)) = blocks, blocks
        self.factors, self.kept, self.is_used = np.full(shape, blocks[0][0][-1]), np.zeros(shape, dtype=bool), False

    def count_masked(self) -> int:
        """The multiply-adds that a mask discards."""
        return int(self.kept.size * self.blocks[0][0][-1] - self.factors[self.kept | (not self.is_used)].sum())


def end_program() -> Iterator[tuple[Any, ...]]:
    """The blocks of each product of a program that has ended, and what is masked of it unless that could not be followed."""
    dots, failed = getattr(_now, "dots", []), getattr(_now, "failed", False)
    _now.dots, _now.depth, _now.failed = [], 0, False
    return ((dot.blocks,) if failed else (dot.blocks, dot.count_masked()) for dot in dots)


def list_methods(module: Any) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """The methods of the interpreter that compute, and what follows a call of them."""
    builder = module.InterpreterBuilder
    inner = dict.fromkeys(("binary_op", "unary_op", "ternary_op", "cast_impl"), _mark_elementwise)
    inner |= {
        name: partial(_follow, note) for name, note in (("create_masked_load", _load), ("create_masked_store", _store))
    }
    for name in vars(builder):
        if name in inner or (name.startswith(("create_", "get_")) and "create_dot" not in name):
            yield builder, name, inner.get(name, partial(_follow, partial(_compute, name)))
    reductions = (kind for kind in vars(module).values() if isinstance(kind, type) and "check_tensor" in vars(kind))
    yield from ((kind, "apply", partial(_follow, _reduce)) for kind in reductions)


def note_dot(blocks: Any, out: Any, *given: Any) -> None:
    """A product of these blocks ran: of a first and a second, which adds to a third, or of others, which are not followed."""
    dot = Dot(blocks)
    _now.dots.append(dot)
    _guard(_multiply if is_block(given[1]) and is_block(given[2]) else _keep_all, dot, out, *given)


def is_block(value: Any) -> bool:
    """Whether this is a block of the interpreter's."""
    return type(value).__name__ == "TensorHandle"


def _multiply(dot: Dot, out: Any, first: Any, second: Any, total: Any, *_: Any) -> None:
    dot.factors = _varies(first).astype(float) @ _varies(second)
    _keep([first, second])
    out.fixed = (dot.factors == 0) & _find_fixed(total)
    out.results = [(dot, np.True_), *getattr(total, "results", ())]


def _keep_all(_dot: Dot, out: Any, *given: Any) -> None:
    _keep([each for each in given if is_block(each)])


def _find_fixed(block: Any) -> Any:
    """Where no number from memory decides a block. Whole numbers are places and lengths, unless they were numbers before."""
    found = getattr(block, "fixed", None)
    return np.broadcast_to(not block.dtype.scalar.is_floating() if found is None else found, block.data.shape)


def _varies(block: Any) -> Any:
    is_constant = getattr(block, "fixed", None) is True
    return np.broadcast_to(is_constant, block.data.shape) | ~(_find_fixed(block) & (block.data == 0))


def _keep(blocks: Sequence[Any], where: Any = np.True_) -> None:
    for block in blocks:
        for dot, reached in getattr(block, "results", ()):
            dot.kept |= reached & where
            dot.is_used = True


def _guard(note: Callable[..., None], *args: Any) -> None:
    """Note something of a call; a version of the interpreter that is not understood leaves the masks of a program unknown."""
    try:
        note(*args)
    except Exception:
        _now.failed = True


def _mark_elementwise(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    _now.elementwise = True
    return method(*args, **kwargs)


def _follow(note: Callable[..., None], method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Note each call of a method, and none that it makes itself, but of masked loads and stores."""
    depth, _now.elementwise = getattr(_now, "depth", 0), False
    _now.depth = depth + 1
    try:
        out = method(*args, **kwargs)
        if not depth or note in (_load, _store):
            _guard(note, out, method, *args)
    finally:
        _now.depth = depth
    return out


def _load(out: Any, _method: Any, _builder: Any, _places: Any, mask: Any, other: Any, *_: Any) -> None:
    if out.dtype.scalar.is_floating():
        out.fixed = ~np.broadcast_to(mask.data, out.data.shape) & (True if other is None else _find_fixed(other))


def _store(_out: Any, _method: Any, _builder: Any, _places: Any, value: Any, mask: Any, *_: Any) -> None:
    _keep([value], mask.data)


def _reduce(out: Any, _method: Any, _reduction: Any, given: Any) -> None:
    blocks = [each.handle for each in (given if isinstance(given, tuple) else (given,))]
    _keep(blocks)
    for each in out if isinstance(out, tuple) else (out,):
        each.handle.fixed = all(_find_fixed(block).all() for block in blocks)


def _compute(name: str, out: Any, method: Callable[..., Any], builder: Any, *args: Any) -> None:
    blocks, elementwise = [value for value in args if is_block(value)], _now.elementwise
    if any(word in name for word in NOT_REPEATED) or not is_block(out):
        _keep(blocks if "store" not in name else ())
        return
    fixed = [_find_fixed(block) for block in blocks]
    if name == RANDOM or not any(map(np.any, fixed)):
        out.fixed = not blocks
    else:
        is_constant = all(getattr(block, "fixed", not block.dtype.scalar.is_floating()) is True for block in blocks)
        out.fixed = is_constant or ~_find_changes(method, builder, args, [~each for each in fixed])
    for index, block in enumerate(blocks):
        results = getattr(block, "results", ())
        if results and elementwise and block.data.shape == out.data.shape:
            changes = _find_changes(method, builder, args, [index == each for each in range(len(blocks))])
            out.results = [*getattr(out, "results", ()), *((dot, reached & changes) for dot, reached in results)]
        else:
            _keep([block])


def _find_changes(method: Callable[..., Any], builder: Any, args: Any, places: Sequence[Any]) -> Any:
    """Where the result changes if other numbers stand at these ``places`` of the blocks that an operation is given."""
    found = []
    for first, others in PROBES:
        left = zip(places, (first, *[others] * len(places)), strict=False)
        given = [_replace(value, *next(left)) if is_block(value) else value for value in args]
        with np.errstate(all="ignore"):
            found.append(method(builder, *given).data)
    return (found[0] != found[1]) | (found[0] != found[2])


def _replace(block: Any, places: Any, number: float) -> Any:
    kind = block.data.dtype.kind
    other = number > 0 if kind == "b" else int(number) if kind in "iu" else number
    return type(block)(np.where(places, np.asarray(other).astype(block.data.dtype), block.data), block.dtype)
