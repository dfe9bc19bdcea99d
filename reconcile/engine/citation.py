"""Parts of the sentence with which you cite a FLOP count, joined in verdict.py, and the sentence on how two models differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.conventions import Convention
from ..core.number_format import format_count, format_signed, number, si
from ..core.records import CALLED_ONCE, DECODE, MAC, NOT_CALLED_AGAIN, PREFILL, TRAINING
from ..core.registry import known_counters, title
from ..core.results import Adjustment, LedgerResult, RunResult, Statement, TraceResult
from ..work.attention_masks import is_taken_whole


def quantity(flops: int, macs: int | None) -> str:
    """``3,632,960 FLOPs (3.63 MFLOPs, 1.82 MMACs)``: exact first, then rounded, and in MACs if ``macs`` is given."""
    rounded = [si(flops, "FLOPs")] if abs(flops) >= 1000 else []
    rounded += [] if macs is None else [si(macs, "MAC" if macs == 1 else "MACs")]
    return format_count(flops, "FLOP") + (f" ({', '.join(rounded)})" if rounded else "")


def subject(result: RunResult, frameworks: Sequence[str]) -> str:
    """The subject of the number: the factory as the user named it, else the pair with all its parameters."""
    given = list_user_names(result.params, frameworks)
    if given:
        return join_with_and(given)
    params = ", ".join(f"{name}={value}" for name, value in result.params.items())
    return result.model + (f"({params})" if params else "")


def list_user_names(params: Mapping[str, object], frameworks: Sequence[str]) -> list[str]:
    """The user's names for their own model in these frameworks; empty for a pair."""
    names = [params.get(framework) for framework in frameworks]
    return list(dict.fromkeys(map(str, names))) if all(isinstance(name, str) for name in names) else []


def inputs(given: Mapping[str, str], frameworks: Sequence[str]) -> str:
    """The model's inputs as text; listed per framework if they differ."""
    texts = {f: given[f] for f in frameworks if given.get(f)}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return join_with_and([f"{text} ({title(f)})" for f, text in texts.items()])


def counted_work(
    subject: str, frameworks: Sequence[str], inputs: str, batch: int | None, phases: str, own: str = "", steps: int = 1
) -> str:
    """``forward pass of net:Net in PyTorch on float32 (1, 1, 32, 32)``; ``own`` is what ran in a program's own step, or in
    several, which the number is of together."""
    counted = f"step of {subject} as the program runs it ({own})" if own else f"{_pass_text(phases)} of {subject}"
    if steps > 1:
        counted = f"{number(steps)} steps of {subject} together, as the program runs them ({own})"
    text = f"{counted} in {join_with_and([title(f) for f in frameworks])}"
    text += f" on {inputs}" if inputs else ""
    return text + (f" (a batch of {number(batch)})" if batch is not None and batch > 1 else "")


def _pass_text(phases: str) -> str:
    """``training step``, ``forward pass``, ``decoding step with a cache of 128 tokens``."""
    if phases == PREFILL:
        return "prefill (a call that fills the cache with the prompt)"
    if phases.startswith(DECODE + " "):
        return f"decoding step{phases.removeprefix(DECODE)}"
    return "training step" if phases == TRAINING else f"{join_with_and(phases.split('+'))} pass"


def convention_text(convention: Convention) -> str:
    """The convention's name with its meaning in words, else with its weights."""
    words = " ".join(convention.meaning.replace("`", "").split()).rstrip(".")
    if not words:
        weights = [f"{name} {weight}" for name, weight in convention.weights.items() if weight]
        words = "FLOPs per unit: " + (", ".join(weights) or "none")
    elif words[:1].isupper() and not words[1:2].isupper():
        words = words[0].lower() + words[1:]
    return f"convention {convention.name} ({words})"


def masks(convention: Convention, traces: Sequence[TraceResult]) -> str:
    """``, with 4 products taken whole, whose masks the trace does not show``; '' where there are none, or no mask matters."""
    whole = [row.calls for trace in traces for row in trace.rows if is_taken_whole(row.op, row.inputs)]
    if not convention.masked or not whole:
        return ""
    masks = "masks" if sum(whole) > 1 else "mask"
    return f", with {format_count(sum(whole), 'product')} taken whole, whose {masks} the trace does not show"


META_DEVICE = "meta, where tensors have no values"
"""A citation's name for the device on which nothing is computed."""


def counted_by(
    result: RunResult, traces: Sequence[TraceResult], exact: Sequence[LedgerResult], compared: Sequence[str]
) -> str:
    """The source of the number: the exact counters; else the trace alone, and the counters that do not agree with it."""
    tool = f"reconcile {result.environment['reconcile']}" if "reconcile" in result.environment else "reconcile"
    stand_in = f" on {META_DEVICE}" if any(trace.device == "meta" for trace in traces) else ""
    notes = [note for trace in traces for note in trace.notes]
    stand_in += " in one call (--quick)" if CALLED_ONCE in notes else ""
    stand_in += " in one call, since a second one failed" if any(n.startswith(NOT_CALLED_AGAIN) for n in notes) else ""
    if exact:
        believed = _describe_stated(traces)
        confirmed = f"{'recorded' if believed else 'confirmed'} op by op by {tool}{stand_in}{believed}"
        return f"counted by {join_with_and([_cite_ledger(ledger) for ledger in exact])}, {confirmed}"
    versions = {name: version for trace in traces for name, version in trace.versions.items()}
    on = (f" on {_versions(versions)}" if versions else "") + stand_in.replace(" on ", ", on ", 1)
    on += _describe_stated(traces)
    if len(compared) > 1:
        return f"recorded op by op by {tool}{on}; none of {join_with_and(compared)} is exact"
    return f"recorded op by op by {tool}{on}" + (f"; {compared[0]} is not exact" if compared else "")


def _describe_stated(traces: Sequence[TraceResult]) -> str:
    """The part of the number that a library states for its own ops and that nothing confirms."""
    stated = {name: flops for trace in traces for name, flops in trace.stated.items()}
    parts = [f"{format_count(flops, 'FLOP')} of {name}" for name, flops in stated.items()]
    return f"; nothing confirms {join_with_and(parts)}: a formula of its own library states them" if parts else ""


def _cite_ledger(ledger: LedgerResult) -> str:
    """``title (package 0.1.1, framework 2.13.0; as 1,816,480 MACs)``: with the number as that counter prints it."""
    title = (known_counters()[ledger.counter].title if ledger.counter in known_counters() else "") or ledger.counter
    details = [_versions(ledger.versions)] if ledger.versions else []
    if ledger.unit == MAC and ledger.total is not None:
        details.append(f"as {format_count(ledger.total, MAC)}")
    return title + (f" ({'; '.join(details)})" if details else "")


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {versions[name]}" for name in sorted(versions))


def difference_sentence(between: Statement, traces: Sequence[TraceResult]) -> str:
    """``The two models differ: PyTorch does 80 FLOPs less than TensorFlow: implementation-differs -80 at loop (...).``"""
    if between.from_total is None or between.to_total is None:
        return ""
    titles = {trace.name: title(trace.framework) for trace in traces}
    apart = between.to_total - between.from_total
    first, second = titles[between.from_], titles[between.to]
    more = f"{format_count(abs(apart), 'FLOP')} {'more' if apart > 0 else 'less'} than {first}"
    lines = sorted(between.adjustments, key=lambda line: -abs(line.amount))
    shown = [f"{a.cause.value} {format_signed(a.amount)} at {a.layer or '(no layer)'}{_formula(a)}" for a in lines[:3]]
    if len(lines) > len(shown):
        rest = lines[len(shown) :]
        shown.append(f"{number(len(rest))} more, {format_signed(sum(a.amount for a in rest))} in all")
    return f"The two models differ: {second} does {more if apart else f'as many as {first}'}: {'; '.join(shown)}."


def _formula(line: Adjustment) -> str:
    sources = dict.fromkeys(e.formula for e in line.evidence if e.formula)
    return f" ({', '.join(sources)})" if sources else ""


def join_with_and(words: Sequence[str]) -> str:
    """The words as a sentence lists them: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))
