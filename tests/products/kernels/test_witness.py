"""Kernels against traces: what an H100 counted, to the unit, and lies in the trace, each of which is caught."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.records import Tensor
from reconcile.core.work import Work
from reconcile.products.kernels.attention import blocks
from reconcile.products.kernels.witness import witness
from tests.products.kernels.recorded import MODELS, cases, model, row, trace

FOUR = [(2, 4, 256, 64)] * 3
PRODUCT = 2 * 2 * 4 * 256 * 256 * 64
"""FLOP of one product of attention on these sizes."""


@pytest.mark.parametrize("name", [name for name in MODELS if name != "convs32-training"])
def test_every_product_of_a_model_is_witnessed(name: str) -> None:
    """The rules see names, grids and sizes alone: that nothing is left is no fit."""
    found = witness(*model(name))
    assert [row.reason for row in (*found.rows, *found.foreign) if row.residual] == []
    assert found.exit_code == 0
    assert found.witnessed_flops == sum(2 * row.work.mac for row in found.trace.rows)
    assert found.statement.from_total == sum(row.gpu for row in found.rows)


def test_winograd_is_no_product_of_the_trace_and_says_so() -> None:
    found = witness(*model("convs32-training"))
    (left,) = [row for row in found.rows if row.residual]
    assert (left.layer, left.op) == ("a", "aten.convolution_backward")
    assert "Winograd" in left.reason
    assert found.exit_code == 1


CONVOLUTION = {
    "transposed": False, "groups": 1, "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "bias": None,
    "output_padding": [0, 0],
}  # fmt: skip


ODD, ODDER = [(500, 200), (200, 300)], [(501, 203), (203, 301)]
TEXT = [(128,), (8, 64), (64, 128)]
BATCH = [(12, 64, 32), (12, 32, 96)]
IMAGES, FIRST = [(2, 64, 56, 56), (64, 64, 3, 3)], [(2, 3, 32, 32), (16, 3, 3, 3)]
PADDED, SCALED = Cause.TILE_PADDING, Cause.OUTSIDE_CONVENTION


@pytest.mark.parametrize(
    ("name", "op", "inputs", "result", "ran", "macs", "cause"),
    [
        # exact, on tensor cores of each type and on threads
        ("mm_fp16", "mm", [(512, 384), (384, 256)], (512, 256), 512 * 384 * 256, 512 * 384 * 256, None),
        ("mm_tf32", "mm", [(512, 384), (384, 256)], (512, 256), 512 * 384 * 256, 512 * 384 * 256, None),
        ("mm_bf16", "mm", [(2048, 2048)] * 2, (2048, 2048), 2048**3, 2048**3, None),
        ("mm_fp64", "mm", [(256, 128), (128, 64)], (256, 64), 256 * 128 * 64, 256 * 128 * 64, None),
        ("linear_fp32", "addmm", TEXT, (8, 128), 8 * 64 * 128, 8 * 64 * 128, None),
        # tiles of 32 x 32 x 64: 500, 300, 200 become 512, 320, 256, and 501, 301, 203 as well
        ("mm_fp16_odd", "mm", ODD, (500, 300), 512 * 320 * 256, 500 * 300 * 200, PADDED),
        ("mm_fp16_odd1", "mm", ODDER, (501, 301), 512 * 320 * 256, 501 * 301 * 203, PADDED),
        # threads: four parts of the depth, and one more multiply-add for each of 512 x 256 results
        ("mm_fp32", "mm", [(512, 384), (384, 256)], (512, 256), 512 * 256 * (384 + 1), 512 * 384 * 256, SCALED),
        # 12 products of (64, 32) and (32, 96): columns 96 to 128, depth 32 to 64
        ("bmm_fp16", "bmm", BATCH, (12, 64, 96), 12 * 64 * 128 * 64, 12 * 64 * 96 * 32, PADDED),
        ("conv_fp16", "convolution", IMAGES, (2, 64, 56, 56), 6272 * 64 * 576, 6272 * 64 * 576, None),
        # 3 x 3 x 3 = 27 taps to 32, 16 channels to 32
        ("conv_fp32_first", "convolution", FIRST, (2, 16, 32, 32), 2048 * 32 * 32, 2048 * 16 * 27, PADDED),
    ],
)
def test_products_of_matrices_and_convolutions(name, op, inputs, result, ran, macs, cause) -> None:
    found = witness(trace([row(f"aten.{op}", inputs, [result], **CONVOLUTION)]), cases()[name])
    assert (found.statement.from_total, found.statement.to_total) == (2 * ran, 2 * macs)
    assert found.statement.by_cause() == ({cause: 2 * (macs - ran)} if cause else {})
    assert found.statement.residual == 0
    assert found.exit_code == 0


def attention(kind: str, causal: bool):
    state = {"flash": [(2, 4, 256), (2,)], "efficient": [(2, 4, 256)], "cudnn": [(2, 4, 256, 1)]}[kind]
    forward = row("aten.scaled_dot_product_attention", FOUR, FOUR[:1], is_causal=causal, attn_mask=None)
    name = f"aten._scaled_dot_product_{kind}_attention_backward"
    return trace([forward, row(name, [(2, 4, 256, 64)] * 5 + state, is_causal=causal)])


# Blocks that are kept of all: 256 positions are 2 x 2 blocks of 128, 4 x 4 of 64, 4 x 2 of 64 x 128
@pytest.mark.parametrize(
    ("name", "forward", "backward", "times"),
    [
        ("flash", (4, 4), (4, 4), 1),
        ("flash_causal", (3, 4), (3, 4), 1),
        ("efficient", (16, 16), (16, 16), 3),  # float32: three products of TF32
        ("efficient_causal", (10, 16), (10, 16), 1),
        ("cudnn", (8, 8), (4, 4), 1),
        ("cudnn_causal", (6, 8), (3, 4), 1),
    ],
)
def test_attention_by_three_kernels_forward_and_backward(name, forward, backward, times) -> None:
    found = witness(attention(name.partition("_")[0], name.endswith("causal")), cases()[name])
    first, second = found.rows
    assert first.gpu == 2 * PRODUCT * times * forward[0] // forward[1]
    assert second.gpu == 5 * PRODUCT * times * backward[0] // backward[1]  # the scores once more
    assert found.statement.residual == 0
    booked = found.statement.by_cause()
    assert booked[Cause.SCORES_AGAIN] == -PRODUCT
    assert (Cause.BLOCKS_SKIPPED in booked) == name.endswith("causal")
    assert (Cause.SPLIT_PRECISION in booked) == (times > 1)


@pytest.mark.parametrize(
    ("queries", "keys", "rows", "columns"), [(256, 256, 64, 64), (384, 384, 128, 128), (100, 70, 32, 16), (5, 9, 4, 4)]
)
def test_blocks_have_a_position_that_the_mask_lets_through(queries, keys, rows, columns) -> None:
    kept = {(i // rows, j // columns) for i in range(queries) for j in range(keys) if j <= i + keys - queries}
    assert blocks(queries, keys, rows, columns, True) == len(kept)
    every = {(i // rows, j // columns) for i in range(queries) for j in range(keys)}
    assert blocks(queries, keys, rows, columns, False) == len(every)


LSTM = [(7, 3, 16), (1, 3, 32), (1, 3, 32), (128, 16), (128, 32), (128,), (128,)]


def test_a_recurrent_layer() -> None:
    """Inputs 21 x 16 by 128, on 4 tiles of 64 x 64 x 32; hidden states 21 x 32 by 128, and one multiply-add per unit and step."""
    layer = row(
        "aten.lstm", LSTM, [(7, 3, 32)], has_biases=True, num_layers=1, bidirectional=False, batch_first=False, packed=False,
        weights_at=3,
    )  # fmt: skip
    found = witness(trace([layer]), cases()["lstm"])
    assert found.statement.from_total == 2 * (4 * 64 * 64 * 32 + 21 * 128 * 32 + 21 * 32)
    assert found.statement.by_cause() == {
        Cause.TILE_PADDING: 2 * (21 * 128 * 16 - 4 * 64 * 64 * 32),
        Cause.OUTSIDE_CONVENTION: -2 * 21 * 32,
    }
    assert found.exit_code == 0


def test_what_no_rule_predicts_is_a_residual() -> None:
    depthwise = row(
        "aten.convolution", [(2, 64, 56, 56), (64, 1, 3, 3)], [(2, 64, 56, 56)], **{**CONVOLUTION, "groups": 64}
    )
    found = witness(trace([depthwise]), cases()["conv_depthwise"])
    # the kernel leaves out taps on padding: of 56 x 3 along each axis, the first and the last position miss one
    assert found.statement.from_total == 2 * 2 * 64 * (56 * 3 - 2) ** 2
    assert found.statement.residual == 2 * 2 * 64 * ((56 * 3) ** 2 - (56 * 3 - 2) ** 2)
    assert found.exit_code == 1


# A lie in the trace: a wrong size, an operator too few, one too many, one call too many, a wrong amount of work.


def lies():
    honest, _ = model("blocks")
    first = honest.rows[0]
    wider = replace(first, inputs=(*first.inputs[:1], Tensor((768, 257), ""), Tensor((257, 768), "")))
    yield "wrong size", replace(honest, rows=(wider, *honest.rows[1:]))
    yield "one missing", replace(honest, rows=honest.rows[1:])
    yield "one too many", replace(honest, rows=(*honest.rows, replace(first, layer="other", inputs=wider.inputs)))
    yield "a call too many", replace(honest, rows=(replace(first, calls=2), *honest.rows[1:]))
    yield "wrong work", replace(honest, rows=(replace(first, work=Work(mac=first.work.mac - 1)), *honest.rows[1:]))


@pytest.mark.parametrize(("lie", "untrue"), list(lies()))
def test_a_lie_in_the_trace_is_caught(lie, untrue) -> None:
    _, counted = model("blocks")
    found = witness(untrue, counted)
    assert found.exit_code == 1, lie
    assert found.statement.state is State.UNEXPLAINED
    assert [row for row in (*found.rows, *found.foreign) if row.residual] != []


def test_a_product_that_no_kernel_ran_is_not_witnessed() -> None:
    honest, counted = model("blocks")
    without = tuple(one for one in counted if not any(each.sizes[:1] == ((1024,),) for each in one.launch.ranges))
    found = witness(honest, without)
    (left,) = [row for row in found.rows if not row.is_witnessed]
    assert (left.layer, left.gpu, left.residual) == ("up", 0, 2 * 768 * 256 * 1024)
    assert "not witnessed" in left.reason
