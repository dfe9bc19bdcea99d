"""Calls that calflops and DeepSpeed's profiler count, by hand: O is calflops/pytorch_ops.py, P is DeepSpeed's profiler.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

CALFLOPS_RELEASES = ("0.2.7", "0.3.2")
DEEPSPEED_RELEASES = ("0.17.1", "0.19.6", "0.19.8")
BOTH = CALFLOPS_RELEASES + DEEPSPEED_RELEASES

F = "torch.nn.functional."
RNN = "torch.nn.modules.rnn."
X = (2, 6, 5, 4)
N = 240
AFFINE = [(6,), (6,)]
STEPS = {"num_layers": 1, "bias": True, "bidirectional": False, "input_size": 3, "hidden_size": 4}
ONE = {"bias": True, "input_size": 3, "hidden_size": 4}


def case(
    total: int, work: Work, name: str, inputs: Sequence[Shape], releases: Sequence[str] = BOTH, **attrs: Any
) -> Case:
    return Case(op(name, inputs, [], number="flops", **attrs), releases, total, work)


def shared() -> Iterator[Case]:
    """What both count alike."""
    yield case(2 * 8 * 3 * 5, Work(mac=8 * 3 * 5), F + "linear", [(4, 2, 3), (5, 3), (5,)])  # no bias
    geometry = {"stride": [1], "padding": [0], "dilation": [1], "groups": 1}
    for axes in (1, 2, 3):  # 7 - 3 + 1 = 5 outputs on each axis, 3 taps on each, 4 channels to 6
        settings = {key: value * axes if isinstance(value, list) else value for key, value in geometry.items()}
        x, w = (2, 4, *[7] * axes), (6, 4, *[3] * axes)
        macs = 2 * 5**axes * 3**axes * 4 * 6
        yield case(
            2 * macs + 2 * 5**axes * 6, Work(mac=macs, add=2 * 5**axes * 6), F + f"conv{axes}d", [x, w, (6,)], **settings,
        )  # fmt: skip
    # 2 groups, stride 2 and dilation 2: (7 + 2 - 2 * 2 - 1) // 2 + 1 = 3 outputs on each axis
    settings = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2, "bias": None}
    macs = 2 * 3 * 3 * (3 * 3) * 4 * (6 // 2)
    yield case(2 * macs, Work(mac=macs), F + "conv2d", [(2, 4, 7, 7), (6, 2, 3, 3)], **settings)
    # "same" with 4 taps pads 3 // 2 on both sides: 8 + 2 - 4 + 1 = 7 outputs, where 8 are computed
    settings = {"stride": 1, "padding": "same", "dilation": 1, "groups": 1, "bias": None}
    yield case(2 * 7 * 4, Work(mac=7 * 4), F + "conv1d", [(1, 1, 8), (1, 1, 4)], **settings)
    for name, work in (
        ("relu", Work(cmp=N)), ("relu6", Work(cmp=N)), ("leaky_relu", Work(mul=N)), ("elu", Work(special=N)),
        ("silu", Work(special=N)), ("gelu", Work(special=N)), ("softmax", Work(special=N)),
    ):  # fmt: skip
        yield case(N, work, F + name, [X])
    yield case(N, Work(mul=N), F + "prelu", [X, (6,)])
    for axes in (1, 2, 3):
        shape = (2, 3, *[4] * axes)
        elements = 6 * 4**axes
        for kind, work in (("avg", Work(add=elements)), ("max", Work(cmp=elements))):
            yield case(elements, work, F + f"{kind}_pool{axes}d", [shape], kernel_size=2)
            yield case(elements, work, F + f"adaptive_{kind}_pool{axes}d", [shape], kernel_size=2)
    yield case(2 * N, Work(mul=N, add=N), F + "batch_norm", [X, *AFFINE, *AFFINE], training=False)
    yield case(N, Work(mul=N), F + "batch_norm", [X, *AFFINE], weight=None, bias=None, training=False)
    settings_of = {
        "layer_norm": {"normalized_shape": [4]},
        "group_norm": {"num_groups": 2},
        "instance_norm": {"running_mean": None, "running_var": None},
    }
    for name, settings in settings_of.items():
        yield case(5 * N, Work(mul=2 * N, add=3 * N), F + name, [X, *AFFINE], **settings)
        yield case(4 * N, Work(mul=2 * N, add=2 * N), F + name, [X], weight=None, bias=None, **settings)
    yield Case(op(F + "embedding", [(2, 3), (7, 5)], [], number="flops"), BOTH, missed=Cause.OP_NOT_COUNTED)
    for name in ("torch.matmul", "torch.Tensor.matmul"):
        yield case(2 * 24 * 5, Work(mac=24 * 5), name, [(2, 3, 4), (4, 5)])
        yield case(2 * 12 * 4, Work(mac=12 * 4), name, [(3, 4), (4,)])  # a vector: 4 times the 3 * 4 that run
    for name in ("torch.addmm", "torch.Tensor.addmm"):
        yield case(2 * 2 * 3 * 5 + 5, Work(mac=2 * 3 * 5, add=5), name, [(5,), (2, 3), (3, 5)])
    yield case(2 * 24 * 5 + 30, Work(mac=24 * 5, add=30), "torch.baddbmm", [(2, 3, 5), (2, 3, 4), (2, 4, 5)])
    # numpy prints 2 * 101 * 103 * 107 = 2,226,242 as 2.226e+06
    shapes = [(101, 103), (103, 107)]
    yield case(2_226_000, Work(mac=1_113_000), "torch.einsum", shapes, equation="ij,jk->ik", operands=[None, None])
    # per step and row: both products less one addition for each of the gates, twice; both biases; elementwise work
    for kind, gates, own, mul in (("RNN", 1, 1, 0), ("GRU", 3, 7, 3), ("LSTM", 4, 10, 5)):
        rows = gates * 4
        step = 2 * rows * 3 - rows + 2 * rows * 4 - rows + own * 4 + 2 * rows
        work = Work(mac=rows * 7, mul=mul * 4, add=(own - mul) * 4)
        yield case(2 * 5 * step, work * (2 * 5), RNN + kind, [(2, 5, 3)], **STEPS)
        yield case(2 * step, work * 2, RNN + kind + "Cell", [(2, 3)], **ONE)
        plain = work - Work(add=2 * rows)
        yield case(10 * (step - 2 * rows), plain * 10, RNN + kind, [(2, 5, 3)], **{**STEPS, "bias": False})
    # MrYxJ/calculate-flops.pytorch#55 prints this as 63.2 MFLOPS
    settings = {**STEPS, "input_size": 128, "hidden_size": 128}
    work = Work(mac=384 * 256, mul=3 * 128, add=4 * 128) * 320
    yield case(320 * (2 * 384 * 256 + 7 * 128), work, RNN + "GRU", [(10, 32, 128)], **settings)
    # two layers, both directions: the second layer reads both directions of the first
    rows = 12
    first, second = (2 * rows * width + 2 * rows * 4 + 7 * 4 for width in (3, 2 * 4))
    work = Work(mac=rows * (3 + 4 + 8 + 4), mul=2 * 12, add=2 * 16) * 20
    settings = {**STEPS, "num_layers": 2, "bidirectional": True}
    yield case(2 * 10 * (first + second), work, RNN + "GRU", [(2, 5, 3)], **settings)
    # MACs
    yield Case(op(RNN + "GRU", [(2, 5, 3)], [], number="macs", **STEPS), BOTH, missed=Cause.OP_NOT_COUNTED)
    yield Case(op(F + "relu", [X], [], number="macs"), BOTH, missed=Cause.OP_NOT_COUNTED)


def uncorrected() -> Iterator[Case]:
    """calflops, and DeepSpeed before 0.19.7."""
    for axes in (1, 2, 3):
        settings: dict[str, Any] = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0, "groups": 1}
        x, w = (2, 4, *[7] * axes), (4, 6, *[3] * axes)
        macs, bias = 2 * 7**axes * 3**axes * 4 * 6, 2 * 5**axes * 6  # bias at a convolution's 7 - 3 + 1 = 5 positions
        yield case(2 * macs + bias, Work(mac=macs, add=bias), F + f"conv_transpose{axes}d", [x, w, (6,)], **settings)
    # 2 groups: the weight's 3 channels of each group // 2 = 1
    settings = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0, "groups": 2, "bias": None}
    macs = 2 * 49 * 9 * 4 * 1
    yield case(2 * macs, Work(mac=macs), F + "conv_transpose2d", [(2, 4, 7, 7), (4, 3, 3, 3)], **settings)
    for name, kind in (("mul", "mul"), ("add", "add")):
        for space in ("torch.", "torch.Tensor."):
            # (2, 3, 4) and (4,) as (2, 3, 4) and (4, 1, 1)
            yield case(4 * 3 * 4, Work(**{kind: 48}), space + name, [(2, 3, 4), (4,)])
            yield case(24, Work(**{kind: 24}), space + name, [(2, 3, 4)], other=2)


def as_large_as_input() -> Iterator[Case]:
    """calflops."""
    for name in ("interpolate", "upsample"):
        yield case(N, Work(mul=N), F + name, [X], args=[None, None, 2.0])
        yield case(70, Work(mul=70), F + name, [X], args=[None, [10, 7], None])  # of one channel
        yield case(N, Work(mul=N), F + name, [X], args=[None], scale_factor=2)


def products() -> Iterator[Case]:
    """DeepSpeed, and calflops before 0.2.8: O:509 of 0.2.7."""
    for name, left, right in (("mm", (2, 3), (3, 5)), ("bmm", (2, 3, 4), (2, 4, 5))):
        macs = {"mm": 2 * 3 * 5, "bmm": 2 * 3 * 4 * 5}[name]
        for space in ("torch.", "torch.Tensor."):
            yield case(2 * macs, Work(mac=macs), space + name, [left, right])


def corrected() -> Iterator[Case]:
    """DeepSpeed from 0.19.7 on."""
    for axes in (1, 2, 3):
        settings: dict[str, Any] = {"stride": 2, "padding": 1, "dilation": 1, "output_padding": 1, "groups": 2}
        x, w = (2, 4, *[7] * axes), (4, 3, *[3] * axes)
        outputs = 6 * 2 - 2 + 2 + 1 + 1
        macs, bias = 2 * 7**axes * 3**axes * 4 * 3, 2 * outputs**axes * 6
        yield case(2 * macs + bias, Work(mac=macs, add=bias), F + f"conv_transpose{axes}d", [x, w, (6,)], **settings)
    for name, kind in (("mul", "mul"), ("add", "add")):
        for space in ("torch.", "torch.Tensor."):
            yield case(24, Work(**{kind: 24}), space + name, [(2, 3, 4), (4,)])
            yield case(12, Work(**{kind: 12}), space + name, [(3, 1), (4,)])
            yield case(24, Work(**{kind: 24}), space + name, [(2, 3, 4)], other=2)


def scaled_up() -> Iterator[Case]:
    """DeepSpeed from 0.17.2 on."""
    for name in ("interpolate", "upsample"):
        # 1.7 ** 2 is 2.8899999999999997, of which the cut leaves 288; 100 * 1.7 * 1.7 would be 289
        yield case(288, Work(mul=288), F + name, [(1, 1, 10, 10)], args=[None, None, 1.7])
        yield case(4 * N, Work(mul=4 * N), F + name, [X], args=[None, None, 2.0])
        yield case(6 * N, Work(mul=6 * N), F + name, [X], args=[None, None, [2, 3]])
        yield case(70, Work(mul=70), F + name, [X], args=[None, [10, 7], None])


def scaled_by_batch() -> Iterator[Case]:
    """DeepSpeed before: the length of a tensor is its batch, here 2."""
    for name in ("interpolate", "upsample"):
        yield case(3 * 3 * N, Work(mul=9 * N), F + name, [X], args=[None, None, 3.0])
        yield case(6 * N, Work(mul=6 * N), F + name, [X], args=[None, None, [2, 3]])
        yield case(70, Work(mul=70), F + name, [X], args=[None, [10, 7], None])


def deepspeed() -> Iterator[Case]:
    """What calflops does not patch."""
    yield from products()
    yield case(2 * 6 * 5, Work(mac=6 * 5), "torch.Tensor.__matmul__", [(2, 3), (3, 5)])
    # q (2, 3, 4), k (2, 5, 4), v (2, 5, 7)
    macs = 24 * 5 + 6 * 5 * 7
    name = F + "scaled_dot_product_attention"
    yield case(2 * macs, Work(mac=macs), name, [(2, 3, 4), (2, 5, 4), (2, 5, 7)])
    shapes = [(101, 103), (103, 107)]
    yield case(
        2_226_000, Work(mac=1_113_000), "einops.einsum", shapes, args=[None, None, "ij,jk->ik"], equation="ij,jk->ik"
    )


def _of(release: str, *parts: Iterator[Case]) -> tuple[Case, ...]:
    return tuple(case._replace(releases=(release,)) for part in parts for case in part)


CALFLOPS_BEFORE = _of(CALFLOPS_RELEASES[0], shared(), uncorrected(), as_large_as_input(), products())
CALFLOPS = _of(CALFLOPS_RELEASES[1], shared(), uncorrected(), as_large_as_input())
NO_LONGER = tuple(Case(before.op, CALFLOPS_RELEASES[1:]) for before in products())
DEEPSPEED_BEFORE = (
    *_of(DEEPSPEED_RELEASES[0], shared(), uncorrected(), scaled_by_batch(), deepspeed()),
    *_of(DEEPSPEED_RELEASES[1], shared(), uncorrected(), scaled_up(), deepspeed()),
)
DEEPSPEED = _of(DEEPSPEED_RELEASES[2], shared(), corrected(), scaled_up(), deepspeed())

FAMILIES = {
    "calflops": (CALFLOPS_RELEASES, CALFLOPS_BEFORE + CALFLOPS + NO_LONGER),
    "deepspeed": (DEEPSPEED_RELEASES, DEEPSPEED_BEFORE + DEEPSPEED),
}
