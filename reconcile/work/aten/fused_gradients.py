"""Formulas of the gradients of recurrent layers and attention: the trace has one op for each fused call, forward or backward.

Such a record has the inputs of its forward op, ``needs``, which says for each input whether it needs a gradient, and the
``part`` of the work that it covers, since parts belong to different phases; without a part it covers all the work.
"""

from __future__ import annotations

from ...core.records import Op
from ...core.work import UnknownWork, Work, formula, prod
from .. import attention
from ..recurrent_gradients import Asked, Rows, gradients
from ..shapes import attr, shape, shapes_by_sequence
from .recurrent import library_mode

ACTIVATIONS, WEIGHTS = "activations", "weights"
"""Parts of a recurrent layer's gradient."""


def _needs(op: Op) -> list[bool]:
    needs = attr(op, "needs")
    if not isinstance(needs, (list, tuple)) or len(needs) != len(op.inputs):
        raise UnknownWork(f"{op.op}: needs is {needs!r}, not a flag for each of {len(op.inputs)} inputs")
    return [bool(wanted) for wanted in needs]


@formula(
    *(f"aten.{kind}_backward" for kind in ("gru", "lstm", "rnn_tanh", "rnn_relu")),
    source="recurrent_gradients.py: autograd of ATen native/RNN.cpp",
)
def _recurrent(op: Op) -> Work:
    # data (T, B, I), (B, T, I) or packed (rows, I)[, batch_sizes], h0 (L*D, B, P)[, c0 (L*D, B, H)], weights
    kind = op.op[len("aten.") : -len("_backward")]
    needs, at, packed = _needs(op), int(attr(op, "weights_at")), bool(attr(op, "packed"))
    states = needs[2 if packed else 1 : at]
    asked = Asked(needs[0], states[0], any(states[1:]), tuple(needs[at:]), tuple(map(bool, attr(op, "arrived"))))
    sequences = shape(op, 2 if packed else 1)[-2]
    first: tuple[int, ...] = (sequences,)
    if attr(op, "bidirectional"):
        first += (int(attr(op, "last_batch")) if packed else sequences,)
    rows = Rows(prod(shape(op)[:-1]), sequences, first)
    weights = [shape(op, i) for i in range(at, len(op.inputs))]
    dropout = float(attr(op, "dropout", 0))
    return _of_part(op, *gradients(kind, rows, int(attr(op, "num_layers")), weights, asked, dropout))


def _of_part(op: Op, activations: Work, weights: Work) -> Work:
    """The work of the record's part, of both without one."""
    part = op.attrs.get("part")
    return activations + weights if part is None else {ACTIVATIONS: activations, WEIGHTS: weights}[part]


def _parts(op: Op, first: int, mask: tuple[int, ...] | None = None) -> dict[str, Work]:
    """The parts of the gradient of attention whose query, key and value are the inputs from ``first`` on."""
    parts: dict[str, Work] = {}
    for query, key, value in shapes_by_sequence(op, first):
        away = attention.count_discarded(query[-2], key[-2]) if op.attrs.get("is_causal") else 0
        dropout = bool(op.attrs.get("dropout_p"))
        for name, work in attention.sdpa_gradient(query, key, value, mask, dropout=dropout, away=away).items():
            parts[name] = parts.get(name, Work()) + work
    return parts


@formula("aten.scaled_dot_product_attention_backward", source="attention.sdpa_gradient: autograd of ATen's math path")
def _attention(op: Op) -> Work:
    # query, key, value[, mask]
    needs = dict(zip((attention.QUERY, attention.KEY, attention.VALUE, attention.MASK), _needs(op), strict=False))
    mask = shape(op, 3) if needs.get(attention.MASK) else None
    if mask is not None and op.attrs.get("rows") is not None:
        raise UnknownWork(f"{op.op} of nested tensors with the gradient of a mask")
    parts = _parts(op, 0, mask)
    wanted = {name for name, need in needs.items() if need}
    if wanted - {attention.VALUE}:
        wanted.add(attention.SCORES)
    part = op.attrs.get("part")
    return sum((work for name, work in parts.items() if name in wanted and part in (None, name)), Work())


@formula(
    *(f"aten._scaled_dot_product_{kind}_attention_backward" for kind in ("flash", "efficient", "cudnn")),
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    source="attention.sdpa_gradient, one definition for every kernel: native/transformers/attention.cpp",
)
def _attention_kernel(op: Op) -> Work:
    # gradient, query, key, value, ...: the kernel computes all three gradients, whichever are needed; only the memory
    # efficient kernel is asked for a mask's
    mask = attr(op, "grad_input_mask", None)
    if mask is not None and len(mask) > 3 and mask[3]:
        raise UnknownWork(f"{op.op} with the gradient of a mask")
    parts, part = _parts(op, 1), op.attrs.get("part")
    return sum(parts.values(), Work()) if part is None else parts[part]


@formula(
    "aten.mkldnn_rnn_layer_backward",
    source="recurrent_gradients.py; arguments and results from native/mkldnn/RNN.cpp (mkldnn_rnn_layer_backward)",
)
def _mkldnn_layer(op: Op) -> Work:
    # input (T, B, I), w_ih, w_hh, b_ih, b_hh, hx, cx, ...: one layer-direction. The kernel computes the gradients of all seven,
    # whichever are needed, and takes zeros for those of the output and of both last states that did not arrive. Both biases
    # have one gradient, which is computed once, also where they are zeros that stand for none.
    data, matrices = shape(op), [shape(op, 1), shape(op, 2)]
    bias, mode = matrices[0][:1], library_mode(op)
    if mode != "lstm":
        raise UnknownWork(f"{op.op}: {mode}, and PyTorch runs this kernel for lstm alone")
    rows = Rows(prod(data[:-1]), data[-2], (data[-2],))
    asked = Asked(True, True, True, (True, True, True, False), (True,) * 3)
    return _of_part(op, *gradients(mode, rows, 1, [*matrices, bias, bias], asked))


@formula(
    "aten._cudnn_rnn_backward",
    source="recurrent_gradients.py; arguments and results from native/cudnn/RNN.cpp (_cudnn_rnn_backward)",
)
def _cudnn_layers(op: Op) -> Work:
    # input, weight_stride0 weights per layer-direction, weight_buf, hx (L*D, B, P)[, cx], output, ...: the kernel computes the
    # gradients of data and states, whichever are needed, takes zeros for those that did not arrive, and the weights' if asked.
    layers, mask = int(attr(op, "num_layers")), attr(op, "output_mask")
    directions = 2 if attr(op, "bidirectional") else 1
    count = int(attr(op, "weight_stride0")) * layers * directions
    steps, sequences = attr(op, "batch_sizes", None) or [], shape(op, count + 2)[-2]
    first = (sequences, int(steps[-1]) if steps else sequences)[:directions]
    asked = Asked(True, True, True, (True,) * count, (True,) * 3)
    weights = [shape(op, 1 + i) for i in range(count)]
    rows = Rows(prod(shape(op)[:-1]), sequences, first)
    activations, own = gradients(library_mode(op), rows, layers, weights, asked, float(attr(op, "dropout", 0)))
    return _of_part(op, activations, own if mask[3] else Work())
