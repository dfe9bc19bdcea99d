"""What a step's ops come to, by layer and phase, in either framework."""

from __future__ import annotations

from reconcile.work import ZERO, Work, work_of


def work(ops):
    """(layer, phase) -> work."""
    found: dict[tuple[str, str], Work] = {}
    for op in ops:
        found[op.layer, op.phase] = found.get((op.layer, op.phase), ZERO) + work_of(op) * op.calls
    return found


def macs(ops):
    return {key: known.mac for key, known in work(ops).items() if known.mac}
