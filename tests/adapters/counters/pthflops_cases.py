"""pthflops' formulas by hand: P is pthflops/ops_fx.py of 0.4.2."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.work import Work
from tests.adapters.counters.cases import Case, case_of, op

RELEASES = ("0.4.2",)
X, N = (2, 6, 5, 4), 240
NN = "torch.nn.modules."
T = "tensor"
case = case_of(RELEASES)


def cases() -> Iterator[Case]:
    # 2 groups: each of 2 x (3 x 3) positions takes (3 x 2) x 6 channels x (8 / 2) filters, and 8 biases (P:26).
    macs, positions = 3 * 2 * 6 * 4, 2 * 3 * 3
    sizes = {"kernel_size": [3, 2], "in_channels": 6, "out_channels": 8, "groups": 2}
    for bias, added in ((None, 0), ([8], 8 * positions)):
        work = Work(mac=macs * positions, add=added)
        yield case(work, macs * positions + added, f"{NN}conv._ConvNd", [X], [(2, 8, 3, 3)], bias=bias, **sizes)
        # The bias once, whatever the rows (P:131).
        work, shapes = Work(mac=4 * 2 * 3 * 5, add=5 if bias else 0), ([(4, 2, 3)], [(4, 2, 5)])
        yield case(work, 4 * 2 * 3 * 5 + (5 if bias else 0), f"{NN}linear.Linear", *shapes, bias=bias)
    # It goes by isinstance.
    yield case(Work(mac=30, add=5), 35, f"{NN}mine.Linear", [(2, 3)], [(2, 5)], bases=[f"{NN}linear.Linear"], bias=[5])
    yield case(Work(mac=2 * 3 * 5), 2 * 3 * 5, "function.matmul", [(2, 3), (3, 5)], [(2, 5)], args=[T, T])
    # Of (2, 3) and a batch of 7 it counts one product (P:132).
    yield case(Work(mac=2 * 3 * 5), 2 * 3 * 5, "function.matmul", [(2, 3), (7, 3, 5)], [(7, 2, 5)], args=[T, T])
    yield case(Work(cmp=2 * N), 2 * N, f"{NN}activation.ReLU", [X], [X])
    yield case(Work(add=N, mul=N), 2 * N, f"{NN}batchnorm._BatchNorm", [X], [X])
    yield case(Work(add=2 * N), 2 * N, "function.add", [X, X], [X], args=[T, T])
    yield case(Work(mul=2 * N), 2 * N, "function.mul", [X], [X], args=[T, 2])
    yield case(Work(mul=N), N, "function.mul", [X, X], [X], args=[T], named={"other": T})
    out, elements = (2, 6, 2, 2), 48
    for kernel, window in (([3, 2], 6), (3, 9)):
        most, average = Work(cmp=(window - 1) * elements), Work(add=(window - 1) * elements, div=elements)
        yield case(most, (window - 1) * elements, f"{NN}pooling._MaxPoolNd", [X], [out], kernel_size=kernel)
        yield case(average, window * elements, f"{NN}pooling._AvgPoolNd", [X], [out], kernel_size=kernel)
    # All 5 x 4 elements of a channel for each result, also where there are 2 x 2 of them (P:85).
    average = Work(add=(5 * 4 - 1) * elements, div=elements)
    yield case(average, 5 * 4 * elements, f"{NN}pooling._AdaptiveAvgPoolNd", [X], [out])
    for name in (f"{NN}rnn.GRU", f"{NN}activation.GELU", "function.linear", "function.sub", "method.matmul"):
        yield Case(op(name, [X], [X]), RELEASES)  # in no list


CASES = tuple(cases())
FAMILIES = {"pthflops": (RELEASES, CASES)}
