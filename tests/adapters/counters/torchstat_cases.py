"""torchstat's formulas by hand: F is torchstat/compute_flops.py and M torchstat/compute_madd.py of 0.0.7.

Totals are in MAC, the unit of its Flops; of its MAdd, which is 2 for a multiply-add, ``madd`` takes one of both away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, case_of, product, zero_of

RELEASES = ("0.0.7",)
X, N, SAMPLE = (2, 6, 5, 4), 240, 120
NN = "torch.nn.modules."
case = case_of(RELEASES, NN, holds=False)
zero = zero_of(RELEASES, [X], NN, holds=False)


def madd(work: Work, total: int, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape], **attrs: Any) -> Case:
    return case(work, total - work.mac, name, inputs, outputs, number="madd", **attrs)


def products() -> Iterator[Case]:
    for bias in (None, [8]):
        # 2 groups: each of 2 x 8 x (3 x 3) outputs takes 3 channels x (3 x 2).
        out, terms, biased = (2, 8, 3, 3), 3 * 3 * 2, int(bias is not None)
        window = {"kernel_size": [3, 2], "groups": 2, "bias": bias}
        work = Work(mac=terms * prod(out), add=biased * prod(out))
        yield case(work, terms * prod(out) + biased * prod(out), "conv.Conv2d", [X], [out], **window)
        yield madd(*product(terms, prod(out[1:]), biased), "conv.Conv2d", [X], [out], **window)  # M:18
        # Transposed, at the 5 x 4 positions of the input (M:42).
        wide, kernel = (2, 8, 10, 8), {"kernel_size": [2, 2], "groups": 2, "bias": bias}
        yield madd(*product(3 * 4, 8 * 5 * 4, biased), "conv.ConvTranspose2d", [X], [wide], **kernel)
        # Rows of two sizes, whose biases count nothing (F:81, M:124).
        sizes = {"in_features": 3, "out_features": 5, "bias": bias}
        yield case(Work(mac=2 * 3 * 5), 2 * 3 * 5, "linear.Linear", [(2, 3)], [(2, 5)], **sizes)
        yield madd(*product(3, 5, 0), "linear.Linear", [(2, 3)], [(2, 5)], **sizes)
        yield madd(*product(3 * 4 + 4, 5, 0), "linear.Bilinear", [(2, 3), (2, 4)], [(2, 5)], bias=bias)
    # It goes by isinstance.
    base = [NN + "linear.Linear"]
    yield case(Work(mac=2 * 3 * 5), 2 * 3 * 5, "linear.Mine", [(2, 3)], [(2, 5)], bases=base)
    for name in ("conv.ConvTranspose2d", "linear.Bilinear", "activation.Softmax"):
        yield zero(name)
    yield zero("conv.Conv2d", holds=True)  # one with a parametrization


def elementwise() -> Iterator[Case]:
    name = "batchnorm.BatchNorm2d"
    for affine in (0, 1):
        yield case(Work(mul=N, add=affine * N), (1 + affine) * N, name, [X], [X], affine=bool(affine))
        work = Work(add=2, div=1, mul=1) * SAMPLE
        yield madd(work, 4 * SAMPLE, name, [X], [X], affine=bool(affine))
    for kind in ("ReLU", "ReLU6", "PReLU", "ELU", "LeakyReLU"):
        yield case(Work(cmp=N), N, f"activation.{kind}", [X], [X])
        if kind.startswith("ReLU"):
            yield madd(Work(cmp=SAMPLE), SAMPLE, f"activation.{kind}", [X], [X])
        else:
            yield zero(f"activation.{kind}", number="madd")
    work = Work(special=SAMPLE, add=SAMPLE - 1, div=SAMPLE)
    yield madd(work, 3 * SAMPLE - 1, "activation.Softmax", [X], [X])
    out = (2, 6, 2, 2)
    for kernel in ([3, 3], 3):  # one number is for both axes
        most, average = Work(cmp=8 * prod(out[1:])), Work(add=8 * prod(out[1:]), div=prod(out[1:]))
        yield case(Work(cmp=N), N, "pooling.MaxPool2d", [X], [out], kernel_size=kernel)
        yield case(Work(add=N), N, "pooling.AvgPool2d", [X], [out], kernel_size=kernel)
        yield madd(most, 8 * prod(out[1:]), "pooling.MaxPool2d", [X], [out], kernel_size=kernel)
        yield madd(average, 9 * prod(out[1:]), "pooling.AvgPool2d", [X], [out], kernel_size=kernel)
    positions = 2 * 10 * 8  # of the output; its 6 channels are left out (F:85)
    yield case(Work(mul=positions), positions, "upsampling.Upsample", [X], [(2, 6, 10, 8)])
    yield zero("upsampling.Upsample", number="madd")


CASES = (*products(), *elementwise())
FAMILIES = {"torchstat": (RELEASES, CASES)}
