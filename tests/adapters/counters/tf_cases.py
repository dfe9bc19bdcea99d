"""tf.profiler's registered statistics by hand: R is profiler/internal/flops_registry.py, NN is ops/nn_ops.py, as in rules.py.

The profiler counts FLOPs, two for a multiply-add. Releases that differ: Conv3D came in 1.14.0, BatchMatMul in 1.15.0,
BatchMatMulV2 in 2.1.0, BatchMatMulV3 in 2.6.0 and AddV2 in 2.13.0; the releases below are the ends of these ranges.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.core.causes import Cause
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = (
    "1.12.0", "1.13.1", "1.14.0", "1.15.0", "2.0.0", "2.1.0", "2.5.3", "2.6.0", "2.12.1", "2.13.0", "2.15.1", "2.21.0",
)  # fmt: skip


def since_release(first: str) -> tuple[str, ...]:
    """This release and all later ones."""
    return RELEASES[RELEASES.index(first) :]


X = (2, 3, 4)
N = 24
WIDE, TALL = (2, 1, 4), (3, 1)
"""Two inputs that broadcast to X: neither has as many elements."""


def since(case: Case) -> Iterator[Case]:
    """The case, and no rule in the releases before its own."""
    yield case
    yield Case(case.op, tuple(r for r in RELEASES if r not in case.releases))


def of_one() -> Iterator[Case]:
    for name, total, work in (
        ("Reciprocal", N, Work(div=N)),
        ("Square", N, Work(mul=N)),
        ("Rsqrt", 2 * N, Work(special=N, div=N)),
        ("Log", N, Work(special=N)),
        ("Neg", N, Work(add=N)),
        ("Softmax", 5 * N, Work(cmp=N, add=2 * N, special=N, div=N)),
    ):
        yield Case(op(name, [X], [X]), RELEASES, total, work)
    for name in ("AssignAdd", "AssignSub"):
        yield Case(op(name, [X, X], [X]), RELEASES, N, Work(add=N))
    yield Case(op("L2Loss", [X], [()]), RELEASES, 3 * N - 1, Work(mul=N, add=N - 1, div=N))
    yield Case(op("BiasAdd", [X, (4,)], [X]), RELEASES, N, Work(add=N))
    yield Case(op("AddN", [X, X, X], [X]), RELEASES, 2 * N, Work(add=2 * N))
    # R:439 counts the node's inputs, and those that only order it are among them.
    yield Case(op("AddN", [X, X, X], [X], control_inputs=1), RELEASES, 3 * N, Work(add=3 * N))


def of_two() -> Iterator[Case]:
    """By the output, whatever is broadcast."""
    for name, total, work in (
        ("Add", N, Work(add=N)),
        ("Sub", N, Work(add=N)),
        ("Mul", N, Work(mul=N)),
        ("RealDiv", N, Work(div=N)),
        ("Pow", N, Work(special=N)),
        ("RsqrtGrad", 4 * N, Work(mul=4 * N)),
        ("SquaredDifference", 2 * N, Work(add=N, mul=N)),
    ):
        yield Case(op(name, [WIDE, TALL], [X]), RELEASES, total, work)
    yield from since(Case(op("AddV2", [WIDE, TALL], [X]), since_release("2.13.0"), N, Work(add=N)))
    for name in ("Maximum", "Minimum", "GreaterEqual", "Greater", "LessEqual", "Less", "Equal", "NotEqual"):
        yield Case(op(name, [WIDE, TALL], [X]), RELEASES, N, Work(cmp=N))


def reductions() -> Iterator[Case]:
    """24 elements to 8: 16 additions, and for a mean a division each (R:240)."""
    yield Case(op("Mean", [X, (1,)], [(2, 4)]), RELEASES, 24 + 8 * (1 - 1), Work(add=16, div=8))
    yield Case(op("Sum", [X, (1,)], [(2, 4)]), RELEASES, 24 - 8, Work(add=16))
    yield Case(op("BiasAddGrad", [X], [(4,)]), RELEASES, 24 - 4, Work(add=20))
    for name in ("ArgMax", "ArgMin"):
        yield Case(op(name, [X, ()], [(2, 4)]), RELEASES, 24 - 8, Work(cmp=16))


def pools() -> Iterator[Case]:
    """Windows of 3 x 2, 120 of them; in NHWC only (R:293)."""
    image, pooled = (2, 9, 10, 3), (2, 4, 5, 3)
    for name, inputs, output, total, work in (
        ("AvgPool", [image], pooled, 6 * 120, Work(add=5 * 120, div=120)),
        ("MaxPool", [image], pooled, 6 * 120, Work(cmp=6 * 120)),
        ("AvgPoolGrad", [(4,), pooled], image, 2 * 6 * 120, Work(mul=6 * 120, add=6 * 120)),
        ("MaxPoolGrad", [image, pooled, pooled], image, (6 + 1) * 120, Work(cmp=6 * 120, add=120)),
    ):
        yield Case(op(name, inputs, [output], ksize=[1, 3, 2, 1]), RELEASES, total, work)
        other = op(name, inputs, [output], ksize=[1, 1, 3, 2], data_format="NCHW")
        yield Case(other, RELEASES, missed=Cause.OP_NOT_COUNTED)


def products() -> Iterator[Case]:
    """(2, 3) x (3, 5), also as four of them; the batched one takes k from the first operand's last axis as it is stored."""
    total = 2 * 3 * 2 * 5
    yield Case(op("MatMul", [(2, 3), (3, 5)], [(2, 5)]), RELEASES, total, Work(mac=total // 2))
    turned = op("MatMul", [(3, 2), (3, 5)], [(2, 5)], transpose_a=True)
    yield Case(turned, RELEASES, total, Work(mac=total // 2))
    for name, first in (("BatchMatMul", "1.15.0"), ("BatchMatMulV2", "2.1.0"), ("BatchMatMulV3", "2.6.0")):
        releases = since_release(first)
        several = op(name, [(4, 2, 3), (4, 3, 5)], [(4, 2, 5)])
        yield from since(Case(several, releases, 4 * total, Work(mac=2 * total)))
        adjoint = op(name, [(4, 3, 2), (4, 3, 5)], [(4, 2, 5)], adj_x=True)
        yield Case(adjoint, releases, 2 * 2 * 4 * 2 * 5, Work(mac=2 * 4 * 2 * 5))  # 2 for 3


def convolutions() -> Iterator[Case]:
    """2 x (4, 6) positions: 3 x 2 taps of 4 channels to 5, and so on."""
    image, kernel, out = (2, 9, 7, 4), (3, 2, 4, 5), (2, 4, 6, 5)
    macs = 240 * 3 * 2 * 4
    yield Case(op("Conv2D", [image, kernel], [out]), RELEASES, 2 * macs, Work(mac=macs))
    macs = (1 * 4 * 3 * 4 * 4) * (2 * 3 * 2) * 2
    volume = op("Conv3D", [(1, 5, 5, 5, 2), (2, 3, 2, 2, 4)], [(1, 4, 3, 4, 4)])
    yield from since(Case(volume, since_release("1.14.0"), 2 * macs, Work(mac=macs)))
    macs = (2 * 4 * 6 * 8) * (3 * 2)
    depthwise = op("DepthwiseConv2dNative", [image, (3, 2, 4, 2)], [(2, 4, 6, 8)])
    yield Case(depthwise, RELEASES, 2 * macs, Work(mac=macs))
    macs = (2 * 4 * 6 * 4) * (3 * 2)
    yield Case(op("Dilation2D", [image, (3, 2, 4)], [(2, 4, 6, 4)]), RELEASES, 2 * macs, Work(mac=macs))
    # Gradients go by the image and its strides: 2 * 504 * 120 / (4 * 2 * 1).
    macs = (2 * 9 * 7 * 4) * (3 * 2 * 4 * 5) // (4 * 2 * 1)
    strides = [1, 2, 1, 1]
    of_input = op("Conv2DBackpropInput", [(4,), kernel, out], [image], strides=strides)
    of_kernel = op("Conv2DBackpropFilter", [image, (4,), out], [kernel], strides=strides)
    yield Case(of_input, RELEASES, 2 * macs, Work(mac=macs))
    yield Case(of_kernel, RELEASES, 2 * macs, Work(mac=macs))
    # 2 * 25 * 3 / 4 is 37.5, of which 37 are kept: 18 multiply-adds and one operation.
    small, wide, strides = (1, 5, 5, 1), (1, 1, 1, 3), [1, 2, 2, 1]
    for case in (
        op("Conv2DBackpropInput", [(4,), wide, (1, 3, 3, 3)], [small], strides=strides),
        op("Conv2DBackpropFilter", [small, (4,), (1, 3, 3, 3)], [wide], strides=strides),
    ):
        yield Case(case, RELEASES, 37, Work(mac=18, add=1))
        yield Case(
            case._replace(attrs={**case.attrs, "data_format": "NCHW"}), RELEASES, missed=Cause.OP_NOT_COUNTED
        )  # fmt: skip


CASES = (*of_one(), *of_two(), *reductions(), *pools(), *products(), *convolutions())

PICTURE = (2, 5, 5, 3)
"""150 elements."""
KERAS_FLOPS_RELEASES = ("0.1.2",)
KERAS_FLOPS = (
    # 2 per element, and per channel 5 for the variance and 1 for the mean: 6 channels' worth in all.
    Case(
        op("FusedBatchNormV3", [PICTURE, *[(3,)] * 4], [PICTURE], is_training=False),
        KERAS_FLOPS_RELEASES,
        2 * 150 + 6 * 3,
        Work(mul=150 + 2 * 3, add=150 + 3 + 3, special=3, div=3),
    ),
    Case(
        op("FusedBatchNormV3", [PICTURE, *[(3,)] * 4], [PICTURE], is_training=True),
        KERAS_FLOPS_RELEASES,
        missed=Cause.OP_NOT_COUNTED,
    ),
    Case(op("Max", [PICTURE, (2,)], [(2, 3)]), KERAS_FLOPS_RELEASES, 150 - 6, Work(cmp=150 - 6)),
    Case(op("Max", [(2, None, 3), (1,)], [(2, 3)]), KERAS_FLOPS_RELEASES, missed=Cause.SHAPE_UNKNOWN),
    Case(op("AddV2", [PICTURE, (3,)], [PICTURE]), KERAS_FLOPS_RELEASES, 150, Work(add=150)),
)
"""keras-flops' own formulas, from keras_flops/flops_registory.py; its others are tf.profiler's."""

FAMILIES = {
    "tf.profiler": (RELEASES, CASES),
    "keras_flops": (KERAS_FLOPS_RELEASES, KERAS_FLOPS),
    "wandb": (("0.12.21", "0.27.0"), ()),  # it has no formulas of its own
}
