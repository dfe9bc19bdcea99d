"""Alignment of two sequences, here two models' layers: only the pairs that all highest-scoring alignments share.

This is Needleman and Wunsch's dynamic programme (J. Mol. Biol. 48, 1970) with integer scores and free gaps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def find_certain_pairs(a: Sequence[A], b: Sequence[B], score: Callable[[A, B], int]) -> list[tuple[int, int]]:
    """Pairs of positions that every alignment with the highest score has; order is kept, a score of 0 never pairs.

    If two partners are equally good, or a partner is as good as none, there is no pair: ties stay unmatched.
    Time and memory are quadratic.
    """
    scores = [[score(x, y) for y in b] for x in a]
    before = _prefixes(scores, len(b))
    turned = [row[::-1] for row in reversed(scores)]
    after = [row[::-1] for row in reversed(_prefixes(turned, len(b)))]
    best = before[len(a)][len(b)]
    pairs = []
    for i, row in enumerate(scores):
        alone = any(before[i][j] + after[i + 1][j] == best for j in range(len(b) + 1))
        partners = [j for j, s in enumerate(row) if s and before[i][j] + s + after[i + 1][j + 1] == best]
        if len(partners) == 1 and not alone:
            pairs.append((i, partners[0]))
    return pairs


def _prefixes(scores: Sequence[Sequence[int]], width: int) -> list[list[int]]:
    """The highest score of an alignment of the first i with the first j, for every i and j."""
    table = [[0] * (width + 1)]
    for row in scores:
        above, line = table[-1], [0]
        for j, s in enumerate(row):
            best = above[j + 1] if above[j + 1] > line[j] else line[j]
            if s and above[j] + s > best:
                best = above[j] + s
            line.append(best)
        table.append(line)
    return table


def find_ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest selection of pairs that ascends on both sides; of several, the one with the lowest ends."""
    ordered = sorted(pairs)
    ends: list[int] = []
    chain: list[int] = []
    back: list[int | None] = []
    for index, (_, y) in enumerate(ordered):
        at = bisect_left(ends, y)
        back.append(chain[at - 1] if at else None)
        ends[at : at + 1], chain[at : at + 1] = [y], [index]
    selected: list[tuple[int, int]] = []
    last = chain[-1] if chain else None
    while last is not None:
        selected.append(ordered[last])
        last = back[last]
    return selected[::-1]
