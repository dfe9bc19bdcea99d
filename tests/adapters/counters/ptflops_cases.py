"""ptflops by hand, from ptflops/pytorch_ops.py (O) and ptflops/aten_ops.py (A) of 0.7.5: a case per class, function and op."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("0.7.3", "0.7.4", "0.7.5")
NN, F = "torch.nn.modules.", "torch.nn.functional."
X = (2, 6, 5)
N = 2 * 6 * 5


def case(
    name: str, inputs: list[Shape], out: Shape, work: Work, releases: Sequence[str] = RELEASES, **attrs: object
) -> Case:
    return Case(op(name, inputs, [out], **attrs), releases, sum(work) - work.accumulators, work)


def layers() -> Iterator[Case]:
    for rank in (1, 2, 3):
        image, kernel, out = (9, 8, 7)[:rank], (3, 2, 2)[:rank], (7, 7, 6)[:rank]
        # 6 channels to 8 in 2 groups: 6 times 8 // 2 weights at each tap; O:60 counts a bias at each output.
        settings = {"in_channels": 6, "out_channels": 8, "groups": 2, "kernel_size": [*kernel]}
        taps = 6 * 4 * prod(kernel)
        x, y, large = (2, 6, *image), (2, 8, *out), (2, 8, *(n + k - 1 for n, k in zip(image, kernel, strict=True)))
        forward, back = 2 * taps * prod(out), 2 * taps * prod(image)
        bias = {"bias": [8]}
        yield case(f"{NN}conv.Conv{rank}d", [x], y, Work(mac=forward), **settings, bias=None)
        yield case(f"{NN}conv.Conv{rank}d", [x], y, Work(mac=forward, add=prod(y)), **settings, **bias)
        wide = Work(mac=back, add=prod(large))
        yield case(f"{NN}conv.ConvTranspose{rank}d", [x], large, wide, RELEASES[2:], **settings, **bias)
        by_output = Work(mac=2 * taps * prod(large[2:]), add=prod(large))  # O:58 of 0.7.4, as any convolution
        yield case(f"{NN}conv.ConvTranspose{rank}d", [x], large, by_output, RELEASES[:2], **settings, **bias)
        norms = ("batchnorm.BatchNorm", "instancenorm.InstanceNorm")
        for affine in (True, False):
            of_affine = Work(mul=prod(x), add=prod(x) if affine else 0)
            yield from (case(f"{NN}{norm}{rank}d", [x], x, of_affine, affine=affine) for norm in norms)
        for adaptive in ("", "Adaptive"):
            of_max, of_mean = Work(cmp=prod(x)), Work(add=prod(x))  # the inputs, whatever the window: O:46
            yield case(f"{NN}pooling.{adaptive}MaxPool{rank}d", [x], y, of_max)
            yield case(f"{NN}pooling.{adaptive}AvgPool{rank}d", [x], y, of_mean)
            prefix = "adaptive_" if adaptive else ""
            yield case(f"{F}{prefix}max_pool{rank}d", [x], y, of_max)
            yield case(f"{F}{prefix}avg_pool{rank}d", [x], y, of_mean)
    # One sample without a batch: its 6 channels are the batch, and (8, 7)[2:] are no positions.
    lone = {"in_channels": 6, "out_channels": 8, "groups": 1, "kernel_size": [3], "bias": None}
    yield case(f"{NN}conv.Conv1d", [(6, 9)], (8, 7), Work(mac=6 * 6 * 8 * 3), **lone)
    biased = {**lone, "bias": [8]}  # 6 times 7 outputs, and before the 8 of each channel once
    yield case(f"{NN}conv.Conv1d", [(6, 9)], (8, 7), Work(mac=6 * 6 * 8 * 3, add=6 * 7), RELEASES[2:], **biased)
    yield case(f"{NN}conv.Conv1d", [(6, 9)], (8, 7), Work(mac=6 * 6 * 8 * 3, add=6 * 8), RELEASES[:2], **biased)
    # 2 x 2 taps of 6 channels to 8 at 4 x 5 places of 2 pictures; O:97 adds 20 + 4 at each tap, of one channel, 1 for a mask.
    given = {"in_channels": 6, "out_channels": 8, "groups": 2, "kernel_size": [2, 2]}
    picture, offset, mask, out = (2, 6, 5, 6), (2, 8, 4, 5), (2, 4, 4, 5), (2, 8, 4, 5)
    products, samples = 2 * 20 * 4 * 6 * 4, 2 * 20 * 4
    name = "torchvision.ops.deform_conv.DeformConv2d"
    yield case(name, [picture, offset], out, Work(mac=products, mul=24 * samples), **given, bias=None)
    masked = Work(mac=products, mul=25 * samples, add=prod(out))
    yield case(name, [picture, offset, mask], out, masked, **given, bias=[8])
    yield case(f"{NN}linear.Linear", [X], (2, 6, 4), Work(mac=12 * 5 * 4, add=12 * 4), bias=[4])
    yield case(f"{NN}linear.Linear", [(5,)], (4,), Work(mac=5 * 4), bias=None)
    yield case(f"{NN}normalization.GroupNorm", [X], X, Work(mul=N, add=N), affine=True)
    yield case(f"{NN}normalization.LayerNorm", [X], X, Work(mul=N), elementwise_affine=True)  # no attribute `affine`
    for names, work in (
        (("ReLU", "ReLU6"), Work(cmp=N)),
        (("PReLU", "LeakyReLU"), Work(mul=N)),
        (("ELU", "GELU"), Work(special=N)),
    ):
        yield from (case(f"{NN}activation.{name}", [X], X, work) for name in names)
    yield case(f"{NN}upsampling.Upsample", [(2, 6, 5)], (2, 6, 10), Work(mul=6 * 10))  # of output[0] alone: O:22
    yield from recurrent()


def recurrent() -> Iterator[Case]:
    """4 inputs to a state of 3: gates, what O:105 adds per unit, and its hadamard products."""
    for kind, gates, adds, products in (("RNN", 1, 1, 0), ("GRU", 3, 4, 3), ("LSTM", 4, 5, 5)):
        cell = {"input_size": 4, "hidden_size": 3, "bias": True}
        step = Work(mac=gates * 3 * (4 + 3), add=adds * 3 + 2 * gates * 3, mul=products * 3)
        yield case(f"{NN}rnn.{kind}Cell", [(2, 4)], (2, 3), step * 2, **cell)
        one = {**cell, "num_layers": 1, "bidirectional": False, "batch_first": False, "proj_size": 0}
        yield case(f"{NN}rnn.{kind}", [(5, 2, 4)], (5, 2, 3), step * 10, **one)
        # A lone sequence of 5 steps: shape[0] * shape[1] are 5 steps of 4 inputs.
        yield case(f"{NN}rnn.{kind}", [(5, 4)], (5, 3), step * 20, **one)
        # Two layers both ways, no biases: the second takes 2 * 3 inputs.
        two = {**one, "num_layers": 2, "bidirectional": True, "bias": False}
        each = Work(mac=gates * 3 * (4 + 3 + 6 + 3), add=2 * adds * 3, mul=2 * products * 3)
        yield case(f"{NN}rnn.{kind}", [(2, 5, 4)], (2, 5, 6), each * (2 * 10), **two)
    # Projected to 2: weight_hr (2 x 3) is left out.
    projected = {**one, "proj_size": 2, "bias": False}
    yield case(f"{NN}rnn.LSTM", [(2, 5, 4)], (2, 5, 2), Work(mac=12 * (4 + 2), add=15, mul=15) * 10, **projected)


def attention() -> Iterator[Case]:
    """2 sequences of 5 queries and 7 keys, 8 wide, in 2 heads."""
    q, k = (2, 5, 8), (2, 7, 8)
    macs = (5 + 7 + 7 + 5) * 64 + 2 * (5 * 7) * (4 + 4)
    for biased in (True, False):
        work = Work(mac=macs, add=(19 * 8 if biased else 0) + 5 * 8, mul=5 * 8, special=2 * 5 * 7) * 2
        settings = {"embed_dim": 8, "num_heads": 2, "in_proj_bias": biased, "kdim": 8, "vdim": 8}
        yield case(f"{NN}activation.MultiheadAttention", [q, k, k], q, work, **settings, batch_first=True)
        q2, k2 = (5, 2, 8), (7, 2, 8)
        yield case(f"{NN}activation.MultiheadAttention", [q2, k2, k2], q2, work, **settings, batch_first=False)


def functions() -> Iterator[Case]:
    for names, work in (
        (("relu", "relu6"), Work(cmp=N)),
        (("prelu",), Work(mul=N)),
        (("elu", "gelu", "silu", "softmax"), Work(special=N)),
    ):
        yield from (case(F + name, [X], X, work) for name in names)
    for name in ("interpolate", "upsample"):
        x, now, before = (2, 3, 4, 5), RELEASES[1:], RELEASES[:1]
        yield case(F + name, [x], (2, 3, 8, 10), Work(mul=6 * 80), now, size=[8, 10], scale_factor=None)
        yield case(F + name, [x], (2, 3, 8, 8), Work(mul=6 * 64), now, size=8, scale_factor=None)
        yield case(F + name, [x], (2, 3, 12, 15), Work(mul=120 * 9), now, size=None, scale_factor=3)
        yield case(F + name, [x], (2, 3, 8, 15), Work(mul=120 * 6), size=None, scale_factor=[2, 3])
        # O:345 of 0.7.3: a size of one example and channel, one number for one axis; the scale as often as the 4 examples
        four = (4, 3, 4, 5)
        yield case(F + name, [four], (4, 3, 8, 10), Work(mul=80), before, size=[8, 10], scale_factor=None)
        yield case(F + name, [four], (4, 3, 8, 8), Work(mul=8), before, size=8, scale_factor=None)
        yield case(F + name, [four], (4, 3, 12, 15), Work(mul=240 * 81), before, size=None, scale_factor=3)
    for space in ("torch.", "torch.Tensor."):
        yield case(f"{space}mm", [(2, 3), (3, 5)], (2, 5), Work(mac=2 * 3 * 5))
        yield case(f"{space}bmm", [(4, 2, 3), (4, 3, 5)], (4, 2, 5), Work(mac=4 * 2 * 3 * 5))
        yield case(f"{space}matmul", [(2, 3), (3, 5)], (2, 5), Work(mac=2 * 3 * 5))
        # O:386: a vector's last size is the sum's, not one; and the batch of the second alone is left out.
        yield case(f"{space}matmul", [(2, 3), (3,)], (2,), Work(mac=2 * 3 * 3))
        yield case(f"{space}matmul", [(2, 3), (4, 3, 5)], (4, 2, 5), Work(mac=2 * 3 * 5))
        for beta in (1, 0):
            added = Work(mac=2 * 3 * 5, add=5 * beta)
            yield case(f"{space}addmm", [(5,), (2, 3), (3, 5)], (2, 5), added, beta=beta)
        for name, component in (("add", "add"), ("mul", "mul")):
            yield case(space + name, [(2, 3), (2, 3)], (2, 3), Work(**{component: 6}))
            yield case(space + name, [(2, 3)], (2, 3), Work(**{component: 6}), other=2)
            # O:407 counts axes from the first: (3,) beside (2, 3) makes 3 x 3.
            yield case(space + name, [(2, 3), (3,)], (2, 3), Work(**{component: 9}))
    yield case("torch.baddbmm", [(4, 2, 5), (4, 2, 3), (4, 3, 5)], (4, 2, 5), Work(mac=120, add=40), beta=1)


def average() -> Iterator[Case]:
    """The division of what the hooks counted; the result is cut off."""
    for modules, functions, products, batch, total in (
        (100, 7, 5, 4, 25 + 12),
        (100, 7, 5, 3, 33 + 12),
        (9, 0, 0, 1, 9),
    ):
        sums = {"modules": modules, "functions": functions, "products": products, "batch": batch}
        amount = total - modules - functions - products
        yield case("ptflops.average", [], (), Work(mac=amount), **sums)


def aten() -> Iterator[Case]:
    yield case("aten.mm", [(2, 3), (3, 5)], (2, 5), Work(mac=30))
    yield case("aten.bmm", [(4, 2, 3), (4, 3, 5)], (4, 2, 5), Work(mac=120))
    yield case("aten.addmm", [(5,), (2, 3), (3, 5)], (2, 5), Work(mac=30, add=10))
    x = (2, 6, 5, 4)
    # 2 groups: 8 x 3 x 3 x 2 weights at each of 3 x 3 positions of the output; transposed, at each of the input.
    macs, back = 2 * (8 * 3 * 3 * 2) * 9, 2 * (6 * 4 * 3 * 2) * 20
    out, large = (2, 8, 3, 3), (2, 4, 7, 5)
    yield case("aten.convolution", [x, (8, 3, 3, 2)], out, Work(mac=macs), transposed=False, bias=None)
    with_bias = Work(mac=macs, add=prod(out))
    yield case("aten.convolution", [x, (8, 3, 3, 2), (8,)], out, with_bias, transposed=False)
    yield case("aten.convolution", [x, (6, 4, 3, 2)], large, Work(mac=back), transposed=True, bias=None)


CASES = (*layers(), *attention(), *functions(), *average(), *aten())

FAMILIES = {"ptflops": (RELEASES, CASES)}
