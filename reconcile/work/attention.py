"""The work of scaled dot-product attention: one definition for every backend, ATen's math decomposition.

Source: ATen native/transformers/attention.cpp (_scaled_dot_product_attention_math). Fused kernels (flash, memory
efficient, cuDNN) compute the same values with other instructions; their records get the same work, so that a model's work
does not depend on the backend. A test compares it with the ops that the math backend really dispatches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..core.work import UnknownWork, Work, prod
from . import gradients, normalization
from .contraction import dense, dots


def sdpa(
    query: tuple[int, ...],
    key: tuple[int, ...],
    value: tuple[int, ...],
    *,
    masked: bool,
    dropout: bool = False,
    away: int = 0,
) -> Work:
    """query (*B, Hq, Sq, D), key (*B, Hk, Sk, D), value (*B, Hk, Sk, Dv), heads of key and value repeated to Hq.

    - q * sqrt(scale): mul numel(q); k * sqrt(scale), after the repetition: mul B*Hq*Sk*D
    - q @ k^T: B*Hq*Sq*Sk dot products of D
    - mask, given or causal, added as 0 or -inf: add B*Hq*Sq*Sk
    - safe softmax over Sk of B*Hq*Sq rows, see normalization.safe_softmax
    - dropout in training: noise / (1 - p), attention * noise: div and mul B*Hq*Sq*Sk
    - attention @ v: B*Hq*Sq*Dv dot products of Sk

    All products run; ``masked`` of the result says how many have a score that the mask discards: ``away`` of the Sq*Sk
    positions (:func:`count_discarded`, :func:`outside`).
    """
    batch, sq, d, sk, dv = _sizes(query, key, value)
    scores = batch * sq * sk
    work = Work(mul=batch * sq * d + batch * sk * d)
    work += dots(scores, d)
    work += Work(add=scores if masked else 0)
    work += normalization.safe_softmax(batch * sq, sk)
    work += Work(div=scores, mul=scores) if dropout else Work()
    return work + dots(batch * sq * dv, sk) + Work(masked=batch * away * (d + dv))


def _sizes(query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...]) -> tuple[int, int, int, int, int]:
    """B * Hq, Sq, D, Sk and Dv. Raises UnknownWork for tensors that are no query, key and value."""
    if min(len(query), len(key), len(value)) < 2:
        raise UnknownWork("attention on tensors of fewer than two dimensions")
    batch, (sq, d), (sk, dv) = prod(query[:-2]), query[-2:], value[-2:]
    if prod(key[:-2]) > batch:
        raise UnknownWork(f"attention with query {list(query)} broadcast to key {list(key)}")
    return batch, sq, d, sk, dv


def count_discarded(sq: int, sk: int) -> int:
    """The positions of Sq x Sk scores that a causal mask discards: query i sees the keys 0 to i, also where Sq is not Sk.

    Source: torch.nn.functional.scaled_dot_product_attention, ``torch.ones(L, S).tril(diagonal=0)``.
    """
    seen = min(sq, sk)
    return sq * sk - seen * (seen + 1) // 2 - (sq - seen) * sk


@lru_cache(maxsize=256)
def outside(sq: int, sk: int, before: int | None, after: int | None, shift: int) -> int:
    """The positions of Sq x Sk scores that a window discards: query i sees the keys i + shift - before to i + shift + after.

    None is no bound. Source: flash-attention, README ("window_size"): ``[i + seqlen_k - seqlen_q - window_size[0], i + seqlen_k -
    seqlen_q + window_size[1]]``, ends included; a query that sees nothing gives zeros.
    """
    seen = 0
    for i in range(sq):
        first = 0 if before is None else max(0, i + shift - before)
        last = sk - 1 if after is None else min(sk - 1, i + shift + after)
        seen += max(0, last - first + 1)
    return sq * sk - seen


def flex(query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...]) -> Work:
    """flex_attention without a score_mod: query (B, Hq, Sq, D), key (B, Hk, Sk, D), value (B, Hk, Sk, Dv).

    - q @ k^T: B*Hq*Sq*Sk dot products of D; * scale: mul B*Hq*Sq*Sk
    - a mask selects and adds no work; as in :func:`sdpa`, masked scores are not discounted
    - safe softmax over Sk of B*Hq*Sq rows; attention @ v: B*Hq*Sq*Dv dot products of Sk

    Source: torch/_higher_order_ops/flex_attention.py (_math_attention_inner, math_attention).
    """
    batch, sq, d, sk, dv = _sizes(query, key, value)
    scores = batch * sq * sk
    work = dots(scores, d) + Work(mul=scores) + normalization.safe_softmax(batch * sq, sk)
    return work + dots(batch * sq * dv, sk)


def flex_gradient(query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...]) -> Work:
    """All gradients of :func:`flex` as the one op that computes them: it keeps one number of each row and recomputes the
    attention. ``g`` is the gradient of the result.

    - q @ k^T, * scale; each row's number to base e, and its gradient: mul, div; compared with -inf: cmp; exp(score - it)
    - attention^T @ g; g @ v^T; the sum of result * g over each row; attention * (g @ v^T - the sum + the row's gradient), * scale
    - ds @ k; ds^T @ q; of repeated heads and of a repeated batch, the gradients of key and value are added

    Source: torch/_higher_order_ops/flex_attention.py (sdpa_dense_backward).
    """
    batch, sq, d, sk, dv = _sizes(query, key, value)
    rows, scores = batch * sq, batch * sq * sk
    work = (
        dots(scores, d) + dots(batch * sk * dv, sq) + dots(scores, dv) + dots(rows * d, sk) + dots(batch * sk * d, sq)
    )
    work += Work(mul=rows, div=rows, cmp=rows) + Work(mul=3 * scores, add=3 * scores, special=scores)
    work += Work(mul=rows * dv, add=rows * (dv - 1))
    return work + Work(add=batch * sk * d - prod(key) + batch * sk * dv - prod(value))


SCORES, VALUE, QUERY, KEY, MASK = "scores", "value", "query", "key", "mask"
"""Parts of the gradient: the part that query, key and mask share, and one for each tensor."""


def sdpa_gradient(
    query: tuple[int, ...],
    key: tuple[int, ...],
    value: tuple[int, ...],
    mask: tuple[int, ...] | None = None,
    *,
    dropout: bool = False,
    away: int = 0,
) -> dict[str, Work]:
    """Part -> work of the gradients of :func:`sdpa`, whose attention was kept; g is the gradient of the result.

    Raises UnknownWork as :func:`sdpa` does.

    - value: attention^T @ g: B*Hq*Sk*Dv dot products of Sq; repeated heads' are added: their elements less the value's
    - scores, for query, key and mask: g @ v^T: B*Hq*Sq*Sk dot products of Dv; dropout: * noise: mul; softmax's
      derivative (gradients.softmax): mul 2, add 1 per score, and the sums of B*Hq*Sq rows: add Sk - 1 each
    - query: ds @ k: B*Hq*Sq*D dot products of Sk; * sqrt(scale): mul
    - key: ds^T @ q: B*Hq*Sk*D dot products of Sq; * sqrt(scale): mul; repeated heads' are added
    - mask: ds, summed over what the mask was repeated for

    Each of the four products is made on all scores; ``masked`` says how much of it a mask discards that leaves ``away`` of the
    Sq*Sk positions out.
    Kernels that keep no attention (flash, memory efficient) recompute it; that work is not included.
    """
    batch, sq, d, sk, dv = _sizes(query, key, value)
    scores, keys, values = batch * sq * sk, batch * sk * d, batch * sk * dv
    softmax = gradients.softmax(batch * sq, sk)
    away *= batch
    return {
        SCORES: dots(scores, dv) + Work(mul=scores if dropout else 0, masked=away * dv) + softmax,
        VALUE: dots(values, sq) + Work(add=values - prod(value), masked=away * dv),
        QUERY: dots(batch * sq * d, sk) + Work(mul=batch * sq * d, masked=away * d),
        KEY: dots(keys, sq) + Work(mul=keys, add=keys - prod(key), masked=away * d),
        MASK: Work(add=scores - prod(mask)) if mask is not None else Work(),
    }


def multi_head(
    query: tuple[int, ...],
    key: tuple[int, ...],
    value: tuple[int, ...],
    heads: int,
    embed: int,
    need_weights: bool,
    average: bool,
) -> Work:
    """ATen's fused inference path of nn.MultiheadAttention: query (B, T, E), key and value (B, S, E).

    - in-projection with bias: (B*T + 2*B*S) rows of E -> E
    - q / sqrt(E/heads): mul B*T*E (transform_bias_rescale_qkv)
    - q @ k^T: B*heads*T*S dot products of E/heads; softmax (a mask selects and adds no work); @ v
    - out-projection with bias: B*T rows of E -> E
    - weights, if requested, averaged over heads: add B*T*S*(heads-1), div B*T*S

    Source: ATen native/transformers/attention.cpp (native_multi_head_attention_cpu).
    """
    (batch, t, _), (_, s, _) = query, key
    rows, keys, values = batch * t, batch * s, batch * value[1]
    work = dense(rows + keys + values, embed, embed, bias=True) + Work(mul=rows * embed)
    work += dots(rows * heads * s, embed // heads) + normalization.softmax(rows * heads, s) + dots(rows * embed, s)
    work += dense(rows, embed, embed, bias=True)
    if need_weights and average:
        work += Work(add=rows * s * (heads - 1), div=rows * s)
    return work


def multi_head_of_sequences(lengths: Sequence[int], embed: int, heads: int) -> Work:
    """As :func:`multi_head`, of a nested tensor of sequences, with itself and without weights: the projections are of its rows,
    the softmax is of each sequence alone, and in all between each sequence is padded to the longest.

    Source: ATen native/transformers/attention.cpp (transform_bias_rescale_qkv_cpu, transform0213_gemm_nt_bias),
    native/nested/NestedTensorMath.cpp (NestedTensor_softmax_dropout).
    """
    padded = (len(lengths), max(lengths), embed)
    left_out = len(lengths) * max(lengths) - sum(lengths)
    whole = multi_head(padded, padded, padded, heads, embed, need_weights=False, average=False)
    whole = whole - dots(3 * left_out * embed, embed) - dense(left_out, embed, embed, bias=True)
    whole = whole - normalization.softmax(padded[0] * heads * padded[1], padded[1])
    return sum((normalization.softmax(heads * length, length) for length in lengths), whole)
