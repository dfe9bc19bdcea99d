"""What ptflops includes. Unit MAC; all other operations that it counts are mixed in at one each.

E = ptflops/pytorch_engine.py and O = ptflops/pytorch_ops.py are the backend "pytorch": modules by exact class, and functions that
it patches. A = ptflops/aten_ops.py is the backend "aten". Lines of 0.7.5.
"""

from __future__ import annotations

from collections.abc import Callable

from ....core.records import Op
from ....work import ZERO, Work, prod
from ..functional_rules import GATES, elementwise, from_the_left, matmul
from ..rulebook import RuleBook, dims
from . import AVERAGE, COUNTERS

FILES = {"E": "ptflops/pytorch_engine.py", "O": "ptflops/pytorch_ops.py", "A": "ptflops/aten_ops.py"}
BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, FILES)
rule = BOOK.rule
NN, F, VISION = "torch.nn.modules.", "torch.nn.functional.", "torchvision.ops."
AXES = (1, 2, 3)


def _of_torch(*names: str) -> list[str]:
    return [f"{space}.{name}" for name in names for space in ("torch", "torch.Tensor")]


def _x(op: Op, at: int = 0) -> tuple[int, ...]:
    return dims(op.inputs[at].shape)


def _out(op: Op) -> tuple[int, ...]:
    return dims(op.outputs[0].shape)


@rule(
    *(f"{NN}conv.Conv{n}d" for n in AXES),
    source="O:60",
    formula="B (K in (out // groups) positions + out positions [bias])",
)
@rule(
    *(f"{NN}conv.ConvTranspose{n}d" for n in AXES),
    source="O:60, O:310",
    formula="B (K in (out // groups) positions of the input + out positions [bias])",
)
def _convolution(op: Op) -> Work:
    x, out, attrs = _x(op), _out(op), op.attrs
    taps = prod(attrs["kernel_size"]) * attrs["in_channels"] * (attrs["out_channels"] // attrs["groups"])
    positions = prod((x if "Transpose" in op.op else out)[2:])
    return Work(mac=x[0] * positions * taps, add=x[0] * prod(out[1:]) if attrs["bias"] else 0)


@rule(
    f"{VISION}deform_conv.DeformConv2d",
    source="O:95, O:60",
    formula="as a Conv2d, + B K positions times 24, or 25 with a mask given by position: the sampling of one channel",
)
def _deformable_convolution(op: Op) -> Work:
    samples = prod(op.attrs["kernel_size"]) * prod(_out(op)[2:]) * _x(op)[0]
    return _convolution(op) + Work(mul=samples * (25 if len(op.inputs) == 3 else 24))


@rule(f"{NN}linear.Linear", source="O:35", formula="rows (in out + out [bias])")
def _linear(op: Op) -> Work:
    *rows, width = _x(op)
    outputs = prod(rows) * _out(op)[-1]
    return Work(mac=outputs * width, add=outputs if op.attrs["bias"] else 0)


def _each(component: str, shape: Callable[[Op], tuple[int, ...]], source: str, *names: str) -> None:
    """A rule that counts one operation per element."""
    formula = "numel(input)" if shape is _x else "numel(out)"
    rule(*names, source=source, formula=formula)(lambda op: Work(**{component: prod(shape(op))}))


KINDS = [(adaptive, n) for adaptive in ("", "Adaptive") for n in AXES]
for kind, component in (("Max", "cmp"), ("Avg", "add")):
    _each(component, _x, "O:46", *(f"{NN}pooling.{adaptive}{kind}Pool{n}d" for adaptive, n in KINDS))
    functions = (f"{adaptive}_{kind}_pool{n}d".lower().lstrip("_") for adaptive, n in KINDS)
    _each(component, _x, "O:347", *(F + name for name in functions))
for component, names in (("cmp", "ReLU ReLU6"), ("mul", "PReLU LeakyReLU"), ("special", "ELU GELU")):
    _each(component, _out, "O:30", *(f"{NN}activation.{name}" for name in names.split()))
for component, names in (("cmp", "relu relu6"), ("mul", "prelu"), ("special", "elu gelu silu softmax")):
    _each(component, _x, "O:347", *(F + name for name in names.split()))


@rule(
    *(f"{NN}batchnorm.BatchNorm{n}d" for n in AXES),
    *(f"{NN}instancenorm.InstanceNorm{n}d" for n in AXES),
    f"{NN}normalization.GroupNorm",
    f"{NN}normalization.LayerNorm",
    source="O:51",
    formula="numel(input), twice if the module has an `affine` that is true; a LayerNorm has none",
)
def _norm(op: Op) -> Work:
    return Work(mul=prod(_x(op)), add=prod(_x(op)) if op.attrs.get("affine") else 0)


@rule(f"{NN}upsampling.Upsample", source="O:21", formula="numel(out[0]): of the first sample")
def _upsample(op: Op) -> Work:
    return Work(mul=prod(_out(op)[1:]))


@rule(
    f"{F}interpolate",
    f"{F}upsample",
    source="O:351",
    formula="B C times the sizes, or numel(input) times the scales; one number is taken for every axis",
)
def _interpolate(op: Op) -> Work:
    x, size, scale = _x(op), op.attrs["size"], op.attrs["scale_factor"]
    if size is not None:
        return Work(mul=prod(x[:2]) * (prod(size) if isinstance(size, list) else size ** (len(x) - 2)))
    each = prod([int(s) for s in scale]) if isinstance(scale, list) else scale ** (len(x) - 2)
    return Work(mul=int(prod(x) * each))


def _cell(op: Op, width: int, state: int) -> Work:
    """One step of one layer: numel(w_ih) + numel(w_hh), and H, 7 H or 10 H, and the biases."""
    hidden = op.attrs["hidden_size"]
    gates, products, adds = GATES[op.op.rpartition(".")[2].removesuffix("Cell")]
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
    return sum((_cell(op, width, state) for width in widths), ZERO) * (x[0] * x[1] * directions)


@rule(*(f"{NN}rnn.{kind}Cell" for kind in GATES), source="O:163, O:105", formula="B times one step of one layer")
def _one_cell(op: Op) -> Work:
    return _cell(op, op.attrs["input_size"], op.attrs["hidden_size"]) * _x(op)[0]


@rule(
    f"{NN}activation.MultiheadAttention",
    source="O:180",
    formula="B (scale, projections as wide as their inputs [+ biases], heads (scores, softmax, values), output and bias)",
)
def _attention(op: Op) -> Work:
    steps, heads = 1 if op.attrs["batch_first"] else 0, op.attrs["num_heads"]
    (queries, width), (keys, of_keys), (values, of_values) = ((_x(op, at)[steps], _x(op, at)[2]) for at in range(3))
    scores = heads * queries * keys
    projected = queries * width**2 + keys * of_keys**2 + values * of_values**2 + queries * of_values**2
    biases = (queries + keys + values) * width if op.attrs["in_proj_bias"] else 0
    products = projected + scores * (width // heads + of_values // heads)
    work = Work(mac=products, add=biases + queries * of_values, mul=queries * width, special=scores)
    return work * _x(op)[1 - steps]


for source, formula, ops in (
    ("A:23, A:57", "m n k, for each matrix of a batch", ["aten.mm", "aten.bmm"]),
    ("O:385", "numel(first) times the last size of the second", _of_torch("matmul", "mm", "bmm")),
):
    rule(*ops, source=source, formula=formula)(matmul)
FROM_THE_LEFT = "the larger size on each axis, axes counted from the first: (3,) and (2, 3) make 3 x 3"
for name in ("add", "mul"):
    rule(*_of_torch(name), source="O:397", formula=FROM_THE_LEFT)(elementwise(name, from_the_left))


@rule("aten.addmm", source="A:36", formula="m n k + m n")
def _biased_product(op: Op) -> Work:
    return Work(mac=prod(_x(op, 1)) * _x(op, 2)[1], add=_x(op, 1)[0] * _x(op, 2)[1])


@rule(
    *_of_torch("addmm"),
    "torch.baddbmm",
    source="O:390",
    formula="numel(mat1) times the last size of mat2, and numel(input) unless beta is 0",
)
def _added_product(op: Op) -> Work:
    return Work(mac=prod(_x(op, 1)) * _x(op, 2)[-1], add=prod(_x(op)) if op.attrs["beta"] != 0 else 0)


@rule(
    "aten.convolution",
    source="A:71",
    formula="B numel(weight) positions of out, or of the input if transposed, + numel(out) [bias]",
)
def _aten_convolution(op: Op) -> Work:
    x, out = _x(op), _out(op)
    positions = prod((x if op.attrs["transposed"] else out)[2:])
    return Work(mac=x[0] * prod(_x(op, 1)) * positions, add=x[0] * prod(out[1:]) if op.given("bias") else 0)


@rule(AVERAGE, source="E:199, E:267, E:93", formula="int(modules / batch + functions + products), less all three")
def _average(op: Op) -> Work:
    modules, functions, products = op.attrs["modules"], op.attrs["functions"], op.attrs["products"]
    reported = int(modules / op.attrs["batch"] + functions + products)  # in floating point, as ptflops does it
    return Work(mac=reported - modules - functions - products)
