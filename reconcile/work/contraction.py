"""The work of contractions, from sizes alone: batches of dot products, dense layers, the alpha and beta of addmm, and einsum.

One multiply-accumulate (MAC) is a multiply and an add into an accumulator that starts at 0; each output element of a
contraction over K >= 1 terms has one accumulator. An empty contraction (K = 0) costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.work import UnknownWork, Work, prod


def dots(count: int, k: int) -> Work:
    """``count`` dot products of ``k`` terms each."""
    return Work(mac=count * k, accumulators=count if k else 0)


def dense(rows: int, k: int, features: int, bias: bool) -> Work:
    """(rows, k) @ (k, features) [+ (features,)]: the bias is one add per output element."""
    return dots(rows * features, k) + Work(add=rows * features if bias else 0)


def scale_product(outputs: int, beta: float, alpha: float) -> Work:
    """beta * self + alpha * product, for the addmm family: the work after the product.

    beta 0: self is not read; beta or alpha other than 1: one multiply per output element.
    Source: ATen native/LinearAlgebra.cpp (addmm_impl_cpu_), BLAS gemm.
    """
    return Work(add=outputs if beta != 0 else 0, mul=outputs * ((beta not in (0, 1)) + (alpha != 1)))


def einsum(equation: str, shapes: list[tuple[int, ...]], *, path: Sequence[int] | None = None) -> Work:
    """Work of an einsum, any ellipsis.

    - A label that is in only one operand and not in the output is summed first: numel(before) - numel(after) adds.
    - Two operands with a shared summed label: a contraction, product of all remaining label sizes in MACs, one
      accumulator per output element. No shared summed label: one multiply per output element.
    - One operand: the sum alone. A size 1 against another size broadcasts (the label counts as absent there).
    - ``path`` is PyTorch's: the positions of the two operands of each step, empty for the first two. It
      contracts more than two operands in pairs and keeps the labels that the others need; a shared label of size 1 is no
      sum in it.

    Source: the decomposition of ATen native/Linear.cpp (einsum, sumproduct_pair) and TensorFlow's einsum_op_impl.h,
    which both reduce lone labels first and then run one batched matrix product. Both first take the diagonal of an operand
    in which a label is repeated, which is a view or a copy.
    Raises UnknownWork for three or more operands without a path: the order of contraction decides the work.
    """
    if len(shapes) > 2 and path is None:
        raise UnknownWork(f"einsum {equation!r} has {len(shapes)} operands: the order of contraction is not recorded")
    terms, output = _parse(equation, [len(s) for s in shapes])
    terms, shapes = _take_diagonals(terms, shapes, equation)
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1)) if 0 not in (size, sizes.get(label, 1)) else 0
    operands = [
        [label for label, size in zip(term, shape, strict=True) if size == sizes[label]]
        for term, shape in zip(terms, shapes, strict=True)
    ]
    if len(terms) == 1:
        return Work(add=max(_numel(operands[0], sizes) - _numel(output, sizes), 0))
    work, steps = Work(), list(path or ())
    while len(operands) > 1:
        first, second = sorted((steps.pop(0), steps.pop(0))) if path else (0, 1)
        pair = (operands[first], operands.pop(second))
        operands.pop(first)
        needed = {*output, *(label for labels in operands for label in labels)}
        result = [label for label in sizes if label in needed and (label in pair[0] or label in pair[1])]
        work += _contract_pair(pair, result, sizes, units=path is None)
        operands.insert(len(operands) if path else 0, result)
    return work


def _take_diagonals(
    terms: list[list[str]], shapes: list[tuple[int, ...]], equation: str
) -> tuple[list[list[str]], list[tuple[int, ...]]]:
    """Labels and shapes of the operands' diagonals: each label once in an operand."""
    once = [dict(zip(term, shape, strict=True)) for term, shape in zip(terms, shapes, strict=True)]
    for term, shape, sizes in zip(terms, shapes, once, strict=True):
        if any(sizes[label] != size for label, size in zip(term, shape, strict=True)):
            raise UnknownWork(f"einsum {equation!r} repeats a label for two sizes within one operand")
    return [list(sizes) for sizes in once], [tuple(sizes.values()) for sizes in once]


def _contract_pair(pair: tuple[list[str], list[str]], result: list[str], sizes: dict[str, int], units: bool) -> Work:
    """The work of two operands, contracted to ``result``; ``units``: whether a shared label of size 1 makes a contraction."""
    work = Work()
    for own, other in (pair, pair[::-1]):
        stay = [label for label in own if label in result or label in other]
        work += Work(add=max(_numel(own, sizes) - _numel(stay, sizes), 0))
    summed = [label for label in pair[0] if label in pair[1] and label not in result and (units or sizes[label] != 1)]
    total = _numel(result, sizes)
    return work + (dots(total, _numel(summed, sizes)) if summed else Work(mul=total))


def _numel(labels: list[str], sizes: dict[str, int]) -> int:
    return prod([sizes[label] for label in labels])


def _parse(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Operand labels and output labels; ellipsis dimensions get labels '0', '1', ... counted from the right."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise UnknownWork(f"einsum {equation!r} has {len(texts)} terms for {len(ranks)} operands")
    terms = [_labels(text, rank, equation) for text, rank in zip(texts, ranks, strict=True)]
    dots_wide = max((sum(label.isdigit() for label in term) for term in terms), default=0)
    dot_labels = [str(i) for i in reversed(range(dots_wide))]
    if arrow:
        output = _labels(right, None, equation, dot_labels)
    else:
        letters = [label for term in terms for label in term if not label.isdigit()]
        output = dot_labels + sorted(label for label in set(letters) if letters.count(label) == 1)
    if len(set(output)) != len(output):
        raise UnknownWork(f"einsum {equation!r} repeats a label of its output")
    if not set(output) <= {label for term in terms for label in term}:
        raise UnknownWork(f"einsum {equation!r} names an output label that no operand has")
    return terms, output


def _labels(text: str, rank: int | None, equation: str, dot_labels: list[str] | None = None) -> list[str]:
    before, dots_, after = text.partition("...")
    if dots_ and dot_labels is None:
        wide = (rank or 0) - len(before) - len(after)
        dot_labels = [str(i) for i in reversed(range(wide))]
    middle = (dot_labels or []) if dots_ else []
    labels = [*before, *middle, *after]
    if not (before + after).isalpha() and before + after:
        raise UnknownWork(f"einsum {equation!r} cannot be read")
    if rank is not None and len(labels) != rank:
        raise UnknownWork(f"einsum {equation!r}: term {text!r} does not fit an operand of rank {rank}")
    return labels
