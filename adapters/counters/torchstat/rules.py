"""Rules of torchstat: Flops have products at K, MAdd at 2K - 1 and of one sample; both elementwise work. Units MAC and FLOP.

F = torchstat/compute_flops.py, M = torchstat/compute_madd.py, lines of 0.0.7.  It goes by ``isinstance``, and looks at leaf
modules.  ``N``: elements of the input, ``O``: of the output, ``n`` and ``o``: of one sample of them, which the first dimension
counts.  ``K``: terms of a dot product.
"""

from __future__ import annotations

from functools import partial

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..module_bridge import Hooks, bridge_modules
from ..rule_parts import classes, dots, elements_in, elements_out, per_input, shape_in, shape_out
from ..rulebook import Compute, NotCounted, RuleBook
from . import COUNTERS, HOLDS, MADD, NUMBER

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {"F": "torchstat/compute_flops.py", "M": "torchstat/compute_madd.py"},
    inherited=True,
)


def formulas(ops: tuple[str, ...], flops: Compute | None, madd: Compute | None, source: str, formula: str) -> None:
    """The rule of both numbers; for that without one it prints that the module is not supported, and counts 0."""

    def compute(op: Op) -> Work:
        if op.attrs.get(HOLDS):
            raise NotCounted(Cause.OP_NOT_COUNTED, f"{op.op} holds modules, and torchstat reads those that hold none")
        number = madd if op.attrs.get(NUMBER) == MADD else flops
        if number is None:
            name = "MAdd" if op.attrs.get(NUMBER) == MADD else "Flops"
            raise NotCounted(Cause.OP_NOT_COUNTED, f"torchstat prints that {op.op} is not supported, of its {name}")
        return number(op)

    BOOK.rule(*ops, source=source, formula=formula)(compute)


def _sample_in(op: Op) -> int:
    return prod(shape_in(op)[1:])


def _sample_out(op: Op) -> int:
    return prod(shape_out(op)[1:])


def _terms(op: Op) -> int:
    return prod(op.attrs["kernel_size"]) * (shape_in(op)[1] // op.attrs["groups"])


def _convolution(op: Op) -> Work:
    out = elements_out(op)
    return Work(mac=_terms(op) * out, add=out if op.given("bias") else 0)


def _convolution_madd(op: Op) -> Work:
    return dots(_terms(op), _sample_out(op), op.given("bias"))


def _transposed_madd(op: Op) -> Work:
    return dots(_terms(op), prod(shape_in(op)[2:]) * shape_out(op)[1], op.given("bias"))


formulas(
    classes("conv", "Conv2d"),
    _convolution,
    _convolution_madd,
    "F:25, M:8",
    "K O, and O with a bias; MAdd: (2 K - 1) o, and o with a bias; K = prod(kernel) channels of the input / groups",
)
formulas(
    classes("conv", "ConvTranspose2d"),
    None,
    _transposed_madd,
    "F:20, M:30",
    "0; MAdd: (2 K - 1) for each position of the input and channel of the output, and 1 with a bias",
)
formulas(
    classes("batchnorm", "BatchNorm2d"),
    lambda op: Work(mul=elements_in(op), add=elements_in(op) if op.attrs["affine"] else 0),
    lambda op: Work(add=2, div=1, mul=1) * _sample_in(op),
    "F:50, M:51",
    "N, and N affine; MAdd: 4 n",
)


def _window(op: Op) -> int:
    kernel = op.attrs["kernel_size"]
    return int(kernel) ** 2 if isinstance(kernel, int) else prod(kernel)


formulas(
    classes("pooling", "MaxPool2d"),
    per_input(cmp=1),
    lambda op: Work(cmp=_window(op) - 1) * _sample_out(op),
    "F:71, M:64",
    "N; MAdd: (prod(kernel) - 1) o",
)
formulas(
    classes("pooling", "AvgPool2d"),
    per_input(add=1),
    lambda op: Work(add=_window(op) - 1, div=1) * _sample_out(op),
    "F:71, M:77",
    "N; MAdd: prod(kernel) o",
)
formulas(
    classes("activation", "ReLU", "ReLU6"),
    per_input(cmp=1),
    lambda op: Work(cmp=_sample_in(op)),
    "F:60, M:93",
    "N; MAdd: n",
)
formulas(classes("activation", "PReLU", "ELU", "LeakyReLU"), per_input(cmp=1), None, "F:60, M:160", "N; MAdd: 0")


def _softmax_madd(op: Op) -> Work:
    sample = _sample_in(op)
    return Work(special=sample, add=sample - 1, div=sample)


formulas(classes("activation", "Softmax"), None, _softmax_madd, "F:20, M:102", "0; MAdd: 3 n - 1, whatever the axis")


def _linear(op: Op) -> Work:
    (rows, terms), (_, width) = shape_in(op), shape_out(op)
    return Work(mac=rows * terms * width)


def _linear_madd(op: Op) -> Work:
    return dots(shape_in(op)[1], shape_out(op)[1], False)


formulas(
    classes("linear", "Linear"),
    _linear,
    _linear_madd,
    "F:77, M:115",
    "K O of an input of two dimensions, with or without a bias; MAdd: (2 K - 1) o",
)


def _bilinear_madd(op: Op) -> Work:
    first, second = shape_in(op)[1], shape_in(op, 1)[1]
    return dots(first * second + second, shape_out(op)[1], False)


formulas(
    classes("linear", "Bilinear"),
    None,
    _bilinear_madd,
    "F:20, M:127",
    "0; MAdd: (2 K - 1) o, K = both widths multiplied, and the second",
)
formulas(
    classes("upsampling", "Upsample"),
    lambda op: Work(mul=shape_in(op)[0] * prod(shape_out(op)[2:])),
    None,
    "F:83, M:160",
    "1 for each position of the output, whatever the channels; MAdd: 0",
)


def _why_not(module: Op) -> tuple[Cause, str]:
    if module.op.startswith("torch.nn.") and not module.attrs.get(HOLDS):
        return Cause.OP_NOT_COUNTED, f"torchstat prints that {module.op} is not supported, and counts 0"
    return (
        Cause.CALL_NOT_SEEN,
        f"a functional call in {module.op}.forward: torchstat looks at modules that hold no others",
    )


bridge = partial(
    bridge_modules, hooks=Hooks("torchstat", BOOK, hides=False, containers=(), why_not=_why_not, last=True)
)
