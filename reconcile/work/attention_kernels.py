"""Formulas of fused attention operators (flash, memory-efficient, cuDNN): layout of heads, packed sequences, window masks.

A packed call holds sequences of different lengths one after the other; its work is that of each sequence alone.  ``lengths``
of its record are those of queries and of keys: they are values of a tensor, which a trace on meta does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..core.records import LENGTHS, Op
from ..core.work import UnknownWork, Work, formula
from . import attention
from .shapes import attr, shape

Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
Band = Callable[[int, int], int]
"""From numbers of queries and keys to the positions of the scores that the mask discards."""

UNKNOWN_LENGTHS = (
    "packed sequences, whose lengths are values of a tensor, which meta does not have: run on your own device"
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a kernel is called: the index of its query among the inputs, whether heads come before positions, and its mask."""

    mask: Callable[[Op], Band | None]
    query: int = 0
    heads_first: bool = False

    def calls(self, op: Op) -> Iterator[Shapes]:
        """Query (B, Hq, Sq, D), key (B, Hk, Sk, D) and value (B, Hk, Sk, Dv) of each call that this op stands for."""
        given = tuple(shape(op, self.query + i) for i in range(3))
        lengths = op.attrs.get(LENGTHS)
        if lengths is not None:
            heads = [t[-2:] for t in given]
            for queries, keys in zip(*lengths, strict=True):
                rows = (queries, keys, keys)
                yield _as_shapes([(1, h, n, d) for (h, d), n in zip(heads, rows, strict=True)])
        elif any(op.given(name) for name in _PACKED if name in op.attrs) or any(len(t) != 4 for t in given):
            raise UnknownWork(f"{op.op} of {UNKNOWN_LENGTHS}")
        else:
            yield _as_shapes(given if self.heads_first else [(b, h, s, d) for b, s, h, d in given])


def _as_shapes(shapes: Sequence[tuple[int, ...]]) -> Shapes:
    query, key, value = shapes
    return query, key, value


_PACKED = ("cum_seq_q", "cu_seqlens_q", "cu_seq_q")


def band(left: int | None, right: int | None, to_end: bool) -> Band | None:
    """The mask that lets query i see the keys from i - ``left`` to i + ``right``; None and -1 are no bound.

    ``to_end``: the last query stands at the last key, as flash-attention aligns them from 2.1 on; else the first at the first.
    """
    before, after = (None if side is None or side < 0 else side for side in (left, right))
    if before is None and after is None:
        return None
    return lambda queries, keys: attention.outside(queries, keys, before, after, keys - queries if to_end else 0)


def _flash(op: Op) -> Band | None:
    """The mask of a flash or cuDNN kernel: its window, causal or not."""
    causal = bool(op.attrs.get("is_causal", op.attrs.get("causal")))
    left, right = op.attrs.get("window_size_left"), op.attrs.get("window_size_right")
    if op.attrs.get("window_size") is not None:  # torch_attn::_varlen_attn: [left, right]
        left, right = attr(op, "window_size")
    return band(left, 0 if causal else right, to_end=True)


def _efficient(op: Op) -> Band | None:
    """The mask of a memory-efficient kernel: its custom_mask_type, with a window."""
    kind, window = int(attr(op, "custom_mask_type", 0)), op.attrs.get("window_size")
    if not kind and window:
        raise UnknownWork(f"{op.op} with a window and without a causal mask")
    return band(window - 1 if window else None, 0 if kind else None, to_end=kind == _LAST_AT_LAST)


_LAST_AT_LAST = 2
"""custom_mask_type: 0 no mask, 1 causal from the first query at the first key, 2 with the last at the last."""

_LIBRARIES = ("flash_attn", "flashattn")
"""Namespaces of the operators of the package flash-attn."""

KERNELS = {
    "aten._flash_attention_forward": Kernel(_flash),
    "aten._flash_attention_forward_no_dropout_inplace": Kernel(_flash, 1),
    "aten._efficient_attention_forward": Kernel(_efficient),
    "aten._cudnn_attention_forward": Kernel(_flash, heads_first=True),
    "torch_attn._varlen_attn": Kernel(_flash),
    **{f"{space}._flash_attn_{kind}forward": Kernel(_flash) for space in _LIBRARIES for kind in ("", "varlen_")},
}
GRADIENTS = {
    "aten._flash_attention_backward": Kernel(_flash, 1),
    "aten._efficient_attention_backward": Kernel(_efficient, 1),
    "aten._cudnn_attention_backward": Kernel(_flash, 1, heads_first=True),
    "torch_attn._varlen_attn_backward": Kernel(_flash, 1),
    **{f"{space}._flash_attn_{kind}backward": Kernel(_flash, 1) for space in _LIBRARIES for kind in ("", "varlen_")},
}
_SOURCE = (
    "attention.{}, one definition for every kernel; arguments from native/native_functions.yaml, "
    "torch/nn/attention/varlen.py and flash_attn/flash_attn_interface.py"
)


@formula(*KERNELS, source=_SOURCE.format("sdpa"))
def _forward(op: Op) -> Work:
    kernel, dropout = KERNELS[op.op], bool(op.attrs.get("dropout_p"))
    mask = kernel.mask(op)
    bias = op.op == "aten._efficient_attention_forward" and op.given("bias")
    found = Work()
    for query, key, value in kernel.calls(op):
        away = mask(query[-2], key[-2]) if mask else 0
        found += attention.sdpa(query, key, value, masked=mask is not None or bias, dropout=dropout, away=away)
    return found


@formula(*GRADIENTS, source=_SOURCE.format("sdpa_gradient"))
def _backward(op: Op) -> Work:
    # gradient, query, key, value, ...: the kernel computes all three gradients, whichever are needed
    if op.attrs.get("bias_requires_grad"):
        raise UnknownWork(f"{op.op} with the gradient of a bias")
    kernel, dropout, part = GRADIENTS[op.op], bool(op.attrs.get("dropout_p")), op.attrs.get("part")
    mask, found = kernel.mask(op), Work()
    for query, key, value in kernel.calls(op):
        away = mask(query[-2], key[-2]) if mask else 0
        parts = attention.sdpa_gradient(query, key, value, dropout=dropout, away=away)
        found += sum(parts.values(), Work()) if part is None else parts[part]
    return found
