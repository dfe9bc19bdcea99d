"""numpy.einsum_path's count for the cheapest order of pairwise products (numpy/_core/einsumfunc.py), without numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.errors import ReconcileError

Terms = tuple[frozenset[str], ...]
MOST = 6
"""Operands up to which all orders are tried."""


def cheapest(equation: str, shapes: Sequence[tuple[int, ...]]) -> int:
    """The count of the cheapest order, and one: what numpy prints before it rounds."""
    terms, output, sizes = _read(equation.replace(" ", ""), shapes)
    if len(terms) > MOST:
        raise ReconcileError(f"einsum of {len(terms)} operands: this counter's rule tries the orders of {MOST} at most")
    if len(terms) <= 2:
        return _contracted(terms, tuple(range(len(terms))), output, sizes)[0] + 1
    return _best(terms, output, sizes) + 1


def _read(equation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[Terms, frozenset[str], dict[str, int]]:
    left, arrow, right = equation.partition("->")
    names = left.split(",")
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
    rank = max(len(shape) - len(name.replace("...", "")) for name, shape in zip(names, shapes, strict=True))
    named: list[str] = []
    sizes: dict[str, int] = {}
    for name, shape in zip(names, shapes, strict=True):
        missing = len(shape) - len(name.replace("...", ""))
        letters = name.replace("...", "".join(free[rank - missing : rank]))
        named.append(letters)
        for letter, length in zip(letters, shape, strict=True):
            sizes[letter] = max(length, sizes.get(letter, 1))
    wide = "".join(free[:rank])
    if not arrow:
        joined = "".join(named)
        right = wide + "".join(letter for letter in joined if joined.count(letter) == 1)
    return tuple(map(frozenset, named)), frozenset(right.replace("...", wide)), sizes


def _contracted(
    terms: Terms, which: tuple[int, ...], output: frozenset[str], sizes: Mapping[str, int]
) -> tuple[int, Terms]:
    """The count of the product of these terms, and the terms after it."""
    taken = frozenset[str]().union(*(terms[i] for i in which))
    rest = tuple(term for i, term in enumerate(terms) if i not in which)
    kept = taken & output.union(*rest)
    size = 1
    for letter in taken:
        size *= sizes[letter]
    return size * (max(1, len(which) - 1) + (taken != kept)), (*rest, kept)


def _best(terms: Terms, output: frozenset[str], sizes: Mapping[str, int]) -> int:
    if len(terms) == 1:
        return 0
    pairs = [(i, j) for i in range(len(terms)) for j in range(i + 1, len(terms))]
    costs = (_contracted(terms, pair, output, sizes) for pair in pairs)
    return min(cost + _best(left, output, sizes) for cost, left in costs)
