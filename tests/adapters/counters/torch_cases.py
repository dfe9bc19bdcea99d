"""fvcore's handles and torch.utils.flop_counter's formulas by hand: J and F are fvcore's files, T is flop_counter.py."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.core.records import LENGTHS
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

MAY21, JUN21, SEP21, DEC22 = FVCORE_RELEASES = (
    "0.1.5.post20210518",
    "0.1.5.post20210604",  # batch norms in eval mode
    "0.1.5.post20210915",  # mm
    "0.1.5.post20221221",  # transposed convolutions
)
TORCH_RELEASES = ("2.13.0", "2.14.1", "2.15.0")
BEFORE, SINCE = TORCH_RELEASES[:2], TORCH_RELEASES[2:]
"""Attention on the CPU has a formula from 2.15 on."""

X = (2, 6, 5, 4)
N = 240


def fvcore() -> Iterator[Case]:
    def case(macs: int, name: str, inputs, outputs, releases=FVCORE_RELEASES, **attrs) -> Case:
        return Case(op(f"aten.{name}", inputs, outputs, **attrs), releases, macs, Work(mac=macs))

    def each(work: Work, total: int, name: str, inputs, outputs, releases=FVCORE_RELEASES, **attrs) -> Case:
        return Case(op(f"aten.{name}", inputs, outputs, **attrs), releases, total, work)

    yield case(2 * 3 * 5, "addmm", [(5,), (2, 3), (3, 5)], [(2, 5)])
    yield case(4 * 2 * 3 * 5, "linear", [(4, 2, 3), (5, 3), (5,)], [(4, 2, 5)])
    yield case(2 * 3 * 5, "matmul", [(2, 3), (3, 5)], [(2, 5)])
    yield case(2 * 3 * 5, "mm", [(2, 3), (3, 5)], [(2, 5)], (SEP21, DEC22))
    yield Case(op("aten.mm", [(2, 3), (3, 5)], [(2, 5)]), (MAY21, JUN21))
    yield case(2 * 3 * 5, "matmul", [(2, 3), (7, 3, 5)], [(7, 2, 5)])  # J:217: seven products counted as one
    yield case(4 * 2 * 3 * 5, "bmm", [(4, 2, 3), (4, 3, 5)], [(4, 2, 5)])
    # 2 groups: 8 x 3 x 3 x 2 weights at each of 2 x (3 x 3) positions of the output; transposed, of the input.
    macs = 2 * (8 * 3 * 3 * 2) * (3 * 3)
    yield case(macs, "_convolution", [X, (8, 3, 3, 2)], [(2, 8, 3, 3)], transposed=False)
    macs = 2 * (6 * 4 * 3 * 2) * (5 * 4)
    yield case(macs, "_convolution", [X, (6, 4, 3, 2)], [(2, 4, 7, 5)], (DEC22,), transposed=True)
    # By the output until 2022: each of its 2 x 4 x (7 x 5) elements takes 4 x 3 x 2 weights, 4 being its own channels.
    macs = (2 * 4 * 7 * 5) * (4 * 3 * 2)
    yield case(macs, "_convolution", [X, (6, 4, 3, 2)], [(2, 4, 7, 5)], (MAY21, JUN21, SEP21), transposed=True)
    yield case(2 * 3 * 4 * 5, "einsum", [(2, 3, 4), (2, 3, 5)], [(2, 4, 5)], equation="bij,bik->bjk")
    yield case(2 * 3 * 4 * 5, "einsum", [(2, 3, 4), (2, 5, 4)], [(2, 5, 3)], equation="nct,npt->npc")
    # numpy prints 2 * 101 * 103 * 107 = 2,226,242 as 2.226e+06, and fvcore halves that.
    yield case(2_226_000 // 2, "einsum", [(101, 103), (103, 107)], [(101, 107)], equation="ij,jk->ik")
    weight = {"weight": None}
    yield each(Work(mul=N, add=N), 2 * N, "batch_norm", [X], [X], FVCORE_RELEASES[1:], training=False)
    yield each(Work(mul=N), N, "batch_norm", [X], [X], FVCORE_RELEASES[1:], training=False, **weight)
    yield each(Work(mul=3 * N, add=2 * N), 5 * N, "batch_norm", [X], [X], (MAY21,), training=False)
    yield each(Work(mul=3 * N, add=2 * N), 5 * N, "batch_norm", [X], [X], training=True)
    yield each(Work(mul=2 * N, add=2 * N), 4 * N, "batch_norm", [X], [X], training=True, **weight)
    for name in ("group_norm", "layer_norm", "instance_norm"):
        yield each(Work(mul=3 * N, add=2 * N), 5 * N, name, [X], [X])
        yield each(Work(mul=2 * N, add=2 * N), 4 * N, name, [X], [X], **weight)
    out = (2, 6, 10, 8)
    yield each(Work(mul=4 * N), 4 * N, "upsample_nearest2d", [X], [out])  # F:39, one for each of 4 N outputs
    yield each(Work(mul=16 * N), 4 * 4 * N, "upsample_bilinear2d", [X], [out])
    yield each(Work(mul=16 * N), 4 * 4 * N, "grid_sampler", [X, (2, 10, 8, 2)], [out])
    yield each(Work(add=N), N, "adaptive_avg_pool2d", [X], [(2, 6, 1, 1)])


def flop_counter() -> Iterator[Case]:
    def case(macs: int, name: str, inputs, outputs, releases=TORCH_RELEASES, **attrs) -> Case:
        return Case(op(f"aten.{name}", inputs, outputs, **attrs), releases, 2 * macs, Work(mac=macs))

    for name in ("mm", "_scaled_mm"):
        yield case(2 * 3 * 5, name, [(2, 3), (3, 5)], [(2, 5)])
    yield case(2 * 3 * 5, "addmm", [(5,), (2, 3), (3, 5)], [(2, 5)])
    yield case(4 * 2 * 3 * 5, "bmm", [(4, 2, 3), (4, 3, 5)], [(4, 2, 5)])
    yield case(4 * 2 * 3 * 5, "baddbmm", [(4, 2, 5), (4, 2, 3), (4, 3, 5)], [(4, 2, 5)])
    weight, turned = (8, 3, 3, 2), (6, 4, 3, 2)
    forward = 2 * (8 * 3 * 3 * 2) * (3 * 3)
    back = 2 * (6 * 4 * 3 * 2) * (5 * 4)
    for name in (
        "convolution", "_convolution", "cudnn_convolution", "_slow_conv2d_forward", "convolution_overrideable",
    ):  # fmt: skip
        yield case(forward, name, [X, weight], [(2, 8, 3, 3)])
        yield case(back, name, [X, turned], [(2, 4, 7, 5)], transposed=True)
    # The gradients of those: by the weight's of every pair of channels, as if there were no groups.
    for transposed, kernel, grad, of_input, of_weight in (
        (False, weight, (2, 8, 3, 3), forward, 2 * 6 * 8 * (3 * 2) * (3 * 3)),
        (True, turned, (2, 4, 7, 5), back, 2 * 6 * 4 * (3 * 2) * (5 * 4)),
    ):
        shapes, outputs = [grad, X, kernel], [X, kernel, (kernel[0],)]
        for mask in ([True, True, True], [True, False, False], [False, True, True], [False, False, True]):
            macs = mask[0] * of_input + mask[1] * of_weight
            yield case(macs, "convolution_backward", shapes, outputs, transposed=transposed, output_mask=mask)
        for part, macs in enumerate((of_input, of_weight, 0)):  # the three gradients, one by one
            every = {"transposed": transposed, "output_mask": [True, True, True], "part": part}
            yield case(macs, "convolution_backward", shapes, outputs, **every)
    q, k, v = (2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)
    out = (2, 4, 5, 6)
    scores = 2 * 4 * 5 * 7
    for kind in ("efficient", "flash", "cudnn"):
        name = f"_scaled_dot_product_{kind}_attention"
        yield case(scores * (8 + 6), name, [q, k, v], [out])
        # Scores again, then the gradients of weights, values, queries and keys.
        yield case(scores * (8 + 6 + 6 + 8 + 8), f"{name}_backward", [out, q, k, v], [q, k, v])
    name = "_scaled_dot_product_flash_attention_for_cpu"
    yield case(scores * (8 + 6), name, [q, k, v], [out], SINCE)
    yield case(scores * (8 + 6 + 6 + 8 + 8), f"{name}_backward", [out, q, k, v], [q, k, v], SINCE)
    # A step's trace has the kernel in parts: the scores again with the gradient of the weights, then those of the three tensors.
    for part, width in {"scores": 8 + 6, "value": 6, "query": 8, "key": 8}.items():
        yield case(scores * width, f"{name}_backward", [out, q, k, v], [q], SINCE, part=part)
    yield Case(op(f"aten.{name}", [q, k, v], [out]), BEFORE)
    yield Case(op(f"aten.{name}_backward", [out, q, k, v], [q, k, v]), BEFORE)
    # The kernels beneath take (batch, positions, heads, width). T reads (batch, heads, positions, width), so that each of the 5
    # positions has 4 x 4 scores of "heads"; from 2.14.1 on flash is transposed first, and has 4 x 5 x 5.
    x = (2, 5, 4, 8)
    literal, right = 2 * 5 * 4 * 4, 2 * 4 * 5 * 5
    for kernel, releases, scores in (
        ("_flash_attention", TORCH_RELEASES[:1], literal),
        ("_flash_attention", TORCH_RELEASES[1:], right),
        ("_efficient_attention", TORCH_RELEASES, literal),
    ):
        yield case(scores * (8 + 8), f"{kernel}_forward", [x, x, x], [x], releases)
        yield case(scores * 5 * 8, f"{kernel}_backward", [x, x, x, x], [x, x, x], releases)
        if releases == TORCH_RELEASES[1:]:  # a trace of a step has it in parts
            yield case(scores * 2 * 8, f"{kernel}_backward", [x, x, x, x], [x], releases, part="scores")
        # Packed, two sequences of 3 and 2 queries and of 4 and 1 keys: each alone, by its lengths, in every release.
        rows = (5, 4, 8) if kernel == "_flash_attention" else (1, 5, 4, 8)
        lengths = {LENGTHS: [[3, 2], [4, 1]]}
        yield case(4 * (3 * 4 + 2 * 1) * (8 + 8), f"{kernel}_forward", [rows] * 3, [rows], releases, **lengths)


FVCORE = tuple(fvcore())
FLOP_COUNTER = tuple(flop_counter())

MMENGINE_RELEASES = ("0.10.7",)


def mmengine() -> Iterator[Case]:
    """fvcore's handles of its last release, but for products with a vector (analysis/jit_handles.py:216)."""
    yield from (case._replace(releases=MMENGINE_RELEASES) for case in FVCORE if DEC22 in case.releases)
    for macs, shapes, out in ((2 * 3, [(2, 3), (3,)], (2,)), (3 * 5, [(3,), (3, 5)], (5,)), (3, [(3,), (3,)], ())):
        yield Case(op("aten.matmul", shapes, [out]), MMENGINE_RELEASES, macs, Work(mac=macs))


FAMILIES = {
    "fvcore": (FVCORE_RELEASES, FVCORE),
    "flop_counter": (TORCH_RELEASES, FLOP_COUNTER),
    "inductor": (TORCH_RELEASES, FLOP_COUNTER),  # it runs a node's op under flop_counter
    "mmengine": (MMENGINE_RELEASES, tuple(mmengine())),
}
