"""What the lines of the log say that was multiplied, and whether an op asks for just these products.

An op agrees with its lines by sizes, product by product, never by a sum alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod

from ....core.records import Op
from ....work import Work
from ....work.attention import discarded
from ..rulebook import RuleBook
from . import PRODUCTS
from .log import Product

BOOK = RuleBook("cpu_libraries", "torch", {"onednn": "src/common/verbose.cpp"})


def products_of(op: Op) -> list[Product]:
    """The products that were written while this op ran."""
    return [Product(*written) for written in op.attrs.get(PRODUCTS, ())]


@BOOK.pattern(
    "an op with lines in the log",
    lambda op: PRODUCTS in op.attrs,
    source="onednn:1",
    formula="M N K of each line that MKL or oneDNN wrote",
)
def written(op: Op) -> Work:
    """Multiply-adds of the lines."""
    return Work(mac=sum(p.macs for p in products_of(op)))


Sizes = dict[str, int]
Agrees = Callable[[Op, Sequence[Product]], bool]


def agrees(op: Op, products: Sequence[Product]) -> bool:
    """Whether these are the products of the op by their sizes; False for an op of which no rule says its products."""
    check = CHECKS.get(op.op)
    return check is not None and all(p.sizes for p in products) and check(op, products)


def _shapes(op: Op) -> list[tuple[int, ...]]:
    return [tuple(d or 0 for d in t.shape or ()) for t in op.inputs]


def _gemm(product: Product) -> tuple[int, tuple[int, int], int] | None:
    """(batches, M and N in order of size, K) of a product of matrices; None of anything else."""
    sizes = product.sizes
    if not {"m", "n", "k"} <= set(sizes):
        return None
    return sizes.get("b", 1), _pair(sizes["m"], sizes["n"]), sizes["k"]


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _matrices(first: int) -> Agrees:
    """A product of the tensors from ``first`` on: (..., M, K) and (..., K, N); of a vector N is 1."""

    def check(op: Op, products: Sequence[Product]) -> bool:
        left, right = _shapes(op)[first : first + 2]
        wide = (*right, 1) if len(right) == 1 else right
        tall = (1, *left) if len(left) == 1 else left
        found = [_gemm(p) for p in products]
        wanted = (_pair(tall[-2], wide[-1]), tall[-1])
        batches = prod(tall[:-2])
        return {g and g[1:] for g in found} == {wanted} and sum(g[0] for g in found if g) == batches

    return check


def _spread(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _convolution(op: Op, products: Sequence[Product]) -> bool:
    """By oneDNN's descriptor, or as matrices of unfolded patches (im2col), one for each sample and group."""
    given, weight = _shapes(op)[:2]
    out = tuple(d or 0 for d in op.outputs[0].shape or ())
    groups, transposed = int(op.attrs["groups"]), bool(op.attrs["transposed"])
    if products[0].routine.startswith(("convolution", "deconvolution")):
        return len(products) == 1 and _described(op, products[0], given, weight, out, groups)
    narrow = given if transposed else out  # the side on which each position meets each tap once
    channels, filters = (weight[0], weight[1] * groups) if transposed else (weight[1] * groups, weight[0])
    taps, places = prod(weight[2:]), prod(narrow[2:])
    unfolded = (_pair(places, filters // groups * taps), channels // groups)
    plain = (_pair(places, filters // groups), channels // groups * taps)
    found = [_gemm(p) for p in products]
    wanted = unfolded if transposed else plain
    return {g and g[1:] for g in found} == {wanted} and sum(g[0] for g in found if g) == given[0] * groups


def _described(
    op: Op, product: Product, given: tuple[int, ...], weight: tuple[int, ...], out: tuple[int, ...], groups: int
) -> bool:
    sizes, rank = product.sizes, len(given) - 2
    if product.routine.startswith("deconvolution") is not bool(op.attrs["transposed"]):
        return False
    axes = "dhw"[3 - rank :]
    stride, padding, dilation = (_spread(op.attrs[name], rank) for name in ("stride", "padding", "dilation"))
    wanted = {"mb": given[0], "ic": given[1], "oc": out[1]}
    for i, axis in enumerate(axes):
        wanted |= {"i" + axis: given[2 + i], "o" + axis: out[2 + i], "k" + axis: weight[2 + i]}
        wanted |= {"s" + axis: stride[i], "d" + axis: dilation[i] - 1, "p" + axis: padding[i]}
    ones = {name: size for name, size in sizes.items() if name not in wanted and name != "g"}
    rest = all(size == (0 if name[0] in "dp" else 1) for name, size in ones.items())
    return rest and sizes.get("g", 1) == groups and {name: sizes.get(name) for name in wanted} == wanted


def _recurrent(op: Op, products: Sequence[Product]) -> bool:
    """oneDNN's descriptor of one layer, or a matrix of each weight that meets every step of every sample once."""
    shapes = _shapes(op)
    steps = prod(shapes[0][:-1])
    weights = Counter(s for s in shapes[1:] if len(s) == 2)
    descriptors = [p.sizes for p in products if p.routine.startswith("rnn:")]
    if descriptors:
        # each line is one direction of one layer: its weights are (gates x dhc, slc) and (gates x dhc, sic)
        if len(descriptors) != len(products) or any(d["l"] * d["directions"] != 1 for d in descriptors):
            return False
        gates = {1, 3, 4}
        asked = Counter((d["dhc"], width) for d in descriptors for width in (d["slc"], d["sic"]))
        held = [Counter({(s[0] // g, s[1]): n for s, n in weights.items()}) for g in gates]
        return asked in held and all(d["t"] * d["mb"] == steps for d in descriptors)
    left = {shape: count * steps for shape, count in weights.items()}
    for gemm in map(_gemm, products):
        if gemm is None:
            return False
        batch, (a, b), k = gemm
        ways = [(s, r) for s, r in (((a, k), b), ((b, k), a)) if s in left]
        fit = next(((s, r) for s, r in ways if left[s] >= batch * r), None)
        if fit is None:
            return False
        left[fit[0]] -= batch * fit[1]
    return not any(left.values())


def _attention(op: Op, products: Sequence[Product]) -> bool:
    """All queries by all keys, in blocks."""
    query, key = _shapes(op)[:2]
    return attended(op, products) == prod(query[:-1]) * key[-2]


def attended(op: Op, products: Sequence[Product]) -> int | None:
    """Pairs of query and key in the blocks that were multiplied; None if other products stand there.

    A block of scores has K = the head's width, M keys and N queries; its results have M = the values' width, the same N, and
    K = those keys. Threads write in any order, so the blocks are paired by their sizes.
    """
    query, key, value = _shapes(op)[:3]
    asked, held, width, wide = query[-2], key[-2], query[-1], value[-1]
    left = Counter((p.sizes["m"], p.sizes["n"], p.sizes["k"]) for p in products if _gemm(p) and "b" not in p.sizes)
    if left.total() != len(products):
        return None
    area = 0
    for block in sorted(left, key=lambda sizes: sizes[0] == wide):  # what may be either comes last
        m, n, k = block
        while left[block] and k == width and m <= held and n <= asked:
            left[block] -= 1
            left[wide, n, m] -= 1
            if left[wide, n, m] < 0:
                return None
            area += m * n
    return None if any(left.values()) else area


def skips_masked(op: Op, products: Sequence[Product]) -> bool:
    """Whether a causal kernel multiplied all pairs that its mask keeps, and left out blocks that it discards whole."""
    if op.op not in ATTENTION or not op.attrs.get("is_causal") or not all(p.sizes for p in products):
        return False
    query, key = _shapes(op)[:2]
    asked, held, heads = query[-2], key[-2], prod(query[:-2])
    kept = heads * (asked * held - discarded(asked, held))
    return kept <= (attended(op, products) or 0) < heads * asked * held


ATTENTION = ("aten.scaled_dot_product_attention", "aten._scaled_dot_product_flash_attention_for_cpu")

CHECKS: dict[str, Agrees] = {
    "aten.mm": _matrices(0),
    "aten.mv": _matrices(0),
    "aten.dot": _matrices(0),
    "aten.bmm": _matrices(0),
    "aten.addmm": _matrices(1),
    "aten.addmv": _matrices(1),
    "aten.baddbmm": _matrices(1),
    "aten.convolution": _convolution,
    "aten._convolution": _convolution,
    "aten.lstm": _recurrent,
    "aten.gru": _recurrent,
    "aten.rnn_tanh": _recurrent,
    "aten.rnn_relu": _recurrent,
    **dict.fromkeys(ATTENTION, _attention),
}
