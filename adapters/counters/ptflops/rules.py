"""Rules of ptflops, for both of its backends. Unit MAC; each other operation that it counts adds one to the same number.

E = ptflops/pytorch_engine.py and O = ptflops/pytorch_ops.py are the backend "pytorch": modules by exact class, and functions that
it patches. A = ptflops/aten_ops.py is the backend "aten". Lines of 0.7.5.
"""

from __future__ import annotations

from ....core.records import Op
from ....work import Work, prod
from ..patched_functions.rules import elementwise, first_two_sizes, from_the_left, gated_step, matmul, of_torch
from ..rule_parts import (
    AXES,
    CELLS,
    LAYERS,
    biases,
    by_axes,
    classes,
    functional,
    one_step,
    per_input,
    per_output,
    shape_in,
    shape_out,
)
from ..rulebook import Compute, RuleBook
from . import AVERAGE

FILES = {
    "E": "ptflops/pytorch_engine.py",
    "O": "ptflops/pytorch_ops.py",
    "A": "ptflops/aten_ops.py",
    "OLD": "ptflops/pytorch_ops.py (0.7.3)",
}
BOOK = RuleBook("ptflops", "ptflops", FILES)
rule = BOOK.rule
SINCE_TRANSPOSED, BEFORE_TRANSPOSED = ">=0.7.5", "<0.7.5"


def _convolution_work(op: Op, products: int, transposed: bool, bias: bool) -> Work:
    """``products`` products at each position of the output (of the input if transposed), and one sum for each output."""
    x, out = shape_in(op), shape_out(op)
    positions = prod((x if transposed else out)[2:])
    return Work(mac=x[0] * positions * products, add=x[0] * prod(out[1:]) if bias else 0)


@rule(
    *by_axes("conv", "Conv"),
    source="O:60",
    formula="B (K in (out // groups) positions + out positions [bias])",
    versions=SINCE_TRANSPOSED,
)
@rule(
    *by_axes("conv", "ConvTranspose"),
    source="O:60, O:310",
    formula="B (K in (out // groups) positions of the input + out positions [bias])",
    versions=SINCE_TRANSPOSED,
)
def _convolution(op: Op) -> Work:
    return _convolution_work(op, _products(op), "Transpose" in op.op, bool(op.attrs["bias"]))


@rule(
    *by_axes("conv", "Conv"),
    *by_axes("conv", "ConvTranspose"),
    source="OLD:58",
    formula="B positions of the output (K in (out // groups) + out [bias]), also if it is transposed",
    versions=BEFORE_TRANSPOSED,
)
def _convolution_by_output(op: Op) -> Work:
    positions = shape_in(op)[0] * prod(shape_out(op)[2:])
    return Work(mac=positions * _products(op), add=positions * op.attrs["out_channels"] if op.attrs["bias"] else 0)


def _products(op: Op) -> int:
    """At one position."""
    return prod(op.attrs["kernel_size"]) * op.attrs["in_channels"] * (op.attrs["out_channels"] // op.attrs["groups"])


for _of_layer, _source, _versions in (
    (_convolution, "O:95, O:60", SINCE_TRANSPOSED),
    (_convolution_by_output, "OLD:89, OLD:58", BEFORE_TRANSPOSED),
):

    @rule(
        "torchvision.ops.deform_conv.DeformConv2d",
        source=_source,
        formula="as a Conv2d, + B K positions times 24, or 25 with a mask given by position: the sampling of one channel",
        versions=_versions,
    )
    def _deformable_convolution(op: Op, layer: Compute = _of_layer) -> Work:
        samples = prod(op.attrs["kernel_size"]) * prod(shape_out(op)[2:]) * shape_in(op)[0]
        return layer(op) + Work(mul=samples * (25 if len(op.inputs) == 3 else 24))


@rule(*classes("linear", "Linear"), source="O:35", formula="rows (in out + out [bias])")
def _linear(op: Op) -> Work:
    *rows, width = shape_in(op)
    outputs = prod(rows) * shape_out(op)[-1]
    return Work(mac=outputs * width, add=outputs if op.attrs["bias"] else 0)


for _maximum, _count in (("Max", per_input(cmp=1)), ("Avg", per_input(add=1))):
    _pools = [f"{adaptive}{_maximum}Pool{n}d" for adaptive in ("", "Adaptive") for n in AXES]
    rule(*classes("pooling", *_pools), source="O:46", formula="numel(input)")(_count)
    _functions = [name.lower().replace("pool", "_pool").replace("adaptive", "adaptive_") for name in _pools]
    rule(*functional(*_functions), source="O:347", formula="numel(input)")(_count)
for _component, _names in (("cmp", "ReLU ReLU6"), ("mul", "PReLU LeakyReLU"), ("special", "ELU GELU")):
    rule(*classes("activation", *_names.split()), source="O:30", formula="numel(out)")(per_output(**{_component: 1}))
for _component, _names in (("cmp", "relu relu6"), ("mul", "prelu"), ("special", "elu gelu silu softmax")):
    rule(*functional(*_names.split()), source="O:347", formula="numel(input)")(per_input(**{_component: 1}))


@rule(
    *by_axes("batchnorm", "BatchNorm"),
    *by_axes("instancenorm", "InstanceNorm"),
    *classes("normalization", "GroupNorm", "LayerNorm"),
    source="O:51",
    formula="numel(input), twice if the module has an `affine` that is true; a LayerNorm has none",
)
def _norm(op: Op) -> Work:
    return Work(mul=prod(shape_in(op)), add=prod(shape_in(op)) if op.attrs.get("affine") else 0)


@rule(*classes("upsampling", "Upsample"), source="O:21", formula="numel(out[0]): of the first sample")
def _upsample(op: Op) -> Work:
    return Work(mul=prod(shape_out(op)[1:]))


@rule(
    *functional("interpolate", "upsample"),
    source="O:351",
    formula="B C times the sizes, or numel(input) times the scales; one number is taken for every axis",
    versions=">=0.7.4",
)
def _interpolate(op: Op) -> Work:
    x = shape_in(op)
    return _resize_work(op, prod(x[:2]), len(x) - 2, len(x) - 2)


@rule(
    *functional("interpolate", "upsample"),
    source="OLD:345",
    formula="the sizes, one number once; or numel(input) times the scale to the power of B, len(input); or as many scales as B",
    versions="<0.7.4",
)
def _interpolate_by_batch(op: Op) -> Work:
    return _resize_work(op, 1, 1, shape_in(op)[0])


def _resize_work(op: Op, channels: int, sizes: int, scales: int) -> Work:
    """A size that is one number is taken ``sizes`` times, and a scale ``scales`` times."""
    size, scale = op.attrs["size"], op.attrs["scale_factor"]
    if size is not None:
        return Work(mul=channels * (prod(size) if isinstance(size, list) else size**sizes))
    each = prod([int(s) for s in scale]) if isinstance(scale, list) else scale**scales
    return Work(mul=int(prod(shape_in(op)) * each))


def _step(op: Op, width: int) -> Work:
    """One step of one layer: numel(w_ih) + numel(w_hh), and H, 7 H or 10 H, and the biases."""
    work = gated_step(op, width)
    return work + biases(op) if op.attrs["bias"] else work


rule(
    *LAYERS,
    source="O:130, O:105",
    formula="shape[0] shape[1] layers (numel(w_ih) + numel(w_hh) + H, 7 H or 10 H [+ biases]), doubled if bidirectional",
)(first_two_sizes(_step))
rule(*CELLS, source="O:163, O:105", formula="B times one step of one layer")(one_step(_step))


@rule(
    *classes("activation", "MultiheadAttention"),
    source="O:180",
    formula="B (scale, projections as wide as their inputs [+ biases], heads (scores, softmax, values), output and bias)",
)
def _attention(op: Op) -> Work:
    steps, heads = 1 if op.attrs["batch_first"] else 0, op.attrs["num_heads"]
    (queries, width), (keys, of_keys), (values, of_values) = (
        (shape_in(op, at)[steps], shape_in(op, at)[2]) for at in range(3)
    )
    scores = heads * queries * keys
    projected = queries * width**2 + keys * of_keys**2 + values * of_values**2 + queries * of_values**2
    of_inputs = (queries + keys + values) * width if op.attrs["in_proj_bias"] else 0
    products = projected + scores * (width // heads + of_values // heads)
    work = Work(mac=products, add=of_inputs + queries * of_values, mul=queries * width, special=scores)
    return work * shape_in(op)[1 - steps]


rule("aten.mm", "aten.bmm", source="A:23, A:57", formula="m n k, for each matrix of a batch")(matmul)
rule(*of_torch("matmul", "mm", "bmm"), source="O:385", formula="numel(first) times the last size of the second")(matmul)
FROM_THE_LEFT = "the larger size on each axis, axes counted from the first: (3,) and (2, 3) make 3 x 3"
for _kind in ("add", "mul"):
    rule(*of_torch(_kind), source="O:397", formula=FROM_THE_LEFT)(elementwise(_kind, from_the_left))


@rule("aten.addmm", source="A:36", formula="m n k + m n")
def _biased_product(op: Op) -> Work:
    return Work(mac=prod(shape_in(op, 1)) * shape_in(op, 2)[1], add=shape_in(op, 1)[0] * shape_in(op, 2)[1])


@rule(
    *of_torch("addmm"),
    "torch.baddbmm",
    source="O:390",
    formula="numel(mat1) times the last size of mat2, and numel(input) unless beta is 0",
)
def _added_product(op: Op) -> Work:
    return Work(mac=prod(shape_in(op, 1)) * shape_in(op, 2)[-1], add=prod(shape_in(op)) if op.attrs["beta"] != 0 else 0)


@rule(
    "aten.convolution",
    source="A:71",
    formula="B numel(weight) positions of out, or of the input if transposed, + numel(out) [bias]",
)
def _aten_convolution(op: Op) -> Work:
    return _convolution_work(op, prod(shape_in(op, 1)), op.attrs["transposed"], op.given("bias"))


@rule(AVERAGE, source="E:199, E:267, E:93", formula="int(modules / batch + functions + products), less all three")
def _average(op: Op) -> Work:
    modules, functions, products = op.attrs["modules"], op.attrs["functions"], op.attrs["products"]
    reported = int(modules / op.attrs["batch"] + functions + products)  # in floating point, as ptflops does it
    return Work(mac=reported - modules - functions - products)
