"""paddle.flops's formulas by hand, from paddle/hapi/dynamic_flops.py of 3.3.1; those of 2.6.2 are the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Op, Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("2.6.2", "3.3.1")
X = (2, 6, 8, 7)
N = 2 * 6 * 8 * 7


def layer(name: str, inputs: Shape, outputs: Shape, weight: list[int] | None = None, **attrs: Any) -> Op:
    return op(f"paddle.nn.{name}", [inputs], [outputs], weight=weight, **attrs)


def products() -> Iterator[Case]:
    """Outputs of a convolution and of a transposed one, each from 6 channels by group; a bias is 1 for each."""
    for axes, window in ((1, [3]), (2, [3, 2]), (3, [3, 2, 4])):
        taps = (3, 6, 24)[axes - 1]
        for groups in (1, 2):
            for bias in (None, [4]):
                image, out, o = (2, 6, *[9] * axes), (2, 4, *[5] * axes), 2 * 4 * 5**axes
                work = Work(mac=o * taps * 6 // groups, add=o if bias else 0)
                total = work.mac + work.add
                held = {"bias": bias, "groups": groups}
                yield Case(layer(f"Conv{axes}D", image, out, [4, 6 // groups, *window], **held), RELEASES, total, work)
                yield Case(
                    layer(f"Conv{axes}DTranspose", image, out, [6, 4 // groups, *window], **held), RELEASES, total, work
                )
    # 2 x 3 rows of 5 elements, each a product of 4 terms; the bias counts nothing.
    rows = layer("Linear", (2, 3, 4), (2, 3, 5), [4, 5], bias=[5])
    yield Case(rows, RELEASES, 2 * 3 * 5 * 4, Work(mac=2 * 3 * 5 * 4))


def elementwise() -> Iterator[Case]:
    for name in ("BatchNorm", "BatchNorm2D"):
        yield Case(layer(name, X, X, [6], bias=[6]), RELEASES, 2 * N, Work(mul=N, add=N))
    yield Case(layer("LeakyReLU", X, X), RELEASES, N, Work(cmp=N))
    for name in ("ReLU", "ReLU6", "Dropout"):
        yield Case(layer(name, X, X), RELEASES, missed=Cause.OP_NOT_COUNTED)
    for name in ("Softmax", "LayerNorm", "GRU", "Embedding", "MaxPool2D"):
        yield Case(layer(name, X, X), RELEASES)


def pools() -> Iterator[Case]:
    """An average is 1 whatever its window; an adaptive one has windows of 8 // 3 by axis, although they overlap."""
    for axes in (1, 2, 3):
        image, out, o = (2, 6, *[8] * axes), (2, 6, *[3] * axes), 2 * 6 * 3**axes
        yield Case(layer(f"AvgPool{axes}D", image, out), RELEASES, o, Work(div=o))
        adaptive = layer(f"AdaptiveAvgPool{axes}D", image, out)
        yield Case(adaptive, RELEASES, o * (2**axes + 1), Work(add=o * 2**axes, div=o))


CASES = [*products(), *elementwise(), *pools()]
FAMILIES = {"paddle": (RELEASES, CASES)}
