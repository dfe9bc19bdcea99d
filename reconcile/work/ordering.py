"""The comparisons of top-k, sorting and searching: one definition for every backend, a knockout tournament.

The number of comparisons in a kernel depends on its algorithm and on the data: ATen uses std::partial_sort if 64 k <= n,
else nth_element and sort (native/TopKImpl.h), TensorFlow a heap of k (core/kernels/topk_op.cc, gtl::TopN).  The shapes do not
determine it.  A tournament takes the same number for any data, and for k <= 2 no method takes fewer.

Source: tree selection, Knuth, The Art of Computer Programming, volume 3, section 5.3.3, with the numbers given there and their
origins (Schreier, Kislitsyn).  A test runs such a tournament.
"""

from __future__ import annotations

from ..core.work import Work


def largest(rows: int, n: int, k: int) -> Work:
    """The k largest of n, in order, in each row: cmp R (n - k + the sum of ceil(lg j) over n - k + 1 < j <= n).

    The first takes n - 1 matches; with m left and the winner gone, the next is found by playing its ceil(lg m) - 1
    matches again, the first of them without an opponent.  k = 1 is a maximum; k = n is a sort.
    """
    if not 0 < k <= n:
        return Work()
    return Work(cmp=rows * (n - k + _logarithms(n) - _logarithms(n - k + 1)))


def kth(rows: int, n: int, k: int) -> Work:
    """The k-th of n in each row: the last of the k largest, or of the k smallest, in order, whichever are fewer."""
    return largest(rows, n, min(k, n + 1 - k))


def search_sorted(values: int, n: int) -> Work:
    """The place of each value among n in order: cmp ceil(lg (n + 1)), the longest way of a binary search.

    Source: Knuth, The Art of Computer Programming, volume 3, section 6.2.1.
    """
    return Work(cmp=values * n.bit_length())


def distinct(n: int) -> Work:
    """The distinct ones of n: a sort, and each compared with the one before it."""
    return largest(1, n, n) + Work(cmp=max(n - 1, 0))


def _logarithms(n: int) -> int:
    """The sum of ceil(lg j) over 1 <= j <= n."""
    bits = (n - 1).bit_length()
    return n * bits - (1 << bits) + 1
