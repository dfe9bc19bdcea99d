"""The formula of a composite operator equals the sum over the ops that torch dispatches for it, component by component.

Each case calls torch.ops.aten.<name> in float64 on the CPU, once recorded whole, once op by op.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.adapters.pytorch.tracing.call_records import record_dispatch
from reconcile.work import Work, work_of
from tests.work.torch_records import record, work_dispatched

aten = torch.ops.aten


def t(*shape):
    return torch.randn(shape, dtype=torch.float64)


def whole(op, *args, **kwargs):
    """The record of the call as one op."""
    with torch.no_grad():
        return record_dispatch(op, args, kwargs, op(*args, **kwargs), "x", "")


CASES = {
    "linear": lambda: (aten.linear.default, t(2, 3, 4), t(5, 4)),
    "linear, 2-D": lambda: (aten.linear.default, t(3, 4), t(5, 4)),
    "linear, bias": lambda: (aten.linear.default, t(2, 3, 4), t(5, 4), t(5)),
    "matmul": lambda: (aten.matmul.default, t(3, 4), t(4, 5)),
    "matmul, batch": lambda: (aten.matmul.default, t(2, 3, 4), t(7, 1, 4, 5)),
    "matmul, vectors": lambda: (aten.matmul.default, t(4), t(4)),
    "matmul, matrix and vector": lambda: (aten.matmul.default, t(3, 4), t(4)),
    "matmul, vector and batch": lambda: (aten.matmul.default, t(4), t(2, 4, 5)),
    "inner": lambda: (aten.inner.default, t(2, 4), t(3, 4)),
    "outer": lambda: (aten.outer.default, t(2), t(3)),
    "tensordot": lambda: (aten.tensordot.default, t(2, 3, 4), t(4, 3, 5), [1, 2], [1, 0]),
    "tensordot, the other's axis of size 1": lambda: (aten.tensordot.default, t(6, 4, 3), t(1, 3, 9), [1, 2], [0, 1]),
    "tensordot, its own axis of size 1": lambda: (aten.tensordot.default, t(6, 1, 3), t(4, 3, 9), [1, 2], [0, 1]),
    "tensordot, both axes of size 1": lambda: (aten.tensordot.default, t(6, 1), t(1, 9), [1], [0]),
    "tensordot, one axis of each of size 1": lambda: (
        aten.tensordot.default, t(6, 4, 1, 2), t(1, 5, 2, 9), [1, 2, 3], [0, 1, 2],
    ),
    "bilinear": lambda: (aten.bilinear.default, t(2, 3), t(2, 4), t(5, 3, 4)),
    "bilinear, bias": lambda: (aten.bilinear.default, t(2, 3), t(2, 4), t(5, 3, 4), t(5)),
    "einsum, batch product": lambda: (aten.einsum.default, "bij,bjk->bik", [t(2, 3, 4), t(2, 4, 5)]),
    "einsum, attention": lambda: (aten.einsum.default, "bqhd,bkhd->bhqk", [t(2, 3, 4, 5), t(2, 6, 4, 5)]),
    "einsum, ellipsis": lambda: (aten.einsum.default, "...i,ji->...j", [t(2, 3, 4), t(5, 4)]),
    "einsum, outer": lambda: (aten.einsum.default, "i,j->ij", [t(3), t(4)]),
    "einsum, elementwise": lambda: (aten.einsum.default, "ij,ij->ij", [t(3, 4), t(3, 4)]),
    "einsum, implicit output": lambda: (aten.einsum.default, "ij,jk", [t(3, 4), t(4, 5)]),
    "einsum, lone label": lambda: (aten.einsum.default, "ijl,jk->ik", [t(3, 4, 2), t(4, 5)]),
    "einsum, lone labels alone": lambda: (aten.einsum.default, "ij,kl->ik", [t(3, 4), t(5, 2)]),
    "einsum, broadcast": lambda: (aten.einsum.default, "ij,ij->ij", [t(3, 1), t(3, 4)]),
    "einsum, broadcast and summed": lambda: (aten.einsum.default, "ij,jk->ik", [t(3, 1), t(4, 5)]),
    "einsum, ellipses of two widths": lambda: (aten.einsum.default, "...ij,...jk->...ik", [t(2, 7, 3, 4), t(7, 4, 5)]),
    "einsum, contracted over one": lambda: (aten.einsum.default, "bqd,bkd->bqk", [t(2, 3, 1), t(2, 4, 1)]),
    "einsum, contracted over one of two": lambda: (aten.einsum.default, "bqde,bkde->bqk", [t(2, 3, 1, 5), t(2, 4, 1, 5)]),
    "einsum, three operands": lambda: (aten.einsum.default, "ij,jk,kl->il", [t(2, 3), t(3, 4), t(4, 5)]),
    "einsum, four operands": lambda: (aten.einsum.default, "ij,jk,kl,lm->im", [t(2, 3), t(3, 4), t(4, 5), t(5, 6)]),
    "einsum, a label of all three": lambda: (aten.einsum.default, "bi,bj,bk->ijk", [t(6, 3), t(6, 4), t(6, 5)]),
    "einsum, kept for the third": lambda: (aten.einsum.default, "ij,ij,ij->i", [t(3, 4), t(3, 4), t(3, 4)]),
    "einsum, one operand": lambda: (aten.einsum.default, "ijk->ki", [t(3, 4, 2)]),
    "einsum, transpose": lambda: (aten.einsum.default, "ij->ji", [t(3, 4)]),
    "einsum, diagonal": lambda: (aten.einsum.default, "bii->bi", [t(2, 3, 3)]),
    "einsum, trace": lambda: (aten.einsum.default, "ii", [t(3, 3)]),
    "einsum, diagonal and product": lambda: (aten.einsum.default, "bii,bij->bj", [t(2, 3, 3), t(2, 3, 4)]),
    "einsum, two diagonals": lambda: (aten.einsum.default, "iijj,jkk->ik", [t(2, 2, 3, 3), t(3, 4, 4)]),
    "conv1d": lambda: (aten.conv1d.default, t(2, 4, 9), t(6, 2, 3), t(6), [2], [1], [1], 2),
    "conv2d": lambda: (aten.conv2d.default, t(2, 3, 7, 7), t(4, 3, 3, 2)),
    "conv2d, same": lambda: (aten.conv2d.padding, t(2, 3, 7, 7), t(4, 3, 4, 4), t(4), [1, 1], "same"),
    "conv3d": lambda: (aten.conv3d.default, t(1, 2, 4, 4, 4), t(3, 2, 2, 2, 2), t(3)),
    "conv2d, unbatched": lambda: (aten.conv2d.default, t(3, 7, 7), t(4, 3, 3, 2), t(4)),
    "conv_transpose1d": lambda: (aten.conv_transpose1d.default, t(2, 3, 5), t(3, 4, 3), t(4), [2]),
    "conv_transpose2d": lambda: (
        aten.conv_transpose2d.input, t(2, 4, 5, 5), t(4, 3, 3, 3), None, [2, 2], [1, 1], [1, 1], 2,
    ),
    "_convolution": lambda: (
        aten._convolution.default, t(2, 3, 7), t(4, 3, 3), t(4), [1], [0], [1], False, [0], 1, False, False, True, True,
    ),
    "layer_norm": lambda: (aten.layer_norm.default, t(2, 3, 4), [3, 4], t(3, 4), t(3, 4)),
    "layer_norm, plain": lambda: (aten.layer_norm.default, t(2, 3, 4), [4]),
    "group_norm": lambda: (aten.group_norm.default, t(2, 6, 5), 3, t(6), t(6)),
    "group_norm, plain": lambda: (aten.group_norm.default, t(2, 6, 5), 2),
    "rms_norm": lambda: (aten.rms_norm.default, t(2, 3, 4), [4], t(4)),
    "batch_norm, inference": lambda: (
        aten.batch_norm.default, t(2, 3, 4), t(3), t(3), t(3), t(3).abs(), False, 0.1, 1e-5, True,
    ),
    "batch_norm, inference, plain": lambda: (
        aten.batch_norm.default, t(2, 3, 4), None, None, t(3), t(3).abs(), False, 0.1, 1e-5, True,
    ),
    "batch_norm, training": lambda: (
        aten.batch_norm.default, t(2, 3, 4), t(3), t(3), t(3), t(3).abs(), True, 0.1, 1e-5, True,
    ),
    "batch_norm, no statistics": lambda: (
        aten.batch_norm.default, t(2, 3, 4), t(3), None, None, None, True, 0.1, 1e-5, True,
    ),
    "instance_norm": lambda: (
        aten.instance_norm.default, t(2, 3, 4), t(3), t(3), None, None, True, 0.1, 1e-5, True,
    ),
    "instance_norm, running statistics": lambda: (
        aten.instance_norm.default, t(2, 3, 4), t(3), t(3), t(3), t(3).abs(), False, 0.1, 1e-5, True,
    ),
    "_weight_norm": lambda: (aten._weight_norm.default, t(4, 3), t(4, 1)),
    "softmax": lambda: (aten.softmax.int, t(2, 3, 4), 1),
    "log_softmax": lambda: (aten.log_softmax.int, t(2, 3, 4), -1),
    "cosine_similarity": lambda: (aten.cosine_similarity.default, t(2, 3, 4), t(3, 4), 1),
    "max_pool1d": lambda: (aten.max_pool1d.default, t(2, 3, 8), [3], [2]),
    "max_pool2d": lambda: (aten.max_pool2d.default, t(2, 3, 8, 8), [3, 2], [2, 2], [1, 1]),
    "max_pool3d": lambda: (aten.max_pool3d.default, t(1, 3, 8, 8, 8), [2]),
    "avg_pool1d": lambda: (aten.avg_pool1d.default, t(2, 3, 8), [3], [2], [1]),
    "adaptive_avg_pool1d": lambda: (aten.adaptive_avg_pool1d.default, t(2, 3, 8), [3]),
    "adaptive_avg_pool2d": lambda: (aten.adaptive_avg_pool2d.default, t(2, 3, 8, 5), [3, 2]),
    "adaptive_avg_pool2d, global": lambda: (aten.adaptive_avg_pool2d.default, t(2, 3, 8, 5), [1, 1]),
    "adaptive_max_pool1d": lambda: (aten.adaptive_max_pool1d.default, t(2, 3, 8), [3]),
    "dropout, evaluation": lambda: (aten.dropout.default, t(2, 3), 0.5, False),
    "dropout, training": lambda: (aten.dropout.default, t(2, 3), 0.5, True),
    "square": lambda: (aten.square.default, t(2, 3)),
    "relu6": lambda: (aten.relu6.default, t(2, 3)),
    "selu": lambda: (aten.selu.default, t(2, 3)),
    "celu": lambda: (aten.celu.default, t(2, 3)),
    "prelu": lambda: (aten.prelu.default, t(2, 3), t(3)),
    "log_sigmoid": lambda: (aten.log_sigmoid.default, t(2, 3)),
    "std": lambda: (aten.std.correction, t(2, 3), [1]),
    "addcmul": lambda: (aten.addcmul.default, t(2, 3), t(2, 3), t(2, 3)),
    "chunk": lambda: (aten.chunk.default, t(4, 3), 2),
    "to": lambda: (aten.to.dtype, t(2, 3), torch.float32),
    "pad": lambda: (aten.pad.default, t(2, 3), [1, 1]),
    "norm": lambda: (aten.norm.ScalarOpt_dim, t(2, 3), 2, [1]),
    "norm, all of it": lambda: (aten.norm.Scalar, t(2, 3), 1),
    "frobenius_norm": lambda: (aten.frobenius_norm.dim, t(2, 3), [1]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_whole_equals_parts(case):
    op, *args = CASES[case]()
    assert work_of(whole(op, *args)) == work_dispatched(op, *args)


@pytest.mark.parametrize(
    ("equation", "shapes", "path"),
    [
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], [1, 2, 0, 1]),
        ("ij,kl,jk,lm->im", [(2, 3), (4, 5), (3, 4), (5, 6)], [0, 2, 1, 2, 0, 1]),
        ("bi,bj,bk->ijk", [(6, 3), (6, 4), (6, 5)], [2, 0, 1, 0]),
    ],
)
def test_an_einsum_follows_its_path(equation, shapes, path):
    tensors = [t(*shape) for shape in shapes]
    parts = work_dispatched(aten.einsum.default, equation, tensors, path=path)
    assert work_of(whole(aten.einsum.default, equation, tensors, path=path)) == parts


@settings(max_examples=8, deadline=None)
@given(
    heads=st.integers(1, 3),
    repeat=st.integers(1, 2),
    sizes=st.tuples(*[st.integers(1, 4)] * 4),
    mask=st.sampled_from([None, "causal", "bool", "float"]),
    batch=st.integers(1, 2),
    scale=st.sampled_from([None, 0.3]),
)
def test_attention_equals_its_math_decomposition(heads, repeat, sizes, mask, batch, scale):
    sq, sk, d, dv = sizes
    query, key, value = t(batch, heads * repeat, sq, d), t(batch, heads, sk, d), t(batch, heads, sk, dv)
    options = {"scale": scale, "enable_gqa": repeat > 1, "is_causal": mask == "causal"}
    if mask in ("bool", "float"):
        options["attn_mask"] = torch.ones(sq, sk, dtype=torch.bool) if mask == "bool" else t(sq, sk)
    op = aten.scaled_dot_product_attention.default
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        parts = work_dispatched(op, query, key, value, **options)
    assert work_of(whole(op, query, key, value, **options)) == parts


def test_every_attention_backend_has_the_same_work():
    query, key, value = t(2, 3, 4, 8), t(2, 3, 5, 8), t(2, 3, 5, 8)
    expected = work_of(whole(aten.scaled_dot_product_attention.default, query, key, value))
    fused = whole(aten._scaled_dot_product_flash_attention_for_cpu.default, query, key, value)
    assert work_of(fused) == expected
    for name in ("flash", "efficient", "cudnn", "fused"):
        suffix = "_overrideable" if name == "fused" else ""
        op = fused._replace(op=f"aten._scaled_dot_product_{name}_attention{suffix}")
        assert work_of(op) == expected


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer_in_closed_form(norm_first, activation):
    """The fast path's one op against the slow path's parts, which differ in the attention alone: the fast path
    scales q only, and its softmax has no guard against rows that are all masked."""
    heads, embed, hidden, batch, steps = 2, 4, 6, 3, 5
    layer = (
        torch.nn.TransformerEncoderLayer(
            embed, heads, hidden, batch_first=True, norm_first=norm_first, activation=activation
        )
        .double()
        .eval()
    )
    data = t(batch, steps, embed)
    fast = record(layer, data)
    assert [op.op for op in fast] == ["aten._transformer_encoder_layer_fwd"]
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        parts = work_dispatched(layer, data)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    keys_scaled = Work(mul=batch * steps * embed)
    guard = Work(cmp=batch * heads * steps * steps)
    assert work_of(fast[0]) == parts - keys_scaled - guard


def test_multi_head_fast_path_with_averaged_weights():
    """native_multi_head_attention against the slow path with weights, which scales q only and takes a mean of heads."""
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True).double().eval()
    data = t(3, 5, 4)
    fast = record(lambda: layer(data, data, data))
    assert [op.op for op in fast] == ["aten._native_multi_head_attention"]
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        parts = work_dispatched(lambda: layer(data, data, data))
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert work_of(fast[0]) == parts


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_an_operator_of_prims_has_the_work_of_atens(name):
    prim, whole_op = getattr(torch.ops.prims, name).default, getattr(aten, name).Tensor
    x, y = t(3, 4), t(3, 4)
    assert work_of(whole(prim, x, y)) == work_of(whole(whole_op, x, y)) != Work()
