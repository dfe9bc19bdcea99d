"""Matrix products that convolutions and attention consist of in the logs of MKL and oneDNN, forward and backward, and the log
lines that belong to each gradient of a call, by their sizes and by the pass that oneDNN names.

A call that computes several gradients has a record for each (``part``), and each record has all lines of the call. A line belongs
to one part: one that no size assigns goes to the first, where it is a residual. Lines without sizes count nothing and stay with
every part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ....core.records import Op
from .log_lines import BOTH_GRADIENTS, BY_ROWS, Product

Block = tuple[int, int, int]
"""M, N and K of a product as BLAS has them: column by column, so that rows are N."""
Matrices = tuple[tuple[int, int], int]
"""M and N in order of size, and K."""
Lines = list[Product]

RECURRENT = "aten.mkldnn_rnn_layer_backward"
CONVOLUTION = "aten.convolution_backward"
KERNEL = "aten._scaled_dot_product_flash_attention_for_cpu_backward"
ATTENTION = (KERNEL, "aten.scaled_dot_product_attention_backward")


def shapes_of(op: Op) -> list[tuple[int, ...]]:
    """The shapes of the tensors that went in."""
    return [tuple(d or 0 for d in t.shape or ()) for t in op.inputs]


def result_of(op: Op) -> tuple[int, ...]:
    """The shape of the first tensor that came out."""
    return tuple(d or 0 for d in op.outputs[0].shape or ())


def block_of(product: Product) -> Block | None:
    """M, N, K of a product of matrices; None of anything else. oneDNN writes them row by row."""
    sizes = product.sizes
    if not {"m", "n", "k"} <= set(sizes):
        return None
    rows = product.routine in BY_ROWS
    return (sizes["n"], sizes["m"], sizes["k"]) if rows else (sizes["m"], sizes["n"], sizes["k"])


def in_order(a: int, b: int) -> tuple[int, int]:
    """Both, the smaller one first."""
    return (a, b) if a < b else (b, a)


def matrices(product: Product) -> Matrices | None:
    """M and N in order of size, and K, of a product of matrices; None of anything else."""
    block = block_of(product)
    return None if block is None else (in_order(block[0], block[1]), block[2])


def batches(product: Product) -> int:
    """How many products of these sizes the line is about."""
    return product.sizes.get("b", 1)


def count_blocks(products: Sequence[Product]) -> Counter[Block] | None:
    """How often each block was multiplied; None if a product is none."""
    blocks: Counter[Block] = Counter()
    for product in products:
        block = block_of(product)
        if block is None:
            return None
        blocks[block] += batches(product)
    return blocks


def lines_of_part(op: Op, lines: Lines) -> Lines:
    """Those of a call's lines that belong to this op, which is the whole call or a part of it."""
    part = op.attrs.get("part")
    if part is None or not lines:
        return lines
    unsized = [line for line in lines if not line.sizes]
    sized = [line for line in lines if line.sizes]
    first: Any
    if op.op == CONVOLUTION:
        parts, first = _of_convolution(op, sized), list(op.attrs["output_mask"]).index(True)
    elif op.op == RECURRENT:
        parts, first = _of_recurrent(sized), "activations"
    elif op.op in ATTENTION:
        parts, first = _of_attention(op, sized)
    else:
        return lines
    taken = [line for found in parts.values() for line in found]
    rest = _without(sized, taken)
    return [*parts.get(part, []), *(rest if part == first else []), *unsized]


def _without(lines: Lines, taken: Lines) -> Lines:
    """The lines that are in no share; one that is two gradients at once is in two."""
    left = Counter(map(repr, taken))
    rest = []
    for line in lines:
        if left[repr(line)]:
            left[repr(line)] -= 1
        elif line.routine != BOTH_GRADIENTS:
            rest.append(line)
    return rest


# Convolutions: the gradients of data (part 0), weight (1) and bias (2).


def unfolded_matrices(op: Op, given: Sequence[int], weight: Sequence[int], out: Sequence[int]) -> dict[str, Matrices]:
    """The matrices by which a convolution is made of unfolded patches (im2col), for one sample and group: M and N in either
    order, and K, of its result and of the gradients of data and weight. ``out`` is the shape of its result."""
    groups, transposed = int(op.attrs["groups"]), bool(op.attrs["transposed"])
    narrow = given if transposed else out  # the side on which each position meets each tap once
    channels, filters = (weight[0], weight[1] * groups) if transposed else (weight[1] * groups, weight[0])
    taps, places = prod(weight[2:]), prod(narrow[2:])
    wide, thin = (filters, channels) if transposed else (channels, filters)
    patch, point = wide // groups * taps, thin // groups
    to_patch, to_point = (in_order(places, patch), point), (in_order(places, point), patch)
    forward, data = (to_patch, to_point) if transposed else (to_point, to_patch)
    bias = in_order(prod(out[2:]), filters // groups), 1  # some kernels add it as a product with ones
    return {"forward": forward, "data": data, "weight": (in_order(patch, point), places), "bias": bias}


def _of_convolution(op: Op, lines: Lines) -> dict[Any, Lines]:
    out, given, weight = shapes_of(op)[:3]
    wanted = unfolded_matrices(op, given, weight, out)
    each = given[0] * int(op.attrs["groups"])
    mask = op.attrs["output_mask"]
    left = {0: each if mask[0] else 0, 1: each if mask[1] else 0}
    parts: dict[Any, Lines] = {0: [], 1: []}
    for line in lines:
        of = matrices(line)
        if line.routine.endswith((":backward_data", ":backward_weights")):
            parts[0 if line.routine.endswith("data") else 1].append(line)
        elif of is not None:
            fits = [p for p, name in ((0, "data"), (1, "weight")) if of == wanted[name] and left[p] >= batches(line)]
            if fits:
                parts[fits[0]].append(line)
                left[fits[0]] -= batches(line)
    return {p: found for p, found in parts.items() if mask[p]}


# Recurrent layers: one line is both gradients.


def _of_recurrent(lines: Lines) -> dict[Any, Lines]:
    both = [line for line in lines if line.routine == BOTH_GRADIENTS]
    return {
        "activations": [line._replace(routine=BOTH_GRADIENTS + "_data") for line in both],
        "weights": [line._replace(routine=BOTH_GRADIENTS + "_weights") for line in both],
    }


# Attention: scores and their gradient, and the gradients of value, query and key, in blocks of keys and queries.

Kind = Callable[[int, int], Block]
"""The product of a block, given its keys and its queries."""
AGAIN = "again"
"""The part of a kernel's gradient that recomputes the scores: no record of the trace is about it."""


def kinds_of(op: Op) -> dict[str, Kind]:
    """The products of a block of keys by queries, by part: ``scores`` and their product with the values, or the gradients.

    A kernel keeps no scores: its gradients multiply queries and keys AGAIN.
    """
    query, _, value = _heads(op)
    width, wide = query[-1], value[-1]
    scores: Kind = lambda keys, queries: (keys, queries, width)  # noqa: E731
    if not op.op.endswith("_backward"):
        return {AGAIN: scores, "": lambda keys, queries: (wide, queries, keys)}
    parts: dict[str, Kind] = {
        "scores": lambda keys, queries: (keys, queries, wide),
        "value": lambda keys, queries: (wide, keys, queries),
        "query": lambda keys, queries: (width, queries, keys),
        "key": lambda keys, queries: (width, keys, queries),
    }
    if "needs" not in op.attrs:
        return {AGAIN: scores, **parts}
    needs = dict(zip(("query", "key", "value"), op.attrs["needs"], strict=False))  # made one by one, as they are needed
    needs["scores"] = any(need for name, need in needs.items() if name != "value")
    return {name: kind for name, kind in parts.items() if needs[name]}


def _heads(op: Op) -> list[tuple[int, ...]]:
    """Shapes of query, key and value: a kernel's gradients have the one that arrives before them."""
    at = 1 if op.op.endswith("_backward") and "needs" not in op.attrs else 0
    return shapes_of(op)[at : at + 3]


def attention_sizes(op: Op) -> tuple[int, int, int]:
    """Three numbers of an attention: the heads of all samples together, the queries and the keys of one."""
    query, key, _ = _heads(op)
    return prod(query[:-2]), query[-2], key[-2]


def tiled_pairs(op: Op, lines: Sequence[Product]) -> tuple[int, dict[str, Counter[Block]]] | None:
    """Pairs of query and key in the blocks that were multiplied, and the products of each part; None if others stand there.

    A block of scores has K = the head's width, M keys and N queries. Threads write in any order, so blocks are put together by
    their sizes. Of shorter types a kernel may make those gradients that are not of the scores itself, without a line.
    """
    left = count_blocks(lines)
    if left is None:
        return None
    kinds = kinds_of(op)
    if op.op == KERNEL:
        scores = {part: kind for part, kind in kinds.items() if part in (AGAIN, "scores")}
        return _tiled_pairs_of_kinds(op, kinds, left) or _tiled_pairs_of_kinds(op, scores, left)
    return _tiled_pairs_of_kinds(op, kinds, left) or _whole(op, kinds, left)


def _tiled_pairs_of_kinds(
    op: Op, kinds: dict[str, Kind], lines: Counter[Block]
) -> tuple[int, dict[str, Counter[Block]]] | None:
    _, asked, held = attention_sizes(op)
    left, area, wide = lines.copy(), 0, _heads(op)[2][-1]
    found: dict[str, Counter[Block]] = {part: Counter() for part in kinds}
    scores = next(iter(kinds.values()))
    for block in sorted(left, key=lambda sizes: sizes[0] == wide):  # what may be either comes last
        keys, queries, _ = block
        while left[block] and block == scores(keys, queries) and keys <= held and queries <= asked:
            for part, kind in kinds.items():
                found[part][kind(keys, queries)] += 1
                left[kind(keys, queries)] -= 1
            if min(left.values()) < 0:
                return None
            area += keys * queries
    return None if any(left.values()) else (area, found)


def _whole(op: Op, kinds: dict[str, Kind], lines: Counter[Block]) -> tuple[int, dict[str, Counter[Block]]] | None:
    """The same of products that are made one by one, of all heads: each may be transposed, and a small one has no line."""
    heads, asked, held = attention_sizes(op)
    left = lines.copy()
    found: dict[str, Counter[Block]] = {part: Counter() for part in kinds}
    for part, kind in kinds.items():
        m, n, k = kind(held, asked)
        for block in dict.fromkeys(((m, n, k), (n, m, k))):
            taken = min(left[block], heads - found[part].total())
            found[part][block] += taken
            left[block] -= taken
    return None if any(left.values()) else (heads * asked * held, found)


def _of_attention(op: Op, lines: Lines) -> tuple[dict[Any, Lines], str]:
    parts: dict[Any, Lines] = {part: [] for part in kinds_of(op)}
    first = next((part for part in parts if part != AGAIN), "")
    found = tiled_pairs(op, lines)
    if found is None:
        return parts, first
    left = found[1]
    for line in lines:
        block, times = block_of(line), batches(line)
        fits = [part for part in left if block is not None and left[part][block] >= times]
        if block is not None and fits:
            parts[fits[0]].append(line)
            left[fits[0]][block] -= times
    return parts, first
