"""torch_flops' formulas by hand: E is torch_flops/flops_ops.py of 0.4.1."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.core.causes import Cause
from reconcile.work import Work
from tests.adapters.counters.cases import Case, case_of, op, product

RELEASES = ("0.4.1",)
X, N = (2, 6, 5, 4), 240
T = "tensor"

ZEROS = {
    "module": "Identity Dropout Flatten type_as",
    "function": "getattr getitem concat _assert cat pad floordiv flip",
    "method": "reshape permute unbind transpose repeat unsqueeze expand flatten view cuda flip type_as size clone new_empty "
    "normal_ pow",
}
"""E:393, E:426, E:449."""


case = case_of(RELEASES, args=[], named={})
"""``args`` are the positional arguments, ``named`` the others, as a rule reads them."""


def products() -> Iterator[Case]:
    linear = [(4, 2, 3)], [(4, 2, 5)]
    yield case(*product(3, 4 * 2 * 5, 1), "module.Linear", *linear, bias=[5])
    yield case(*product(3, 4 * 2 * 5), "module.Linear", *linear, bias=None)
    given = [(4, 2, 3), (5, 3), (5,)], [(4, 2, 5)]
    yield case(*product(3, 4 * 2 * 5, 1), "function.linear", *given, args=[T, T, T])
    yield case(*product(3, 4 * 2 * 5, 1), "function.linear", *given, args=[T, T], named={"bias": T})
    yield case(*product(3, 4 * 2 * 5), "function.linear", *given, args=[T, T, None])
    yield case(*product(3, 2 * 5), "function.matmul", [(2, 3), (3, 5)], [(2, 5)])
    yield case(*product(3, 1), "function.matmul", [(3,), (3,)], [()])
    yield case(*product(3, 7 * 2 * 5), "function.matmul", [(2, 3), (7, 3, 5)], [(7, 2, 5)])
    # 2 groups: each of 2 x 8 x (3 x 3) outputs takes 3 channels x (3 x 2), or x 3 where there is one axis.
    grouped = {"in_channels": 6, "groups": 2}
    for name, kernel, out in (
        ("1d", (3,), (2, 8, 3)),
        ("2d", (3, 2), (2, 8, 3, 3)),
        ("3d", (3, 2, 1), (2, 8, 3, 3, 1)),
    ):
        terms, elements, size = 3, 1, list(kernel)
        for one in kernel:
            terms *= one
        for one in out:
            elements *= one
        yield case(
            *product(terms, elements, 1), f"module.Conv{name}", [X], [out], kernel_size=size, bias=[8], **grouped
        )
        yield case(*product(terms, elements), f"module.Conv{name}", [X], [out], kernel_size=size, bias=None, **grouped)
        function, weight = f"function.conv{name}", (8, 3, *kernel)
        # A bias by its name is counted; one by its place is not, and neither are groups: 2 K - 1.
        named = {"bias": T, "groups": 2}
        yield case(*product(terms, elements, 1), function, [X, weight, (8,)], [out], args=[T, T], named=named)
        yield case(*product(terms, elements), function, [X, weight, (8,)], [out], args=[T, T, T, 1, 0, 1, 2])
        # Without a bias it takes one addition off for each group, though an output has one sum: 2 K - 2.
        work = Work(mac=terms * elements, accumulators=2 * elements)
        yield case(work, (2 * terms - 2) * elements, function, [X, weight], [out], args=[T, T], named={"groups": 2})


def attention() -> Iterator[Case]:
    shapes, out = [(2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6)], (2, 3, 4, 6)
    rows, scores, results = 2 * 3 * 4, 2 * 3 * 4 * 7, 2 * 3 * 4 * 6
    total = (2 * 5 - 1) * scores + scores + (3 * scores - rows) + (2 * 7 - 1) * results
    name, plain = "function.scaled_dot_product_attention", {"accumulators": scores + results, "special": scores}
    work = Work(mac=5 * scores + 7 * results, mul=scores, add=scores - rows, div=scores, **plain)
    yield case(work, total, name, shapes, [out], args=[T, T, T])
    more = work + Work(mul=scores, add=scores)
    yield case(more, total + 2 * scores, name, [*shapes, (4, 7)], [out], args=[T, T, T, T, 0.5])
    causal = {"is_causal": True, "dropout_p": 0.0}
    yield case(work + Work(add=scores), total + scores, name, shapes, [out], args=[T, T, T], named=causal)


def elementwise() -> Iterator[Case]:
    yield case(Work(cmp=N), N, "module.ReLU", [X], [X])
    yield case(Work(special=N), N, "module.GELU", [X], [X])
    for name in ("module.LeakyReLU", "function.leaky_relu"):
        yield case(Work(mul=4 * N), 4 * N, name, [X], [X])
    for name, kind in (("mul", "mul"), ("truediv", "div"), ("add", "add"), ("sub", "add"), ("eq", "cmp")):
        yield case(Work(**{kind: N}), N, f"function.{name}", [X, X], [X])
        yield case(Work(**{kind: 1}), 1, f"function.{name}", [(), ()], [])  # of two numbers
    yield case(Work(special=N), N, "method.exp", [X], [X])
    yield case(Work(div=N), N, "method.div", [X], [X])
    norms = [f"{kind}Norm{axes}d" for kind in ("Batch", "Instance") for axes in (1, 2, 3)]
    for name in ("LayerNorm", "GroupNorm", *norms):
        # It asks whether a pair is true, which any pair is (E:182): a norm without weights counts them, too.
        yield case(Work(add=2 * N, mul=N, div=N), 4 * N, f"module.{name}", [X], [X], elementwise_affine=False)
    for dim, width in ((1, 6), (-1, 4)):
        work, total = Work(special=N, add=N // width * (width - 1), div=N), 3 * N - N // width
        yield case(work, total, "method.softmax", [X], [X], args=[T, dim])
        yield case(work, total, "method.softmax", [X], [X], args=[T], named={"dim": dim})


def pools() -> Iterator[Case]:
    for axes in (1, 2, 3):
        out, elements = (2, 6, 2, 2), 48
        for kernel, window in (([3, 2], 6), (3, 3)):  # one number is taken for the whole window (E:38)
            average, most = Work(add=(window - 1) * elements, div=elements), Work(cmp=(window - 1) * elements)
            yield case(average, window * elements, f"module.AvgPool{axes}d", [X], [out], kernel_size=kernel)
            yield case(most, (window - 1) * elements, f"module.MaxPool{axes}d", [X], [out], kernel_size=kernel)
        # Of 5 elements to 2 there is a rest of 1, and of 4 to 2 none: (1 + 1) x 2 (E:44).
        average, most = Work(add=3 * elements, div=elements), Work(cmp=3 * elements)
        yield case(average, 4 * elements, f"module.AdaptiveAvgPool{axes}d", [X], [out])
        yield case(most, 3 * elements, f"module.AdaptiveMaxPool{axes}d", [X], [out])


def others() -> Iterator[Case]:
    yield case(Work(add=N - 1), N - 1, "method.sum", [X], [()])
    # Of (2, 6, 5, 4) to (2, 6): it takes 5 x 4 sums of 2 x 6 terms for what is 2 x 6 sums of 5 x 4 (E:368).
    yield case(Work(add=5 * 4 * (2 * 6 - 1)), 5 * 4 * (2 * 6 - 1), "method.sum", [X], [(2, 6)])
    yield case(Work(add=5 * (4 - 1)), 5 * (4 - 1), "method.sum", [(1, 5, 4)], [(1, 1, 4)])
    name, out = "function.interpolate", (2, 6, 10, 8)
    yield case(Work(mul=80), 10 * 8, name, [X], [out], args=[T, [10, 8]])  # of one channel of one example
    yield case(Work(mul=10), 10, name, [X], [out], args=[T], named={"size": 10})
    # Twice for each of the 2 examples, which it takes for the axes (E:309); of a tuple, the product.
    yield case(Work(mul=4 * N), 2**2 * N, name, [X], [out], args=[T, None, 2])
    yield case(Work(mul=6 * N), 2 * 3 * N, name, [X], [out], args=[T], named={"scale_factor": [2, 3]})
    of_float = op(name, [X], [out], args=[T], named={"scale_factor": 2.0})
    yield Case(of_float, RELEASES, missed=Cause.OP_NOT_COUNTED)
    for kind, names in ZEROS.items():
        for each in names.split():
            yield Case(op(f"{kind}.{each}", [X], [X]), RELEASES, missed=Cause.OP_NOT_COUNTED)
    for each in ("module.GRU", "function.einsum", "method.matmul", "module.ConvTranspose2d", "function.softmax"):
        yield Case(op(each, [X], [X]), RELEASES)  # in none of its tables


CASES = (*products(), *attention(), *elementwise(), *pools(), *others())
FAMILIES = {"torch_flops": (RELEASES, CASES)}
