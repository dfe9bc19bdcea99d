"""Long tables are cut: the largest lines stay, in their order, and one line has the sum of the others, so a table adds up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def largest(
    lines: Sequence[T], limit: int | None, size: Callable[[T], Any], kept: Callable[[T], bool] = lambda _: False
) -> tuple[Sequence[T], Sequence[T]]:
    """The ``limit`` largest lines and all lines in ``kept``, in their order, and the rest, which is never a single line.
    Without a limit, all lines."""
    if limit is None:
        return lines, ()
    by_size = sorted(range(len(lines)), key=lambda index: size(lines[index]), reverse=True)
    shown = {*by_size[:limit], *(i for i, x in enumerate(lines) if kept(x))}
    if len(lines) <= len(shown) + 1:
        return lines, ()
    return [x for i, x in enumerate(lines) if i in shown], [x for i, x in enumerate(lines) if i not in shown]
