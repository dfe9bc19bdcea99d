"""Dot products: all forms of matrix multiplication, and einsum.

One multiply-accumulate (MAC) is a multiply and an add into an accumulator that starts at 0; each output element of a
contraction over K >= 1 terms has one accumulator. A contraction over nothing (K = 0) does nothing.
"""

from __future__ import annotations

from ..core.work import UnknownWork, Work, prod


def dots(count: int, k: int) -> Work:
    """``count`` dot products of ``k`` terms each."""
    return Work(mac=count * k, accumulators=count if k else 0)


def dense(rows: int, k: int, features: int, bias: bool) -> Work:
    """(rows, k) @ (k, features) [+ (features,)]: the bias is one add per output element."""
    return dots(rows * features, k) + Work(add=rows * features if bias else 0)


def scaled(outputs: int, beta: float, alpha: float) -> Work:
    """beta * self + alpha * product, for the addmm family: the work after the product.

    beta 0: self is not read; beta or alpha other than 1: one multiply per output element.
    Source: ATen native/LinearAlgebra.cpp (addmm_impl_cpu_), BLAS gemm.
    """
    return Work(
        add=outputs if beta != 0 else 0,
        mul=outputs * ((beta not in (0, 1)) + (alpha != 1)),
    )


def einsum(equation: str, shapes: list[tuple[int, ...]]) -> Work:
    """Work of an einsum of one or two operands, any ellipsis.

    - A label that is in only one operand and not in the output is summed first: numel(before) - numel(after) adds.
    - Two operands with a shared summed label: a contraction, product of all remaining label sizes in MACs, one
      accumulator per output element. No shared summed label: one multiply per output element.
    - One operand: the sum alone. A size 1 against another size broadcasts (the label counts as absent there).

    Source: the decomposition of ATen native/Linear.cpp (einsum, sumproduct_pair) and TensorFlow's einsum_op_impl.h,
    which both reduce lone labels first and then run one batched matrix product.
    Raises UnknownWork for three or more operands (the order of contraction decides the work) and for a label repeated
    within one operand (a diagonal).
    """
    if len(shapes) > 2:
        raise UnknownWork(f"einsum {equation!r} has {len(shapes)} operands: the order of contraction is not recorded")
    terms, output = _parse(equation, [len(s) for s in shapes])
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1)) if 0 not in (size, sizes.get(label, 1)) else 0
    present = [
        [label for label, size in zip(term, shape, strict=True) if size == sizes[label]]
        for term, shape in zip(terms, shapes, strict=True)
    ]
    total = prod([sizes[label] for label in output])
    if len(terms) == 1:
        return Work(add=max(prod([sizes[label] for label in present[0]]) - total, 0))
    work = Work()
    kept: list[list[str]] = []
    for own, other in (present, present[::-1]):
        stay = [label for label in own if label in output or label in other]
        before, after = (prod([sizes[label] for label in labels]) for labels in (own, stay))
        work += Work(add=max(before - after, 0))
        kept.append(stay)
    summed = [label for label in kept[0] if label in kept[1] and label not in output]
    return work + (dots(total, prod([sizes[label] for label in summed])) if summed else Work(mul=total))


def _parse(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Operand labels and output labels; ellipsis dimensions get labels '0', '1', ... counted from the right."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise UnknownWork(f"einsum {equation!r} has {len(texts)} terms for {len(ranks)} operands")
    terms = [_labels(text, rank, equation) for text, rank in zip(texts, ranks, strict=True)]
    for term in terms:
        if len(set(term)) != len(term):
            raise UnknownWork(f"einsum {equation!r} repeats a label within one operand (a diagonal)")
    dots_wide = max((sum(label.isdigit() for label in term) for term in terms), default=0)
    dot_labels = [str(i) for i in reversed(range(dots_wide))]
    if arrow:
        output = _labels(right, None, equation, dot_labels)
    else:
        letters = [label for term in terms for label in term if not label.isdigit()]
        output = dot_labels + sorted(label for label in set(letters) if letters.count(label) == 1)
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
