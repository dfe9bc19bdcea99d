"""Trace note on dilated convolutions that TensorFlow runs as dense ones of a larger batch, with outputs it discards.  Python 3.6.

``tf.nn.convolution`` moves every phase of the dilation into the batch, pads the phases to one length and crops the result
(python/ops/nn_ops.py, _WithSpaceToBatch): the discarded outputs are computed, so their multiply-adds are work that ran.
"""

from typing import Any, Iterable, List, Optional, Tuple

from ....core.records import Op

CROPS = frozenset(["BatchToSpace", "BatchToSpaceND"])
BETWEEN = frozenset(["Squeeze", "ExpandDims", "Identity", "Reshape", "BiasAdd"])
"""Ops between the convolution and the crop, which keep every element."""
SHOWN = 3
"""Layers that the note names."""


def is_crop_of_convolution(operation: Any) -> bool:
    """Whether this op puts the phases of a convolution back in their place."""
    if operation.type not in CROPS:
        return False
    behind = operation.inputs[0].op
    while behind.type in BETWEEN:
        behind = behind.inputs[0].op
    return behind.type.startswith(("Conv", "DepthwiseConv")) and "Backprop" not in behind.type


def note(crops: Iterable[Op]) -> Optional[str]:
    """The elements that these crops drop, None if they drop nothing, or if it is not known."""
    dropping = [(op.layer, size) for op in crops for size in [_sizes(op)] if size is not None and size[0] != size[1]]
    if not dropping:
        return None
    layers: List[str] = []
    for layer, _ in dropping:
        if layer not in layers:
            layers.append(layer)
    computed = sum(size[0] for _, size in dropping)
    dropped = computed - sum(size[1] for _, size in dropping)
    named = ", ".join(layer or "(model)" for layer in layers[:SHOWN])
    more = f" and {len(layers) - SHOWN} more" if len(layers) > SHOWN else ""
    return (
        f"dilated convolutions ({named}{more}) run in TensorFlow as dense ones of their phases, padded to one length: "
        f"{dropped:,} of the {computed:,} outputs that they compute are dropped, and their multiply-adds ran"
    )


def _sizes(op: Op) -> Optional[Tuple[int, int]]:
    """Elements before and after, of all calls."""
    counts = []
    for tensor in (op.inputs[0], op.outputs[0]):
        if tensor.shape is None or None in tensor.shape:
            return None
        count = op.calls
        for size in tensor.shape:
            count *= size or 0
        counts.append(count)
    return counts[0], counts[1]
