"""A training step's FLOPs by layer and phase (forward, loss, gradients, recomputation, optimiser), and the sums for MFU and HFU.

Pure functions of a trace's rows: every FLOP of the trace is in exactly one cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from ..core.conventions import Convention
from ..core.records import BACKWARD, FORWARD, INPUT_GRADIENT, LOSS, PHASES, RECOMPUTATION, WEIGHT_GRADIENT
from ..core.results import TraceResult

Key = TypeVar("Key")

GRADIENT_PHASES = (BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
"""The phases of "the backward pass" in a ratio: gradients, but not the loss, the recomputation or the optimiser."""
MFU_PHASES = (FORWARD, LOSS, *GRADIENT_PHASES)
"""The phases of MFU: forward and backward, with the loss; HFU adds the recomputation."""


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One layer, or the total: FLOPs by phase. If not ``known``, the work of some op is unknown and these are lower bounds."""

    layer: str
    flops: Mapping[str, int]
    known: bool = True

    @property
    def forward(self) -> int:
        """FLOPs of the forward pass."""
        return self.flops.get(FORWARD, 0)

    @property
    def backward(self) -> int:
        """FLOPs of the gradients, with respect to inputs and to weights."""
        return sum(self.flops.get(phase, 0) for phase in GRADIENT_PHASES)

    @property
    def total(self) -> int:
        """FLOPs of all phases."""
        return sum(self.flops.values())

    @property
    def recomputed_flops(self) -> int:
        """FLOPs of recomputation (activation checkpointing)."""
        return self.flops.get(RECOMPUTATION, 0)

    @property
    def mfu_flops(self) -> int:
        """FLOPs of forward and backward, each once: the numerator of MFU."""
        return sum(self.flops.get(phase, 0) for phase in MFU_PHASES)

    @property
    def hfu_flops(self) -> int:
        """FLOPs of these with recomputation: the numerator of HFU."""
        return self.mfu_flops + self.recomputed_flops

    @property
    def other_phases(self) -> dict[str, int]:
        """FLOPs of each phase that is in neither: what the optimiser multiplies, models without gradients, and the program."""
        return {phase: n for phase, n in self.flops.items() if n and phase not in (*MFU_PHASES, RECOMPUTATION)}

    @property
    def ratio(self) -> Fraction | None:
        """Backward over forward, exact. None if something is unknown, or if the forward pass has no work."""
        return Fraction(self.backward, self.forward) if self.known and self.forward else None


@dataclass(frozen=True, slots=True)
class PhaseTable:
    """A trace's work under one convention: ``rows`` in order of execution, which add up to ``total``, that of ``steps`` steps of
    an optimizer together."""

    name: str
    framework: str
    convention: str
    phases: tuple[str, ...]
    rows: tuple[PhaseRow, ...]
    total: PhaseRow
    steps: int = 1


def phase_table(trace: TraceResult, convention: Convention) -> PhaseTable | None:
    """The trace by layer and phase; None if it has only the forward pass.

    A layer whose work is 0 in every phase under the convention has no row, unless the work of one of its ops is unknown.
    """
    cells: dict[str, dict[str, int]] = {}
    present: set[str] = set()
    for row in trace.rows:
        by_phase = cells.setdefault(row.layer, {})
        by_phase[row.phase] = by_phase.get(row.phase, 0) + convention.flops(row.work)
        present.add(row.phase)
    if present <= {FORWARD}:
        return None
    holes = dict.fromkeys(unknown.layer for unknown in trace.gaps(convention))
    rows = tuple(
        PhaseRow(layer, cells.get(layer, {}), layer not in holes)
        for layer in dict.fromkeys([*cells, *holes])
        if layer in holes or any(cells[layer].values())
    )
    columns = tuple(phase for phase in PHASES if phase in present)
    sums = {phase: sum(row.flops.get(phase, 0) for row in rows) for phase in columns}
    total = PhaseRow("", sums, not holes)
    return PhaseTable(trace.name, trace.framework, convention.name, columns, rows, total, trace.steps)


def sum_phase_rows(name: str, rows: Sequence[PhaseRow]) -> PhaseRow:
    """The sums of these rows by phase; a lower bound if one of them is."""
    return PhaseRow(name, sum_by_key([row.flops for row in rows]), all(row.known for row in rows))


def sum_by_key(amounts: Sequence[Mapping[Key, int]]) -> dict[Key, int]:
    """The sum of these amounts by key, in the order in which the keys first occur."""
    return {
        key: sum(each.get(key, 0) for each in amounts) for key in dict.fromkeys(k for each in amounts for k in each)
    }
