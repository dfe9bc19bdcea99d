"""What DeepSpeed's flops profiler and its fork calflops count for one call of a function, or of a recurrent module.

Both have the same formulas but for some that DeepSpeed corrected later; each cites its own lines.  N are the elements of the
first tensor.  Each counter has two numbers, and a record says of which it is: FLOPs, and MACs, which some formulas leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...core.causes import Cause
from ...core.records import Op
from ...work import Work, prod
from .numpy_einsum import printed_flops
from .rulebook import Compute, NotCounted, RuleBook, dims, size

MACS = "macs"
AXES = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula and the functions or classes for which it is registered. ``macs`` says whether it returns any MACs."""

    ops: tuple[str, ...]
    compute: Compute
    text: str
    macs: bool = False
    versions: str = ""


def fill(book: RuleBook, formulas: Mapping[str, Formula], lines: Mapping[str, str]) -> None:
    """Register each formula with its source."""
    for name, formula in formulas.items():
        book.rule(*formula.ops, source=lines[name], formula=formula.text, versions=formula.versions)(
            _of_number(formula)
        )


def _of_number(formula: Formula) -> Compute:
    def compute(op: Op) -> Work:
        if op.attrs["number"] != MACS:
            return formula.compute(op)
        if not formula.macs:
            raise NotCounted(Cause.OP_NOT_COUNTED, f"its formula for {op.op} returns no MACs")
        return Work(mac=formula.compute(op).mac)

    return compute


def _functional(*names: str) -> tuple[str, ...]:
    return tuple(f"torch.nn.functional.{name}" for name in names)


def _tensor(*names: str) -> tuple[str, ...]:
    return tuple(f"{space}.{name}" for name in names for space in ("torch", "torch.Tensor"))


def _n(op: Op) -> int:
    return size(op.inputs[0].shape)


def _per_element(**counts: int) -> Compute:
    return lambda op: Work(**{name: count * _n(op) for name, count in counts.items()})


def _norm(plain: Work, affine: Work) -> Compute:
    return lambda op: (affine if op.given("weight") else plain) * _n(op)


def nothing(op: Op) -> Work:
    """Its formula returns 0, whatever the call."""
    raise NotCounted(Cause.OP_NOT_COUNTED, f"its formula for {op.op} returns 0")


def linear(op: Op) -> Work:
    """numel(x) multiply-adds for each of weight.shape[0] outputs."""
    return Work(mac=_n(op) * dims(op.inputs[1].shape)[0])


def _each(value: object, axes: int) -> list[int]:
    return [int(item) for item in value] if isinstance(value, (list, tuple)) else [int(str(value))] * axes


def _shrunk(op: Op) -> list[int]:
    """The output positions of a convolution, by axis; padding="same" pads both sides alike."""
    x, w = dims(op.inputs[0].shape), dims(op.inputs[1].shape)
    axes = len(w) - 2
    stride, dilation = _each(op.attrs["stride"], axes), _each(op.attrs["dilation"], axes)
    padding = op.attrs["padding"]
    reach = [d * (k - 1) for d, k in zip(dilation, w[2:], strict=True)]
    named = {"valid": [0] * axes, "same": [r // 2 for r in reach]}
    pads = named[padding] if isinstance(padding, str) else _each(padding, axes)
    return [(x[2 + i] + 2 * pads[i] - (reach[i] + 1)) // stride[i] + 1 for i in range(len(x) - 2)]


def convolution(op: Op) -> Work:
    """B prod(output) prod(kernel) Cin (Cout / groups) multiply-adds, and a bias per output."""
    x, w = dims(op.inputs[0].shape), dims(op.inputs[1].shape)
    positions = x[0] * prod(_shrunk(op))
    macs = prod(w[2:]) * x[1] * (w[0] // op.attrs["groups"]) * positions
    return Work(mac=macs, add=w[0] * positions if op.given("bias") else 0)


def transposed_twice_grouped(op: Op) -> Work:
    """The weight's second dimension is divided by the groups once more, and the bias has a convolution's output positions."""
    x, w = dims(op.inputs[0].shape), dims(op.inputs[1].shape)
    macs = x[0] * prod(x[2:]) * prod(w[2:]) * x[1] * (w[1] // op.attrs["groups"])
    return Work(mac=macs, add=w[1] * x[0] * prod(_shrunk(op)) if op.given("bias") else 0)


def transposed(op: Op) -> Work:
    """B prod(input) prod(kernel) Cin (Cout / groups) multiply-adds, and a bias per output."""
    x, w = dims(op.inputs[0].shape), dims(op.inputs[1].shape)
    axes = len(w) - 2
    stride, padding, dilation, more = (
        _each(op.attrs[name], axes) for name in ("stride", "padding", "dilation", "output_padding")
    )
    out = [
        (x[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (w[2 + i] - 1) + more[i] + 1 for i in range(axes)
    ]
    bias = w[1] * op.attrs["groups"] * x[0] * prod(out) if op.given("bias") else 0
    return Work(mac=prod(w[2:]) * x[1] * w[1] * x[0] * prod(x[2:]), add=bias)


def resized(scaled: Callable[[int, int, object], int]) -> Compute:
    """prod(size), of one channel of one example, if a size is given; else ``scaled(N, axes, scale_factor)``."""

    def compute(op: Op) -> Work:
        given = [*op.attrs["args"], None, None][1:3]
        wanted, scale = (
            op.attrs.get(name) if value is None else value
            for name, value in zip(("size", "scale_factor"), given, strict=True)
        )
        if wanted is not None:
            return Work(mul=prod(_each(wanted, 1)))
        return Work(mul=scaled(_n(op), len(dims(op.inputs[0].shape)) - 2, scale))

    return compute


def as_large_as_input(elements: int, axes: int, scale: object) -> int:
    """N: the product with the scale is computed and dropped."""
    return elements


def scaled_up(elements: int, axes: int, scale: object) -> int:
    """N times the scale of each axis."""
    factor: float = 1
    if isinstance(scale, (list, tuple)):
        count: float = 1
        for part in scale:
            count *= part
        return int(elements * count)
    factor = scale if isinstance(scale, (int, float)) else 1
    return int(elements * factor**axes)


def matmul(op: Op) -> Work:
    """prod(x) other.shape[-1] multiply-adds."""
    return Work(mac=_n(op) * dims(op.inputs[1].shape)[-1])


def addmm(op: Op) -> Work:
    """The product as in matmul, and an add for each element of the added tensor."""
    return Work(mac=size(op.inputs[1].shape) * dims(op.inputs[2].shape)[-1], add=_n(op))


def attention(op: Op) -> Work:
    """Both products."""
    q, k, v = (dims(t.shape) for t in op.inputs[:3])
    return Work(mac=prod(q) * k[-2] + prod(q[:-1]) * k[-2] * v[-1])


def einsum(op: Op) -> Work:
    """numpy's count for the cheapest order, printed with four digits: its FLOPs in pairs are multiply-adds."""
    equation = op.attrs.get("equation") or next(item for item in op.attrs["args"] if isinstance(item, str))
    flops = printed_flops(equation.replace(" ", ""), [dims(t.shape) for t in op.inputs])
    return Work(mac=flops // 2, add=flops % 2)


def elementwise(kind: str, elements: Callable[[tuple[int, ...], tuple[int, ...]], int]) -> Compute:
    """One of this kind for each element of both tensors together, of the one tensor, or 1 of two numbers."""

    def compute(op: Op) -> Work:
        shapes = [dims(tensor.shape) for tensor in op.inputs[:2]]
        return Work(**{kind: elements(*shapes) if len(shapes) == 2 else prod(shapes[0]) if shapes else 1})

    return compute


def from_the_left(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """The larger of both sizes at each place, counted from the first dimension."""
    longest = max(len(a), len(b))
    pairs = zip((a + (1,) * longest)[:longest], (b + (1,) * longest)[:longest], strict=True)
    return prod([max(pair) for pair in pairs])


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Elements of the result."""
    longest = max(len(a), len(b))
    pairs = zip((1,) * (longest - len(a)) + a, (1,) * (longest - len(b)) + b, strict=True)
    return prod([y if x == 1 else x for x, y in pairs])


GATES = {"RNN": (1, 0, 1), "GRU": (3, 3, 4), "LSTM": (4, 5, 5)}
"""Gates, and multiplications and additions for each hidden element and step, by kind of layer."""


def _step(op: Op, width: int) -> Work:
    """One step of one layer: both products with one addition less for each gate, elementwise work, and biases."""
    hidden, bias = op.attrs["hidden_size"], bool(op.attrs["bias"])
    gates, mul, add = GATES[op.op.rpartition(".")[2].removesuffix("Cell")]
    rows = gates * hidden
    state = op.attrs.get("proj_size") or hidden
    return Work(mac=rows * (width + state), mul=mul * hidden, add=add * hidden + (0 if bias else -2 * rows))


def recurrent(op: Op) -> Work:
    """Each step of each layer for x.shape[0] x.shape[1] rows, both directions alike; a projection is left out."""
    x, directions = dims(op.inputs[0].shape), 2 if op.attrs["bidirectional"] else 1
    state = op.attrs.get("proj_size") or op.attrs["hidden_size"]
    total = Work()
    for layer in range(op.attrs["num_layers"]):
        total = total + _step(op, op.attrs["input_size"] if layer == 0 else directions * state)
    return total * (x[0] * x[1] * directions)


def cell(op: Op) -> Work:
    """One step for x.shape[0] rows."""
    return _step(op, op.attrs["input_size"]) * dims(op.inputs[0].shape)[0]


_RNN = "2 numel(w_ih) + 2 numel(w_hh) - 2 gates + RNN H, GRU 7 H, LSTM 10 H + both biases"
_POOLS = [f"{kind}{axes}d" for kind in ("{}_pool", "adaptive_{}_pool") for axes in AXES]

SHARED: dict[str, Formula] = {
    "linear": Formula(_functional("linear"), linear, "2 numel(x) out, no bias", macs=True),
    "conv": Formula(
        _functional(*(f"conv{axes}d" for axes in AXES)),
        convolution,
        '2 B prod(output) prod(kernel) Cin (Cout // groups) + Cout B prod(output) if bias; "same" pads both sides alike',
        macs=True,
    ),
    "relu": Formula(_functional("relu"), _per_element(cmp=1), "N"),
    "relu6": Formula(_functional("relu6"), _per_element(cmp=1), "N"),
    "prelu": Formula(_functional("prelu"), _per_element(mul=1), "N"),
    "leaky_relu": Formula(_functional("leaky_relu"), _per_element(mul=1), "N"),
    "elu": Formula(_functional("elu"), _per_element(special=1), "N"),
    "silu": Formula(_functional("silu"), _per_element(special=1), "N"),
    "gelu": Formula(_functional("gelu"), _per_element(special=1), "N"),
    "softmax": Formula(_functional("softmax"), _per_element(special=1), "N"),
    "avg_pool": Formula(_functional(*(name.format("avg") for name in _POOLS)), _per_element(add=1), "N of the input"),
    "max_pool": Formula(_functional(*(name.format("max") for name in _POOLS)), _per_element(cmp=1), "N of the input"),
    "batch_norm": Formula(_functional("batch_norm"), _norm(Work(mul=1), Work(mul=1, add=1)), "2 N; N without weight"),
    "norm": Formula(
        _functional("layer_norm", "group_norm", "instance_norm"),
        _norm(Work(mul=2, add=2), Work(mul=2, add=3)),
        "5 N; 4 N without weight",
    ),
    "embedding": Formula(_functional("embedding"), nothing, "0"),
    "matmul": Formula(_tensor("matmul"), matmul, "2 numel(x) other.shape[-1]", macs=True),
    "addmm": Formula(
        (*_tensor("addmm"), "torch.baddbmm"), addmm, "2 numel(mat1) mat2.shape[-1] + numel(input)", macs=True
    ),
    "einsum": Formula(
        ("torch.einsum",), einsum, "numpy.einsum_path's optimized count, of which four digits are printed"
    ),
    "recurrent": Formula(
        tuple(f"torch.nn.modules.rnn.{kind}" for kind in GATES),
        recurrent,
        f"x.shape[0] x.shape[1], twice if bidirectional, times for each layer: {_RNN}",
    ),
    "cell": Formula(tuple(f"torch.nn.modules.rnn.{kind}Cell" for kind in GATES), cell, f"x.shape[0] times {_RNN}"),
}
"""The formulas that both have, by the name under which each cites them."""

TRANSPOSED = _functional(*(f"conv_transpose{axes}d" for axes in AXES))
RESIZING = _functional("interpolate", "upsample")

CALLED = {
    "linear": "torch.nn.functional.linear",
    "addmm": "torch.addmm",
    "mm": "torch.matmul",
    "bmm": "torch.matmul",
    "baddbmm": "torch.baddbmm",
    "mul": "torch.mul",
    "add": "torch.add",
    "relu": "torch.nn.functional.relu",
    "_softmax": "torch.nn.functional.softmax",
    "convolution": "the convolutions of torch.nn.functional",
    "native_layer_norm": "torch.nn.functional.layer_norm",
}
"""The function that is patched, by the op that it calls."""


def why_not(name: str, op: Op) -> tuple[Cause, str]:
    """Why the counter of this name does not see an op that ran outside the functions that it patches."""
    patched = CALLED.get(op.op.removeprefix("aten."))
    if patched is None:
        return Cause.OP_NOT_COUNTED, f"{name} patches no function for {op.op}"
    return (
        Cause.CALL_NOT_SEEN,
        f"{op.op} was called, as by an operator, without {patched}, which {name} patches",
    )
