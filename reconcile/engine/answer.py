"""``Answer``: the results of a run, with the verdict and the phases that follow from them, each computed once.

Reports, the command line and the Python interface take an ``Answer`` and compute none of it themselves. The verdict and
the phases are computed when they are first asked for, and kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ..core.conventions import Convention
from ..core.results import RunResult, TraceResult
from .phases import PhaseTable, phase_table
from .verdict import Verdict, verdict


@dataclass(frozen=True)
class Answer(RunResult):
    """The results of a run, and what follows from them. ``others`` is the same run under the other conventions, if they were
    asked for. ``run`` is a word that all processes of one run share, where a program ran as several."""

    others: tuple[Answer, ...] = field(default=())
    run: str = ""

    @cached_property
    def verdict(self) -> Verdict:
        """Which counters are right, and the numbers to publish, or why there are none."""
        return verdict(self)

    def phase_table(self, trace: TraceResult, convention: Convention | None = None) -> PhaseTable | None:
        """The trace by layer and phase, under the run's convention unless another is given; None for a call of the model."""
        convention = convention or self.convention
        other = next((each for each in self.others if each.convention.name == convention.name), None)
        if other is not None:
            return other.phase_table(trace, convention)
        key = (trace.name, convention.name)
        if key not in self._phase_tables:
            self._phase_tables[key] = phase_table(trace, convention)
        return self._phase_tables[key]

    def by_phase(self, trace: TraceResult, convention: Convention | None = None) -> dict[str, int]:
        """The trace's FLOPs by phase; empty for a call of the model, or if the work of an op is unknown."""
        table = self.phase_table(trace, convention)
        return dict(table.total.flops) if table is not None and table.total.known else {}

    @cached_property
    def _phase_tables(self) -> dict[tuple[str, str], PhaseTable | None]:
        return {}
