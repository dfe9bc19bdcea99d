"""The verdict of a run: which counters are right, which are off, by how much and why, and the number to publish.

It is a pure function of the results, computed once; terminal, Markdown, JSON, notebook and the Python interface render it.
It gives a number only if the trace is complete, no counter leaves a difference to it unexplained, and the model was built
as it is, not by a counter's recipe. Otherwise the verdict says why there is no number, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.causes import State
from ..core.number_format import number, percent
from ..core.records import CALLED_WITH, OWN_STEP
from ..core.registry import known_counters, title
from ..core.results import LedgerResult, RunResult, Statement, TraceResult
from ..core.work import COMPONENTS
from . import citation
from .breakdown import RESIDUAL

GIVE_FORMULAS = "Give the work of these ops in a Python file and run again with --formulas FILE.py."

_TENSOR_SIZES = re.compile(r"\b[a-z]+\d* \(([\d, ]*)\)")


@dataclass(frozen=True, slots=True)
class CounterVerdict:
    """One counter compared with the work that ran, in FLOPs under the run's convention.

    ``off`` is counter minus work, None if unknown; ``causes`` are the amounts to add to the counter to arrive at the work,
    by cause (and a residual that is not 0), the largest first; ``incomplete`` names the trace if its gaps are the reason
    that ``off`` is unknown.
    """

    ledger: LedgerResult
    statement: Statement | None
    work: int | None
    off: int | None
    causes: tuple[tuple[str, int], ...] = ()
    incomplete: str = ""

    @property
    def state(self) -> State:
        """State of the counter's statement to its trace; of the ledger if there is no such statement."""
        return self.ledger.state if self.statement is None else self.statement.state

    @property
    def exact(self) -> bool:
        """Whether it counts the work that ran entry by entry; a right total from errors that offset each other is not exact."""
        return self.off == 0 and self.state is State.EQUAL

    @property
    def ratio(self) -> float | None:
        """The counter's normalised total over the work that ran; None if either is unknown or no work ran."""
        if self.off is None or not self.work:
            return None
        return (self.work + self.off) / self.work

    @property
    def percent(self) -> str:
        """How far off, such as ``1.4 %``; '' if unknown."""
        return "" if self.off is None or self.work is None else percent(self.off, self.work)

    @property
    def largest(self) -> tuple[str, int] | None:
        """The cause of the largest amount, with that amount."""
        return self.causes[0] if self.causes else None


@dataclass(frozen=True, slots=True)
class Figure:
    """A number to publish: the work of one call or step, or of a program's steps together, under the run's convention.

    Attributes:
        frameworks: The frameworks in which this number ran.
        flops: The number, in FLOPs.
        macs: The same in multiply-adds; None if the convention counts anything else too.
        subject: What ran, as the citation names it.
        inputs: The inputs that it was called with, as text.
        batch: The batch size; None if it is unknown.
        leading: Without ``batch``, the first dimension that all inputs share, if it is more than 1; None otherwise.
        counters: The counters that report exactly this number and may be cited for it.
        notes: How the trace was taken, such as loop counts read from one run on the example input.
        sentence: The citation.
    """

    frameworks: tuple[str, ...]
    flops: int
    macs: int | None
    subject: str
    inputs: str
    batch: int | None
    leading: int | None
    counters: tuple[str, ...]
    notes: tuple[str, ...]
    sentence: str

    @property
    def caution(self) -> str:
        """What to consider before you publish the number as that of one sample; '' if nothing."""
        if self.batch is not None and self.batch > 1:
            return (
                f"This is the number of a batch of {number(self.batch)}. For that of one sample, run with a batch of 1."
            )
        if self.leading is not None:
            return (
                f"The first dimension of every input is {number(self.leading)}. If that is the batch, this is the number of "
                "the whole batch: for that of one sample, run with 1 there."
            )
        return ""


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why there is no number to publish for a framework, and what to do about it."""

    framework: str
    reason: str
    remedy: str

    @property
    def sentence(self) -> str:
        """``No number to publish for PyTorch: ... Do this.``"""
        where = f" for {title(self.framework)}" if self.framework else ""
        return f"No number to publish{where}: {self.reason.rstrip('.')}. {self.remedy}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``counters`` in the order of the run; one figure per number; ``difference`` says what separates two of them."""

    counters: tuple[CounterVerdict, ...]
    figures: tuple[Figure, ...]
    withheld: tuple[Withheld, ...]
    difference: str = ""

    @property
    def exact(self) -> tuple[str, ...]:
        """Counters that may be cited as they are."""
        return tuple(name for figure in self.figures for name in figure.counters)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to consider before publishing, without duplicates."""
        return tuple(dict.fromkeys(figure.caution for figure in self.figures if figure.caution))


def verdict(result: RunResult) -> Verdict:
    """Judge a run: each counter, and the numbers to publish or why there are none."""
    counters = counters_of(result)
    figures: list[Figure] = []
    withheld: list[Withheld] = []
    standing = []
    for trace in result.traces:
        own = [v for v in counters if v.ledger.framework == trace.framework]
        why = _why_withheld(result, trace, own)
        if why is not None:
            withheld.append(why)
        else:
            standing.append(trace)
    alike: list[list[TraceResult]] = []
    for trace in standing:
        same = (s for s in alike if (b := _trace_statement(result, s[0], trace)) is not None and b.state is State.EQUAL)
        group = next(same, None)
        if group is None:
            alike.append([trace])
        else:
            group.append(trace)
    figures += [_make_figure(result, group, counters) for group in alike]
    if not result.traces:
        withheld.append(Withheld("", "nothing was traced", "Run with a framework that is installed."))
    differing = [b for group in alike[1:] if (b := _trace_statement(result, alike[0][0], group[0])) is not None]
    difference = " ".join(filter(None, (citation.difference_sentence(between, standing) for between in differing)))
    return Verdict(counters, tuple(figures), tuple(withheld), difference)


def counters_of(result: RunResult) -> tuple[CounterVerdict, ...]:
    """How far off each counter is, and why: one verdict per ledger, in their order."""
    by_ends = {(s.from_, s.to): s for s in result.statements}
    traces = {t.framework: t.name for t in result.traces}
    holes = {t.framework: t.name for t in result.traces if t.unknown}
    return tuple(
        _counter_verdict(x, by_ends.get((x.counter, traces.get(x.framework, ""))), holes.get(x.framework, ""))
        for x in result.ledgers
    )


def _counter_verdict(ledger: LedgerResult, statement: Statement | None, incomplete: str) -> CounterVerdict:
    if statement is None or statement.from_total is None or statement.to_total is None:
        return CounterVerdict(ledger, statement, None, None, (), incomplete)
    lines = [(cause.value, amount) for cause, amount in statement.by_cause().items()]
    if statement.residuals:
        lines.append((RESIDUAL, sum(r.amount for r in statement.residuals)))
    ranked = tuple(sorted(lines, key=lambda line: -abs(line[1])))
    off = statement.from_total - statement.to_total
    return CounterVerdict(ledger, statement, statement.to_total, off, ranked)


def _why_withheld(result: RunResult, trace: TraceResult, counters: Sequence[CounterVerdict]) -> Withheld | None:
    """Why this trace's total cannot be published, or None."""
    if trace.unknown:
        first, more = trace.unknown[0], len(trace.unknown) - 1
        rest = f" and {number(more)} more" if more else ""
        if not first.lacks_formula:
            where = f"at layer {first.layer}, " if first.layer else ""
            name = "" if first.op.startswith("(") else f"{first.op}: "  # it is no op: something that was not seen
            return Withheld(
                trace.framework,
                where + name + first.reason + (f" (and {number(more)} more like it)" if more else ""),
                "Change that and run again.",
            )
        where = f" at layer {first.layer}" if first.layer else ""
        complete = "".join(f" Under {name} the trace is complete: --convention {name}." for name in trace.totals)
        return Withheld(trace.framework, f"the work of {first.op}{where}{rest} is not known", GIVE_FORMULAS + complete)
    if not trace.complete or result.convention.name not in trace.totals:
        failed = "If your model causes this, change it; else please report it with the JSON file."
        advice = failed if trace.state is State.FAILED else "Fix that and run again."
        return Withheld(trace.framework, trace.reason or "there is no trace", advice)
    known = known_counters()
    named = (v.ledger.counter for v in counters)
    recipe = next((name for name in named if name in known and known[name].recipe), "")
    if recipe and not citation.list_user_names(result.params, [trace.framework]):
        reason = f"{recipe} builds the model in its own way, and this is the work of that build"
        return Withheld(trace.framework, reason, "To get the work of the model as it is, run without this counter.")
    open_ = [v for v in counters if v.state is State.UNEXPLAINED or v.ledger.mismatches]
    if open_:
        names = " and ".join(v.ledger.counter for v in open_)
        verb = "leaves" if len(open_) == 1 else "leave"
        return Withheld(
            trace.framework,
            f"{names} {verb} a difference that no cause explains, so either side may be wrong",
            "Look at the unexplained difference, and report it with the JSON file.",
        )
    return None


def _trace_statement(result: RunResult, one: TraceResult, other: TraceResult) -> Statement | None:
    """The statement from one trace to the other."""
    return next((s for s in result.statements if (s.from_, s.to) == (one.name, other.name)), None)


def _make_figure(result: RunResult, traces: Sequence[TraceResult], counters: Iterable[CounterVerdict]) -> Figure:
    convention = result.convention
    frameworks = tuple(trace.framework for trace in traces)
    verdicts = [v for v in counters if v.ledger.framework in frameworks]
    exact = [v.ledger for v in verdicts if v.exact]
    flops = traces[0].totals[convention.name]
    macs = None  # a number of multiply-adds alone can also be given in MACs
    if convention.mac and not convention.weighs(set(COMPONENTS) - {"mac"}):
        macs = sum(row.work.mac - (row.work.masked if convention.masked else 0) for row in traces[0].rows)
    inputs = citation.inputs(result.inputs, frameworks)
    batch = _batch_parameter(result.params)
    subject = citation.subject(result, frameworks)
    own = next((n.removeprefix(OWN_STEP) for t in traces for n in t.notes if n.startswith(OWN_STEP)), "")
    work_counted = citation.counted_work(subject, frameworks, inputs, batch, result.pass_, own, traces[0].steps)
    counted_by = citation.counted_by(result, traces, exact, [v.ledger.counter for v in verdicts if v.off is not None])
    return Figure(
        frameworks=frameworks,
        flops=flops,
        macs=macs,
        subject=subject,
        inputs=inputs,
        batch=batch,
        leading=_leading_dimension(inputs)
        if batch is None and not own
        else None,  # a program's step may take several batches
        counters=tuple(ledger.counter for ledger in exact),
        notes=tuple(
            f"{t.name}: {note}" for t in traces for note in t.notes if not note.startswith((CALLED_WITH, OWN_STEP))
        ),
        sentence=f"{citation.quantity(flops, macs)} per {work_counted}, by the {citation.convention_text(convention)}"
        f"{citation.masks(convention, traces[:1])}; {counted_by}.",
    )


def _batch_parameter(params: Mapping[str, object]) -> int | None:
    """The pair's parameter ``batch``; for a user's own model nothing says which dimension is the batch."""
    batch = params.get("batch")
    return batch if isinstance(batch, int) and not isinstance(batch, bool) else None


def _leading_dimension(inputs: str) -> int | None:
    """The first dimension of every input, from ``float32 (8, 3), int64 (8,)``; None if they differ or it is 1."""
    firsts = {sizes.split(",")[0].strip() for sizes in _TENSOR_SIZES.findall(inputs)}
    if len(firsts) != 1:
        return None
    (first,) = firsts
    return int(first) if first and int(first) > 1 else None
