"""Sizes of TensorFlow's matrix products and einsums, as ((M, N, K), times), in each way that oneDNN may compute them."""

from __future__ import annotations

from math import prod

from ....core.records import Op
from ..cpu_libraries.gradient_lines import result_of, shapes_of

Matrices = tuple[int, int, int]
"""M, N, K of (M, K) x (K, N)."""
Ways = list[tuple[Matrices, int]]


def matrices_of_product(op: Op) -> Ways:
    """MatMul and batches of it: (*, M, K) x (*, K, N), either of which may be transposed or broadcast.

    A matrix on the right that is shared by the batch may be multiplied once, by all rows.
    """
    left, right = shapes_of(op)[:2]
    out = result_of(op)
    turned = op.attrs.get("transpose_a") or op.attrs.get("adj_x")
    k = left[-2] if turned else left[-1]
    m, n, batch = out[-2], out[-1], prod(out[:-2])
    ways: Ways = [((m, n, k), batch)]
    if prod(right[:-2]) == 1 and not turned:
        ways.append(((m * batch, n, k), 1))
    return ways


def contraction_sizes(op: Op) -> Ways:
    """An einsum of two operands: M are the labels of the left alone, N those of the right alone, K those that vanish."""
    equation = str(op.attrs.get("equation", "")).replace(" ", "")
    terms, _, result = equation.partition("->")
    names, shapes = terms.split(","), shapes_of(op)
    if len(names) != 2 or len(shapes) != 2:
        return []
    sizes: dict[str, int] = {}
    labels = []
    for name, shape in zip(names, shapes, strict=True):
        spelled = _spell_labels(name, len(shape))
        if len(spelled) != len(shape):
            return []
        labels.append(set(spelled))
        for label, size in zip(spelled, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    kept = set(result.replace("...", "")) | {label for label in sizes if label.isdigit()}
    left, right = labels
    m, n = _size(sizes, (left - right) & kept), _size(sizes, (right - left) & kept)
    k, batch = _size(sizes, (left & right) - kept), _size(sizes, left & right & kept)
    return [((m, n, k), batch)]


def _spell_labels(name: str, rank: int) -> list[str]:
    """The labels of an operand; those that an ellipsis stands for are digits, counted from the right."""
    before, dots, after = name.partition("...")
    hidden = rank - len(before) - len(after) if dots else 0
    return [*before, *(str(i) for i in range(hidden, 0, -1)), *after]


def _size(sizes: dict[str, int], labels: set[str]) -> int:
    return prod(sizes[label] for label in labels)
