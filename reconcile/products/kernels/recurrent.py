"""Rules for cuDNN's unidirectional recurrent kernels: GEMMs of all inputs, and one persistent kernel for all hidden states."""

from __future__ import annotations

from math import prod

from ...core.causes import Cause
from .ncu import Launch
from .tiles import Case, Product, Shape, tiled_product

FORWARD_UPDATE = {4: 1, 3: 2, 1: 0}
"""Gates -> the multiply-adds of a unit's own update: c f + i g of an LSTM; r h and (1 - z) n + z h of a GRU."""
BACKWARD_UPDATE = 3
"""The same of the gradients of an LSTM or a GRU, in every step but one."""
UPDATE_OF_UNIT = "a unit's own update, element by element"


def weights(case: Case) -> list[tuple[Shape, Shape]]:
    """(input, hidden) weights of each layer, from the inputs of the call."""
    found = [shape for shape in case.inputs[1:] if len(shape) == 2]
    return list(zip(found[0::2], found[1::2], strict=False))


def _rows(case: Case) -> int:
    return prod(case.inputs[0][:-1])


def _sequences(case: Case) -> int:
    """Sequences, from the first states (layers, B, H), which are all that has three dimensions beside the data."""
    states = [shape for shape in case.inputs[1:] if len(shape) == 3]
    return states[0][1] if states else 0


def products(launch: Launch, case: Case) -> Product | None:
    """Forward, the inputs of a layer by its weights. Backward, of one layer: the gradient of its inputs, that of its hidden
    weights by the first states and by all others, and that of its input weights.
    """
    layers = weights(case)
    if not layers or (case.backward and len(layers) > 1):
        return None
    rows = _rows(case)
    if not case.backward:
        if case.before >= len(layers):
            return None
        wide, read = layers[case.before][0]
        return tiled_product(launch, 1, rows, wide, read)
    (wide, read), (_, hidden) = layers[0]
    sequences = _sequences(case)
    each = (
        (rows, read, wide),
        (wide, hidden, sequences),
        (wide, hidden, rows - sequences),
        (wide, read, rows),
    )
    return tiled_product(launch, 1, *each[case.before]) if sequences and case.before < len(each) else None


def persistent(launch: Launch, case: Case) -> Product | None:
    """All steps of a layer's hidden states by its hidden weights. Threads add a unit's own update; tensor cores do not."""
    layers = weights(case)
    if case.before >= len(layers) or (case.backward and len(layers) > 1):
        return None
    wide, hidden = layers[case.before][1]
    gates = wide // hidden
    if gates not in FORWARD_UPDATE:
        return None
    rows, units = _rows(case), hidden
    update = FORWARD_UPDATE[gates] * rows * units
    if case.backward:
        update = BACKWARD_UPDATE * (rows - _sequences(case)) * units if gates > 1 else 0
    if "HMMA" in launch.short:
        update = 0
    return Product(rows * wide * hidden, ((Cause.OUTSIDE_CONVENTION, update, UPDATE_OF_UNIT),) if update else ())
