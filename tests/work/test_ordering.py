"""top-k and sort: the formula against a knockout tournament that is really played, on every order of up to 5 numbers."""

from __future__ import annotations

import itertools

import pytest

from reconcile.work import Work, ordering, work_of
from tests.work.records_by_hand import make


class Tournament:
    """A knockout tournament that stays as balanced as it can be; ``played`` counts its matches.

    Places are the paths from the final ('') down: a place with nothing below it is where a number stands.
    """

    def __init__(self, numbers):
        self.played = 0
        self.at = {}
        self._seat("", list(numbers))

    def _seat(self, place, numbers):
        if len(numbers) == 1:
            self.at[place] = numbers[0]
            return
        half = (len(numbers) + 1) // 2
        self._seat(place + "0", numbers[:half])
        self._seat(place + "1", numbers[half:])
        self._play(place)

    def _play(self, place):
        self.played += 1
        self.at[place] = max(self.at[place + "0"], self.at[place + "1"])

    def take(self, again):
        """The winner; if another is wanted, its matches are played again without it."""
        best = self.at[""]
        if not again:
            return best
        place = ""
        while place + "0" in self.at:
            place += "0" if self.at[place + "0"] == best else "1"
        deepest = max(self.at, key=len)
        if len(place) == len(deepest):  # who lost to it first moves up without a match
            pair = place[:-1]
            self._dissolve(pair, stays=min(self.at[pair + "0"], self.at[pair + "1"]))
            place = pair
        else:  # who lost one of the matches furthest from the final takes the place
            pair = deepest[:-1]
            self.at[place] = min(self.at[pair + "0"], self.at[pair + "1"])
            self._dissolve(pair, stays=self.at[pair])
        while place:
            place = place[:-1]
            self._play(place)
        return best

    def _dissolve(self, pair, stays):
        del self.at[pair + "0"], self.at[pair + "1"]
        self.at[pair] = stays


@pytest.mark.parametrize("n", range(1, 6))
def test_a_tournament_takes_exactly_this_many_whatever_the_data(n):
    for numbers in itertools.permutations(range(n)):
        for k in range(1, n + 1):
            tournament = Tournament(numbers)
            found = [tournament.take(again=place < k - 1) for place in range(k)]
            assert found == sorted(numbers, reverse=True)[:k]
            assert ordering.largest(1, n, k) == Work(cmp=tournament.played)


def test_one_is_a_maximum_and_all_a_sort():
    for n in (1, 2, 3, 8, 9, 1000):
        assert ordering.largest(5, n, 1) == work_of(make("aten.amax", [(5, n)], [(5,)]))
        insertion = sum((j - 1).bit_length() for j in range(1, n + 1))  # each into the sorted ones before it, by halves
        assert ordering.largest(1, n, n) == Work(cmp=insertion)
    assert ordering.largest(1, 8, 2) == Work(cmp=8 - 2 + 3)


def test_records_of_both_frameworks():
    each = ordering.largest(6, 9, 2)
    assert work_of(make("aten.topk", [(2, 9, 3)], [(2, 2, 3), (2, 2, 3)], k=2, dim=1)) == each
    assert work_of(make("TopKV2", [(6, 9), ()], [(6, 2), (6, 2)])) == each
    assert work_of(make("aten.sort", [(2, 9, 3)], [(2, 9, 3), (2, 9, 3)], dim=1)) == ordering.largest(6, 9, 9)
    assert work_of(make("aten.sort", [()], [(), ()], dim=-1)) == Work()
    assert work_of(make("aten.topk", [(0, 4)], [(0, 2), (0, 2)], k=2, dim=-1)) == Work()
    assert work_of(make("aten.topk", [(4, 0)], [(4, 0), (4, 0)], k=0, dim=-1)) == Work()


def _search(sorted_, value):
    """A binary search; how many comparisons it took, and the place."""
    low, high, compared = 0, len(sorted_), 0
    while low < high:
        middle = (low + high) // 2
        compared += 1
        low, high = (middle + 1, high) if sorted_[middle] < value else (low, middle)
    return compared, low


@pytest.mark.parametrize("n", range(9))
def test_the_longest_of_all_searches(n):
    values = [x / 2 for x in range(-1, 2 * n + 1)]
    found = [_search(list(range(n)), value) for value in values]
    assert [place for _, place in found] == [sum(i < value for i in range(n)) for value in values]
    assert ordering.search_sorted(1, n) == Work(cmp=max(compared for compared, _ in found))


@pytest.mark.parametrize("n", range(1, 6))
def test_one_in_the_middle_is_the_last_of_a_tournament(n):
    for numbers in itertools.permutations(range(n)):
        for k in range(1, n + 1):
            backwards = k > n + 1 - k
            tournament = Tournament([-x for x in numbers] if not backwards else numbers)
            rounds = min(k, n + 1 - k)
            last = [tournament.take(again=place < rounds - 1) for place in range(rounds)][-1]
            assert abs(last) == sorted(numbers)[k - 1]
            assert ordering.kth(1, n, k) == Work(cmp=tournament.played)


def test_records_that_select_and_search():
    assert work_of(make("aten.kthvalue", [(2, 9, 3)], [(2, 3), (2, 3)], k=7, dim=1)) == ordering.largest(6, 9, 3)
    assert work_of(make("aten.median", [(4, 5)], [()])) == ordering.largest(1, 20, 10)
    assert work_of(make("aten.median", [(4, 5)], [(4,), (4,)], dim=-1)) == ordering.largest(4, 5, 3)
    assert work_of(make("aten.msort", [(9, 4)], [(9, 4)])) == ordering.largest(4, 9, 9)
    assert work_of(make("aten.searchsorted", [(2, 7), (2, 5)], [(2, 5)])) == Work(cmp=10 * 3)
    assert work_of(make("aten.bucketize", [(2, 5), (8,)], [(2, 5)])) == Work(cmp=10 * 4)
    assert work_of(make("aten.bucketize", [(8,)], [()], self=0.5)) == Work(cmp=4)
    assert work_of(make("aten._unique2", [(2, 4)], [(6,), (8,), (6,)])) == ordering.largest(1, 8, 8) + Work(cmp=7)
    assert work_of(make("aten.cummax", [(4, 5)], [(4, 5), (4, 5)], dim=1)) == Work(cmp=4 * 4)
    assert work_of(make("aten.count_nonzero", [(4, 5)], [()])) == Work(cmp=20)
