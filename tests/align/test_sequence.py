"""The certain part of the best alignments, against all alignments there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.align.sequence import find_ascending, find_certain_pairs

SCORES = st.integers(0, 4).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 3), min_size=width, max_size=width), max_size=4)
)


def alignments(height: int, width: int, i: int = 0, j: int = 0) -> Iterator[frozenset[tuple[int, int]]]:
    """Every set of pairs that ascends on both sides."""
    if i == height:
        yield frozenset()
        return
    yield from alignments(height, width, i + 1, j)
    for k in range(j, width):
        for rest in alignments(height, width, i + 1, k + 1):
            yield rest | {(i, k)}


@settings(max_examples=40)
@given(SCORES)
def test_what_every_best_alignment_has(scores: Sequence[Sequence[int]]) -> None:
    width = len(scores[0]) if scores else 3
    allowed = [a for a in alignments(len(scores), width) if all(scores[i][j] for i, j in a)]
    totals = {a: sum(scores[i][j] for i, j in a) for a in allowed}
    best = [a for a in allowed if totals[a] == max(totals.values())]
    found = find_certain_pairs(range(len(scores)), range(width), lambda i, j: scores[i][j])
    assert set(found) == frozenset.intersection(*best)
    assert found == sorted(found)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 5), unique=True).flatmap(lambda xs: st.permutations(range(len(xs)))))
def test_the_longest_ascent(order: Sequence[int]) -> None:
    pairs = list(enumerate(order))
    found = find_ascending(pairs)
    assert set(found) <= set(pairs)
    assert [(a, b) for (_, a), (_, b) in pairwise(found) if a >= b] == []
    longest = max(len(a) for a in alignments(len(order), len(order)) if a <= set(pairs)) if order else 0
    assert len(found) == longest
