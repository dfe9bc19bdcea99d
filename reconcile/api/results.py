"""What ``reconcile.run`` returns, and the base of what ``reconcile.count`` does: pandas frames, citation, verdict, reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.escaping import escape_line
from ..engine.answer import Answer

if TYPE_CHECKING:
    import pandas

    from ..engine.phases import PhaseRow
    from ..engine.verdict import Verdict


class Found:
    """Views of what a run or a step found: ``result`` is the whole record.

    Frames are pandas frames of Python integers, exact at any size; a cell is None where a number is not known. Whatever is
    raised here is a ReconcileError: NotInResult for a name that did not run, PackageMissing where pandas is not installed.
    """

    __slots__ = ()

    result: Answer

    @property
    def exit_code(self) -> int:
        """0 reconciled, 1 unexplained or incomplete, 3 a counter failed."""
        return self.result.exit_code

    @property
    def verdict(self) -> Verdict:
        """Which counters are right, which are off, by how much and why; the numbers to publish, or why there are none."""
        return self.result.verdict

    def cite(self) -> str:
        """The sentence to cite: number, model, input, pass, convention, counters and versions.

        Two sentences, and what separates them, where the frameworks do other work. Raises NotInResult, with the reason and
        what to do, where there is no number to publish.
        """
        from ..core.errors import NotInResult

        said = self.verdict
        if not said.figures:
            raise NotInResult(" ".join(item.sentence for item in said.withheld))
        return "\n".join(
            [*(figure.sentence for figure in said.figures), *([said.difference] if said.difference else [])]
        )

    @property
    def table(self) -> pandas.DataFrame:
        """A row per layer: the work that ran per framework and each counter's value, normalised, in FLOPs."""
        from ..report.frames import table

        return table(self.result)

    @property
    def layers(self) -> pandas.DataFrame:
        """A row per layer and counter: ``FLOP`` counted, ``work`` that ran, ``to the work`` (their difference), ``cause``.

        ``cause`` spells what makes the difference, such as ``op-not-counted +3,502,080``.
        """
        from ..report.frames import layers

        return layers(self.result)

    @property
    def causes(self) -> pandas.DataFrame:
        """A row per cause, and the residual; a column per counter: FLOPs to add to it to arrive at the work that ran.

        A counter that cannot be compared has no column.
        """
        from ..report.frames import causes

        return causes(self.result)

    @property
    def phases(self) -> pandas.DataFrame:
        """A row per framework and layer of a training step: FLOPs by phase, then ``backward`` and ``ratio``; the whole
        step last, as layer ``""``.

        ``backward`` are the gradients with respect to activations and weights; ``ratio`` is an exact Fraction. A cell is None
        where nothing runs, a ratio where it is not known. No rows for a call of the model.
        """
        from ..report.frames import phases

        return phases(self.result)

    @property
    def mfu_flops(self) -> int:
        """FLOPs of forward and backward of the training step, each once: the numerator of MFU, per step, or of all steps that ran
        in one context.

        The optimizer, and what else runs beside them, is in neither: ``phases`` has it.

        Raises NotInResult for a call of the model, where the work of an op is unknown, and where the frameworks do other work.
        """
        return self._of_step("MFU", lambda row: row.mfu_flops)

    @property
    def hfu_flops(self) -> int:
        """FLOPs of forward and backward with recomputation: the numerator of HFU, per step. Raises as ``mfu_flops``."""
        return self._of_step("HFU", lambda row: row.hfu_flops)

    def _of_step(self, name: str, number: Callable[[PhaseRow], int]) -> int:
        from ..core.errors import NotInResult

        tables = [(trace.name, self.result.phase_table(trace)) for trace in self.result.traces]
        rows = {trace: table.total for trace, table in tables if table is not None}
        if not rows:
            raise NotInResult(
                f'{name} is of a training step: count one with pass_="training", or with reconcile.count.'
            )
        unknown = next((trace for trace, row in rows.items() if not row.known), "")
        if unknown:
            raise NotInResult(f"the work that ran ({unknown}) is not known, and so there is no number for {name}.")
        found = {trace: number(row) for trace, row in rows.items()}
        if len(set(found.values())) > 1:
            said = ", ".join(f"{trace} {flops:,}" for trace, flops in found.items())
            raise NotInResult(f"the frameworks do other work ({said}): count the one that you use.")
        return next(iter(found.values()))

    @property
    def statement(self) -> pandas.DataFrame:
        """The statement that the reports show first; ``between`` has the others. Raises NotInResult if there is none."""
        from ..core.errors import NotInResult
        from ..report.frames import lines
        from ..report.view import default_statement

        statement = default_statement(self.result)
        if statement is None:
            raise NotInResult("there is no statement: no counter ran.")
        return lines(statement)

    def between(self, from_: str, to: str) -> pandas.DataFrame:
        """The statement from one counter, or ``trace@tf`` or ``trace@torch``, to another. Raises NotInResult."""
        from ..core.errors import NotInResult
        from ..engine.statements import statement_between
        from ..report.frames import lines

        statement = statement_between(self.result, from_, to)
        if statement is None:
            there = [*(x.counter for x in self.result.ledgers), *(t.name for t in self.result.traces)]
            raise NotInResult(f"there is no statement from {from_} to {to}; there are {', '.join(there)}.")
        return lines(statement)

    def write(self, folder: str | Path, formats: Sequence[str] = ("md", "csv", "json"), name: str = "") -> list[Path]:
        """Write the reports as ``<name>.<format>``, by default named like the model, and the pass where it is a
        training step. Returns the files.

        Every file is written whole or not at all. Raises UsageError for a format that is none, for a disclosure of a run
        that is no training step, and for a folder that cannot be written to.
        """
        from ..core import atomic
        from ..core.errors import check_names
        from ..core.option import FORMATS
        from ..core.registry import added_formats
        from ..report import reports

        check_names("format", formats, (*FORMATS, *added_formats()))
        atomic.prepare(Path(folder))
        stem = name or reports.stem(self.result.model, pass_=self.result.pass_)
        return atomic.write(Path(folder), stem, reports.render(self.result, tuple(formats), name=stem))

    def __str__(self) -> str:
        from ..report.view import summary

        return escape_line(summary(self.result))

    def __repr__(self) -> str:
        return f"<reconcile.{type(self).__name__} of {escape_line(self.result.model)}: {self}>"

    def _repr_html_(self) -> str:
        from ..report.document.html import to_fragment
        from ..report.notebook import describe_run

        return to_fragment(describe_run(self.result))

    def _repr_markdown_(self) -> str:
        from ..report.document.markdown import to_markdown
        from ..report.notebook import describe_run

        return to_markdown(describe_run(self.result))


@dataclass(frozen=True, slots=True, repr=False)
class Run(Found):
    """What ``reconcile.run`` returns: ``result`` is the whole record, the rest are views of it."""

    result: Answer
