"""torchprofile's handlers by hand: H is torchprofile/handlers.py of 0.1.0."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.core.records import Op, Tensor
from reconcile.work import Work
from tests.adapters.counters.cases import Case, case_of, op

RELEASES = ("0.1.0",)
X, N = (2, 6, 5, 4), 240
PLAIN = {"weight": None}
case = case_of(RELEASES, "aten.")


def products() -> Iterator[Case]:
    def macs(count: int, name: str, inputs, outputs, **attrs) -> Case:
        return case(Work(mac=count), count, name, inputs, outputs, **attrs)

    yield macs(2 * 3 * 5, "addmm", [(5,), (2, 3), (3, 5)], [(2, 5)])
    yield macs(2 * 3, "addmv", [(2,), (2, 3), (3,)], [(2,)])
    yield macs(4 * 2 * 3 * 5, "bmm", [(4, 2, 3), (4, 3, 5)], [(4, 2, 5)])
    yield macs(4 * 2 * 3 * 5, "baddbmm", [(4, 2, 5), (4, 2, 3), (4, 3, 5)], [(4, 2, 5)])
    yield macs(4 * 2 * 3 * 5, "linear", [(4, 2, 3), (5, 3), (5,)], [(4, 2, 5)])
    yield macs(2 * 3 * 5, "linear", [(2, 3), (5, 3), (5,)], [(2, 5)])
    yield macs(3, "matmul", [(3,), (3,)], [()])
    yield macs(3 * 5, "matmul", [(3,), (3, 5)], [(5,)])
    yield macs(2 * 3, "matmul", [(2, 3), (3,)], [(2,)])
    yield macs(2 * 3 * 5, "matmul", [(2, 3), (3, 5)], [(2, 5)])
    yield macs(7 * 3 * 5, "matmul", [(3,), (7, 3, 5)], [(7, 5)])
    yield macs(7 * 2 * 3 * 5, "matmul", [(2, 3), (7, 3, 5)], [(7, 2, 5)])
    yield Case(op("aten.mm", [(2, 3), (3, 5)], [(2, 5)]), RELEASES)  # not in its table
    # 2 groups: each of 2 x 8 x (3 x 3) outputs takes 3 channels x (3 x 2).
    yield macs(2 * 8 * 3 * 3 * (3 * 3 * 2), "_convolution", [X, (8, 3, 3, 2)], [(2, 8, 3, 3)], transposed=False)
    # Transposed, weight (6, 4, ...): each of 2 x 4 x (7 x 5) outputs takes 6 channels x (3 x 2), at any stride.
    yield macs(2 * 4 * 7 * 5 * (6 * 3 * 2), "_convolution", [X, (6, 4, 3, 2)], [(2, 4, 7, 5)], transposed=True)
    # Transposed from 6 channels to 6 in 2 groups: the weight looks as if it were a convolution's (H:80).
    yield macs(2 * 6 * 7 * 5 * (3 * 3 * 2), "_convolution", [X, (6, 3, 3, 2)], [(2, 6, 7, 5)], transposed=True)
    yield macs(2 * 3 * 4 * 5, "einsum", [(2, 3, 4), (2, 3, 5)], [(2, 4, 5)], equation="bij, bik->bjk")
    yield case(Work(), 0, "einsum", [(2, 3, 4), (4, 5)], [(2, 3, 5)], equation="...ij,jk->...ik")
    shapes = [(2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6)]
    yield macs(2 * 3 * 4 * 7 * (5 + 6), "scaled_dot_product_attention", shapes, [(2, 3, 4, 6)], is_causal=True)
    # Two layers both ways, 7 steps of a batch of 2: 4 gates of 5, fed 3 and then 2 x 5.
    out = tuple(Tensor(shape, "float32") for shape in ((7, 2, 10), (4, 2, 5), (4, 2, 5)))
    lstm = Op("lstm", "aten.lstm", "", (Tensor((7, 2, 3), "float32"),), out, {})
    total = 7 * 2 * 2 * (4 * 5 * (3 + 5) + 4 * 5 * (10 + 5))
    yield Case(lstm, RELEASES, total, Work(mac=total))


def elementwise() -> Iterator[Case]:
    pooled = (2, 6, 1, 1)
    yield case(Work(mul=N), N, "mul", [X, X], [X])
    yield case(Work(mul=N), N, "leaky_relu", [X], [X])
    yield case(Work(mul=16 * N), 4 * 4 * N, "upsample_bilinear2d", [X], [(2, 6, 10, 8)])
    for name in ("mean", *(f"{kind}avg_pool{axes}d" for kind in ("", "adaptive_") for axes in (1, 2, 3))):
        yield case(Work(add=2 * 6), 2 * 6, name, [X], [pooled])
    for name in ("batch_norm", "instance_norm", "layer_norm", "group_norm"):
        yield case(Work(mul=N), N, name, [X], [X])
        yield case(Work(), 0, name, [X], [X], **PLAIN)
    for mode, taps in ((0, 4), (1, 0), (2, 16)):
        inputs, out = [X, (2, 10, 8, 2)], (2, 6, 10, 8)
        yield case(Work(mul=taps * 4 * N), taps * 4 * N, "grid_sampler", inputs, [out], interpolation_mode=mode)


CASES = (*products(), *elementwise())
FAMILIES = {"torchprofile": (RELEASES, CASES)}
