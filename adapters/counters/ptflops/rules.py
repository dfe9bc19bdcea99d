"""What ptflops includes. Unit MAC; every other operation that it counts is mixed in at one each.

E = ptflops/pytorch_engine.py and O = ptflops/pytorch_ops.py are the backend "pytorch": modules by exact class, and the functions
that it patches. A = ptflops/aten_ops.py is the backend "aten". Lines of 0.7.5.
"""

from __future__ import annotations

import itertools

from ....core.records import Op
from ....work import Work, prod
from ..rulebook import RuleBook, dims
from . import COUNTERS

FILES = {"E": "ptflops/pytorch_engine.py", "O": "ptflops/pytorch_ops.py", "A": "ptflops/aten_ops.py"}
BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, FILES)
rule = BOOK.rule

NN = "torch.nn.modules."
F = "torch.nn.functional."
AXES = (1, 2, 3)
AVERAGE = "ptflops.average"
"""Not an op: the division by the batch. ``modules`` is what the hooks counted, ``functions`` and ``products`` what the patched
functions of torch.nn.functional and those of torch and its tensors counted, ``batch`` what divides the first of them."""


def _x(op: Op, at: int = 0) -> tuple[int, ...]:
    return dims(op.inputs[at].shape)


def _out(op: Op) -> tuple[int, ...]:
    return dims(op.outputs[0].shape)


@rule(
    *(f"{NN}conv.Conv{n}d" for n in AXES),
    source="O:60",
    formula="B (K in (out // groups) positions of out + numel(out[1:]) [bias])",
)
@rule(
    *(f"{NN}conv.ConvTranspose{n}d" for n in AXES),
    source="O:60, O:310",
    formula="B (K in (out // groups) positions of the input + numel(out[1:]) [bias])",
)
def _convolution(op: Op) -> Work:
    x, out, attrs = _x(op), _out(op), op.attrs
    taps = prod(attrs["kernel_size"]) * attrs["in_channels"] * (attrs["out_channels"] // attrs["groups"])
    positions = prod((x if "Transpose" in op.op else out)[2:])
    return Work(mac=x[0] * positions * taps, add=x[0] * prod(out[1:]) if attrs["bias"] else 0)


@rule(f"{NN}linear.Linear", source="O:35", formula="rows (in out + out [bias])")
def _linear(op: Op) -> Work:
    *rows, width = _x(op)
    outputs = prod(rows) * _out(op)[-1]
    return Work(mac=outputs * width, add=outputs if op.attrs["bias"] else 0)


@rule(f"{NN}activation.ReLU", f"{NN}activation.ReLU6", source="O:30", formula="numel(out)")
def _compared(op: Op) -> Work:
    return Work(cmp=prod(_out(op)))


@rule(f"{NN}activation.PReLU", f"{NN}activation.LeakyReLU", source="O:30", formula="numel(out)")
def _scaled(op: Op) -> Work:
    return Work(mul=prod(_out(op)))


@rule(f"{NN}activation.ELU", source="O:30", formula="numel(out)")
@rule(f"{NN}activation.GELU", source="O:30, O:323", formula="numel(out)")
def _curved(op: Op) -> Work:
    return Work(special=prod(_out(op)))


MAX = [f"{kind}MaxPool{n}d" for kind in ("", "Adaptive") for n in AXES]
MEAN = [f"{kind}AvgPool{n}d" for kind in ("", "Adaptive") for n in AXES]


def _function(name: str) -> str:
    """``adaptive_avg_pool2d`` of ``AdaptiveAvgPool2d``."""
    return name.replace("Adaptive", "adaptive_").replace("MaxPool", "max_pool").replace("AvgPool", "avg_pool")


@rule(*(f"{NN}pooling.{name}" for name in MAX), source="O:46", formula="numel(input)")
@rule(*(f"{F}{_function(name)}" for name in MAX), f"{F}relu", f"{F}relu6", source="O:347", formula="numel(input)")
def _of_inputs_compared(op: Op) -> Work:
    return Work(cmp=prod(_x(op)))


@rule(*(f"{NN}pooling.{name}" for name in MEAN), source="O:46", formula="numel(input)")
@rule(*(f"{F}{_function(name)}" for name in MEAN), source="O:347", formula="numel(input)")
def _of_inputs_added(op: Op) -> Work:
    return Work(add=prod(_x(op)))


@rule(f"{F}prelu", source="O:347", formula="numel(input)")
def _of_inputs_scaled(op: Op) -> Work:
    return Work(mul=prod(_x(op)))


@rule(*(f"{F}{name}" for name in ("elu", "gelu", "silu", "softmax")), source="O:347", formula="numel(input)")
def _of_inputs_curved(op: Op) -> Work:
    return Work(special=prod(_x(op)))


@rule(
    *(f"{NN}batchnorm.BatchNorm{n}d" for n in AXES),
    *(f"{NN}instancenorm.InstanceNorm{n}d" for n in AXES),
    f"{NN}normalization.GroupNorm",
    f"{NN}normalization.LayerNorm",
    source="O:51",
    formula="numel(input), twice if the module has an `affine` that is true; a LayerNorm has none",
)
def _norm(op: Op) -> Work:
    n = prod(_x(op))
    return Work(mul=n, add=n if op.attrs.get("affine") else 0)


@rule(f"{NN}upsampling.Upsample", source="O:21", formula="numel(out[0]): of the first sample")
def _upsample(op: Op) -> Work:
    return Work(mul=prod(_out(op)[1:]))


@rule(
    f"{F}interpolate",
    f"{F}upsample",
    source="O:351",
    formula="B C times the sizes; or numel(input) times the scale, to the power of the axes if it is one number",
)
def _interpolate(op: Op) -> Work:
    x, size, scale = _x(op), op.attrs.get("size"), op.attrs.get("scale_factor")
    axes = len(x) - 2
    if size is not None:
        return Work(mul=prod(x[:2]) * (prod(size) if isinstance(size, list) else size**axes))
    if isinstance(scale, list):
        return Work(mul=prod(x) * int(prod(scale)))
    return Work(mul=int(prod(x) * scale**axes))


GATES = {"RNN": (1, 1, 0), "GRU": (3, 4, 3), "LSTM": (4, 5, 5)}
"""Gates, and per hidden unit the adds and the products that ptflops counts besides the matrices (O:105)."""


def _cell(op: Op, width: int, state: int) -> Work:
    """One step of one layer: numel(w_ih) + numel(w_hh), and H, 7 H or 10 H, and the biases."""
    hidden = op.attrs["hidden_size"]
    gates, adds, products = GATES[op.op.rpartition(".")[2].removesuffix("Cell")]
    biases = 2 * gates * hidden if op.attrs["bias"] else 0
    return Work(mac=gates * hidden * (width + state), add=adds * hidden + biases, mul=products * hidden)


@rule(
    *(f"{NN}rnn.{kind}" for kind in GATES),
    source="O:130, O:105",
    formula="shape[0] shape[1] layers (numel(w_ih) + numel(w_hh) + H, 7 H or 10 H [+ biases]), doubled if bidirectional",
)
def _recurrent(op: Op) -> Work:
    x, attrs = _x(op), op.attrs
    directions = 2 if attrs["bidirectional"] else 1
    state = attrs.get("proj_size") or attrs["hidden_size"]
    widths = [attrs["input_size"], *[directions * state] * (attrs["num_layers"] - 1)]
    each = sum((_cell(op, width, state) for width in widths), Work())
    return each * (x[0] * x[1] * directions)


@rule(
    *(f"{NN}rnn.{kind}Cell" for kind in GATES),
    source="O:163, O:105",
    formula="B (numel(w_ih) + numel(w_hh) + H, 7 H or 10 H [+ biases])",
)
def _one_cell(op: Op) -> Work:
    return _cell(op, op.attrs["input_size"], op.attrs["hidden_size"]) * _x(op)[0]


@rule(
    f"{NN}activation.MultiheadAttention",
    source="O:180",
    formula="B (scale, projections as wide as their inputs [+ biases], heads (scores, softmax, values), output and bias)",
)
def _attention(op: Op) -> Work:
    first = op.attrs["batch_first"]
    shapes = [_x(op, at) for at in range(3)]
    batch = shapes[0][0 if first else 1]
    (queries, width), (keys, of_keys), (values, of_values) = ((x[1 if first else 0], x[2]) for x in shapes)
    heads = op.attrs["num_heads"]
    scores = heads * queries * keys
    projected = queries * width**2 + keys * of_keys**2 + values * of_values**2 + queries * of_values**2
    biases = (queries + keys + values) * width if op.attrs["in_proj_bias"] else 0
    work = Work(
        mac=projected + scores * (width // heads + of_values // heads),
        add=biases + queries * of_values,
        mul=queries * width,
        special=scores,
    )
    return work * batch


PRODUCTS = [f"torch.{space}{name}" for name in ("matmul", "mm", "bmm") for space in ("", "Tensor.")]


@rule(*PRODUCTS, source="O:385", formula="numel(first) times the last size of the second")
def _product(op: Op) -> Work:
    return Work(mac=prod(_x(op)) * _x(op, 1)[-1])


@rule(
    *("torch.addmm", "torch.Tensor.addmm", "torch.baddbmm"),
    source="O:390",
    formula="numel(mat1) times the last size of mat2, and numel(input) unless beta is 0",
)
def _added_product(op: Op) -> Work:
    added = prod(_x(op)) if op.attrs.get("beta", 1) != 0 else 0
    return Work(mac=prod(_x(op, 1)) * _x(op, 2)[-1], add=added)


def _elementwise(op: Op) -> int:
    """Elements of the larger size on each axis, where axes are counted from the first: 3 and (2, 3) make 3 x 3."""
    sizes = itertools.zip_longest(*(dims(tensor.shape) for tensor in op.inputs[:2]), fillvalue=1)
    return prod(max(axis) for axis in sizes)


@rule(
    "torch.add", "torch.Tensor.add", source="O:397", formula="the larger size on each axis, axes counted from the first"
)
def _add(op: Op) -> Work:
    return Work(add=_elementwise(op))


@rule(
    "torch.mul", "torch.Tensor.mul", source="O:397", formula="the larger size on each axis, axes counted from the first"
)
def _mul(op: Op) -> Work:
    return Work(mul=_elementwise(op))


@rule(AVERAGE, source="E:199, E:267, E:93", formula="int(modules / batch + functions + products), less all three")
def _average(op: Op) -> Work:
    modules, functions, products = op.attrs["modules"], op.attrs["functions"], op.attrs["products"]
    reported = int(modules / op.attrs["batch"] + functions + products)  # in floating point, as ptflops does it
    return Work(mac=reported - modules - functions - products)


@rule("aten.mm", "aten.bmm", source="A:23, A:57", formula="m n k, b times for bmm")
def _mm(op: Op) -> Work:
    return Work(mac=prod(_x(op)) * _x(op, 1)[-1])


@rule("aten.addmm", source="A:36", formula="m n k + m n")
def _addmm(op: Op) -> Work:
    (m, k), (_, n) = _x(op, 1), _x(op, 2)
    return Work(mac=m * n * k, add=m * n)


@rule(
    "aten.convolution",
    source="A:71",
    formula="B numel(weight) positions of out, of the input if transposed, + numel(out) [bias]",
)
def _aten_convolution(op: Op) -> Work:
    x, out = _x(op), _out(op)
    positions = prod((x if op.attrs["transposed"] else out)[2:])
    return Work(mac=x[0] * prod(_x(op, 1)) * positions, add=x[0] * prod(out[1:]) if op.given("bias") else 0)
