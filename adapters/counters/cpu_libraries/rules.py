"""Rules of cpu_libraries: ``products_of`` reads an op's log lines, and ``agrees`` checks them against the op (``CHECKS``).

The sizes of every product must match, not only the total. Two other cases are recognised: a convolution's bias that was
multiplied by ones (``bias_as_product``), and attention that left out masked blocks (``skips_masked``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod

from ....core.records import Op
from ....work import ops_inside
from ....work.attention import count_discarded
from . import PRODUCTS
from .gradient_lines import ATTENTION as GRADIENTS_OF_ATTENTION
from .gradient_lines import (
    Matrices,
    attention_sizes,
    batches,
    block_of,
    in_order,
    lines_of_part,
    matrices,
    result_of,
    shapes_of,
    tiled_pairs,
    unfolded_matrices,
)
from .log_bridge import log_book
from .log_lines import BOTH_GRADIENTS, Product


def products_of(op: Op) -> list[Product]:
    """The products that were written while this op ran; of a gradient that is one of several, its share of them."""
    lines = lines_of_part(op, [Product(*written) for written in op.attrs.get(PRODUCTS, ())])
    return _lines_inside(op, lines) if ops_inside(op) else lines


def _lines_inside(op: Op, lines: Sequence[Product]) -> list[Product]:
    """Of the lines of another library's op those of what ran in its kernel for this phase: one for each matrix product."""
    left, found = list(lines), []
    for part in _leaves(op):
        line = next((line for line in left if agrees(part, [line])), None)
        if line is not None:
            left.remove(line)
            found.append(line)
    return found


def _leaves(op: Op) -> list[Op]:
    """What ran in a kernel, each call by itself."""
    return [leaf for part in ops_inside(op) for leaf in (_leaves(part) or [part]) * part.calls]


BOOK = log_book("cpu_libraries", "torch", "MKL or oneDNN", products_of)

Sizes = dict[str, int]
Agrees = Callable[[Op, Sequence[Product]], bool]


def agrees(op: Op, products: Sequence[Product]) -> bool:
    """Whether these are the products of the op by their sizes; False for an op that has no rule."""
    if ops_inside(op):
        return True  # each was chosen by its sizes
    check = CHECKS.get(op.op)
    return check is not None and all(p.sizes for p in products) and check(op, products)


def _are_exactly(products: Sequence[Product], wanted: Matrices, times: int) -> bool:
    """Whether these are products of such matrices and nothing else, ``times`` of them."""
    return {matrices(p) for p in products} == {wanted} and sum(map(batches, products)) == times


def _matrix_product_rule(first: int) -> Agrees:
    """A product of the tensors from ``first`` on: (..., M, K) and (..., K, N); of a vector N is 1."""

    def check(op: Op, products: Sequence[Product]) -> bool:
        left, right = shapes_of(op)[first : first + 2]
        wide = (*right, 1) if len(right) == 1 else right
        tall = (1, *left) if len(left) == 1 else left
        return _are_exactly(products, (in_order(tall[-2], wide[-1]), tall[-1]), prod(tall[:-2]))

    return check


def _spread_values(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


DESCRIPTOR_PREFIXES = ("convolution:", "deconvolution:")


def _convolution(op: Op, products: Sequence[Product]) -> bool:
    """By oneDNN's descriptor, or as matrices of unfolded patches (im2col), one for each sample and group."""
    data_shape, weight = shapes_of(op)[:2]
    out = result_of(op)
    return _is_convolution(op, products, "forward", data_shape, weight, out)


def _convolution_gradient(op: Op, products: Sequence[Product]) -> bool:
    """The same of a gradient of data or of weight."""
    out, data_shape, weight = shapes_of(op)[:3]
    name = {0: "data", 1: "weight"}.get(op.attrs["part"])
    return name is not None and _is_convolution(op, products, name, data_shape, weight, out)


def bias_as_product(op: Op, products: Sequence[Product]) -> bool:
    """Whether a convolution's bias was multiplied by ones, beside the op's own products."""
    if op.op not in ("aten.convolution", "aten._convolution"):
        return False
    data_shape, weight = shapes_of(op)[:2]
    wanted = unfolded_matrices(op, data_shape, weight, result_of(op))
    times = data_shape[0] * int(op.attrs["groups"])
    found: Counter[Matrices | None] = Counter()
    for product in products:
        found[matrices(product)] += batches(product)
    return found == Counter({wanted["forward"]: times}) + Counter({wanted["bias"]: times})


def _is_convolution(
    op: Op, products: Sequence[Product], name: str, data_shape: Sequence[int], weight: Sequence[int], out: Sequence[int]
) -> bool:
    groups = int(op.attrs["groups"])
    if products[0].routine.startswith(DESCRIPTOR_PREFIXES):
        return len(products) == 1 and _is_described(op, products[0], data_shape, weight, out, groups)
    return _are_exactly(products, unfolded_matrices(op, data_shape, weight, out)[name], data_shape[0] * groups)


def _is_described(
    op: Op, product: Product, data_shape: Sequence[int], weight: Sequence[int], out: Sequence[int], groups: int
) -> bool:
    if product.routine.startswith("deconvolution") is not bool(op.attrs["transposed"]):
        return False
    rank = len(data_shape) - 2
    steps = [_spread_values(op.attrs[name], rank) for name in ("stride", "padding", "dilation")]
    wanted = _sides(data_shape, weight, out)
    for axis, stride, padding, dilation in zip("dhw"[3 - rank :], *steps, strict=True):
        wanted |= {"s" + axis: stride, "d" + axis: dilation - 1, "p" + axis: padding}
    ones = {name: size for name, size in product.sizes.items() if name not in wanted and name != "g"}
    rest = all(size == (0 if name[0] in "dp" else 1) for name, size in ones.items())
    return rest and _sizes_match(product, wanted, groups)


def _sides(data_shape: Sequence[int], weight: Sequence[int], out: Sequence[int]) -> Sizes:
    """Samples, channels, filters, and the sides of data, kernel and result, as a descriptor names them."""
    wanted = {"mb": data_shape[0], "ic": data_shape[1], "oc": out[1]}
    for i, axis in enumerate("dhw"[5 - len(data_shape) :]):
        wanted |= {"i" + axis: data_shape[2 + i], "o" + axis: out[2 + i], "k" + axis: weight[2 + i]}
    return wanted


def _sizes_match(product: Product, wanted: Sizes, groups: int) -> bool:
    sizes = product.sizes
    return sizes.get("g", 1) == groups and {name: sizes.get(name) for name in wanted} == wanted


def _packed_linear(op: Op, products: Sequence[Product]) -> bool:
    """Rows of the data by a packed weight (N, K)."""
    data, weight = shapes_of(op)[0], shapes_of(op)[-1]
    return _are_exactly(products, (in_order(prod(data[:-1]), weight[0]), weight[1]), 1)


def _packed_convolution(op: Op, products: Sequence[Product]) -> bool:
    """oneDNN's descriptor; the record of a packed weight has no stride, and the sides of data and result say it."""
    data_shape, weight = shapes_of(op)[0], shapes_of(op)[-1]
    out = result_of(op)
    described = len(products) == 1 and products[0].routine.startswith("convolution:")
    return described and _sizes_match(products[0], _sides(data_shape, weight, out), data_shape[1] // weight[1])


def _recurrent(op: Op, products: Sequence[Product]) -> bool:
    """oneDNN's descriptor of one layer, or a matrix of each weight that meets every step of every sample once."""
    shapes = shapes_of(op)
    steps = prod(shapes[0][:-1])
    weights = Counter(s for s in shapes[1:] if len(s) == 2)
    descriptors = [p.sizes for p in products if p.routine.startswith("rnn:")]
    if descriptors:
        # each line is one direction of one layer: its weights are (gates x dhc, slc) and (gates x dhc, sic)
        if len(descriptors) != len(products) or any(d["l"] * d["directions"] != 1 for d in descriptors):
            return False
        gates = {1, 3, 4}
        asked = Counter((d["dhc"], width) for d in descriptors for width in (d["slc"], d["sic"]))
        expected_by_gates = [Counter({(s[0] // g, s[1]): n for s, n in weights.items()}) for g in gates]
        return asked in expected_by_gates and all(d["t"] * d["mb"] == steps for d in descriptors)
    left = {shape: count * steps for shape, count in weights.items()}
    for product in products:
        block, batch = block_of(product), batches(product)
        if block is None:
            return False
        a, b, k = block
        ways = [(s, r) for s, r in (((a, k), b), ((b, k), a)) if s in left]
        fit = next(((s, r) for s, r in ways if left[s] >= batch * r), None)
        if fit is None:
            return False
        left[fit[0]] -= batch * fit[1]
    return not any(left.values())


def _recurrent_layer(op: Op, products: Sequence[Product]) -> bool:
    """oneDNN's descriptor of one direction of one layer, forward, or as the gradients of activations or weights."""
    data, weight, recurrent = shapes_of(op)[:3]
    prefix = BOTH_GRADIENTS if op.op.endswith("_backward") else "rnn:forward"
    if len(products) != 1 or not products[0].routine.startswith(prefix):
        return False
    sizes = products[0].sizes
    asked = (sizes["t"] * sizes["mb"], sizes["slc"], sizes["sic"], sizes["l"] * sizes["directions"])
    return asked == (prod(data[:-1]), weight[-1], recurrent[-1], 1) and weight[0] % sizes["dhc"] == 0


def _attention(op: Op, products: Sequence[Product]) -> bool:
    """All queries by all keys, in blocks."""
    heads, asked, held = attention_sizes(op)
    return attended_pairs(op) == heads * asked * held


def attended_pairs(op: Op) -> int | None:
    """Pairs of query and key in the blocks that were multiplied in the call; None if the call ran other products."""
    whole = tiled_pairs(op, [Product(*written) for written in op.attrs.get(PRODUCTS, ())])
    return None if whole is None else whole[0]


def skips_masked(op: Op, products: Sequence[Product]) -> bool:
    """Whether a causal kernel multiplied all pairs that its mask keeps, and left out blocks that it discards whole."""
    if op.op not in ATTENTION or not op.attrs.get("is_causal") or not all(p.sizes for p in products):
        return False
    heads, asked, held = attention_sizes(op)
    kept = heads * (asked * held - count_discarded(asked, held))
    return kept <= (attended_pairs(op) or 0) < heads * asked * held


ATTENTION = (
    "aten.scaled_dot_product_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu",
    *GRADIENTS_OF_ATTENTION,
)

PACKED_LINEAR = (
    "quantized.linear",
    "quantized.linear_relu",
    "quantized.linear_dynamic",
    "quantized.linear_relu_dynamic",
)
PACKED_CONVOLUTION = tuple(f"quantized.conv{n}d{after}" for n in (1, 2, 3) for after in ("", "_relu", "_dynamic"))

CHECKS: dict[str, Agrees] = {
    "aten._int_mm": _matrix_product_rule(0),
    **dict.fromkeys(PACKED_LINEAR, _packed_linear),
    **dict.fromkeys(PACKED_CONVOLUTION, _packed_convolution),
    "aten.mm": _matrix_product_rule(0),
    "aten.mv": _matrix_product_rule(0),
    "aten.dot": _matrix_product_rule(0),
    "aten.bmm": _matrix_product_rule(0),
    "aten.addmm": _matrix_product_rule(1),
    "aten.addmv": _matrix_product_rule(1),
    "aten.baddbmm": _matrix_product_rule(1),
    "aten.convolution": _convolution,
    "aten._convolution": _convolution,
    "aten.convolution_backward": _convolution_gradient,
    "aten.mkldnn_rnn_layer": _recurrent_layer,
    "aten.mkldnn_rnn_layer_backward": _recurrent_layer,
    "aten.lstm": _recurrent,
    "aten.gru": _recurrent,
    "aten.rnn_tanh": _recurrent,
    "aten.rnn_relu": _recurrent,
    **dict.fromkeys(ATTENTION, _attention),
}
