"""The page and the CSV tables of a sweep: functions of the finished cells.

``describe_sweep`` is for people, with what each cell cost; ``to_csv`` is one row per counter, trace and refusal of a cell, the
same whenever the sweep is run; ``costs`` is one row per cell, never the same twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ...core import table
from ...core.atomic import safe
from ...core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED
from ...core.number_format import format_count, number, percent, ratio
from ...core.registry import title
from ...report.document import Block, Document, Inline, Items, Span, Table, Text, mark_code, tabulate
from .engine import Finished

COLUMNS = (
    "model", "framework", "counter", "unit", "reported", "normalised", "work", "residual", "state", "reason",
)  # fmt: skip
WHAT_TO_ADD = "What is to be added to a counter's total to arrive at the work, cause by cause:"
GIB = 1 << 30
FACTORY = re.compile(r"(?<=not run: )the factory \S+ raised ")
"""The part of a reason that names the model's factory: reasons are grouped without it."""


def verdict(one: Finished) -> str:
    """``reconciled`` (``traced`` where no counter ran), or what stands in the way, in a sentence."""
    if not one.outcome["traces"]:
        return "; ".join(_refusals(one))
    if one.exit_code == EXIT_OK:
        return "; ".join(["reconciled" if one.outcome["counters"] else "traced", *_refusals(one)])
    why = next(iter(one.outcome["open"]), "") or next((c["reason"] for c in one.outcome["counters"] if c["reason"]), "")
    return {EXIT_UNEXPLAINED: "not reconciled", EXIT_FAILED: "a counter failed"}[one.exit_code] + (
        f": {why}" if why else ""
    )


def _refusals(one: Finished) -> Iterator[str]:
    for framework, why in one.outcome["refused"].items():
        yield f"refused in {title(framework)}: {why}" if framework else f"not run: {why}"


def describe_sweep(finished: Sequence[Finished], command: str = "", reports: bool = True) -> Document:
    """The page; with ``reports`` every model that was run links to its own report beside it."""
    counters = _counters(finished)
    convention = _convention(finished)
    work = "matmul work" if convention == "matmul" else f"work ({convention})"
    titles = "|".join(
        ("model", *(f"{title}>" for title in (work, *counters, "residuals")), "verdict|wall s>|peak GiB>")
    )
    return Document(
        "Sweep",
        _sum_models(finished),
        (
            *map(Text, _sum_parts(finished)),
            tabulate(titles, (tuple(_model_cells(one, counters, reports)) for one in finished)),
            Text("A counter's column is its total as a ratio to the work that ran in its framework: 1 where they are the same."),
            *_introduce(WHAT_TO_ADD, _tabulate_causes(finished)),
            *_introduce("Ops whose work is unknown, op by op, and in how many models:", _tabulate_unknown(finished)),
            *_introduce("Why the others are not reconciled:", _tabulate_reasons(finished)),
            Items(tuple(_list_versions(finished))),
            Text(mark_code("Every total, residual and reason is in `sweep.csv`; what each cell cost, in `costs.csv`.")),
        ),
        all(one.exit_code == EXIT_OK for one in finished),
        command=command,
    )  # fmt: skip


def _introduce(text: str, table: Table) -> tuple[Block, ...]:
    return (Text(text), table) if table.rows else ()


def _convention(finished: Iterable[Finished]) -> str:
    return next((one.outcome["convention"] for one in finished if "convention" in one.outcome), "matmul")


def _counters(finished: Iterable[Finished]) -> list[str]:
    return list(dict.fromkeys(c["counter"] for one in finished for c in one.outcome["counters"]))


def _sum_models(finished: Sequence[Finished]) -> str:
    """How many there are, of each kind; they add up to the first number."""
    codes = Counter(one.exit_code for one in finished if one.outcome["traces"])
    return (
        f"{format_count(len(finished), 'model')}: {codes[EXIT_OK]} reconciled, "
        f"{codes[EXIT_UNEXPLAINED]} not, {codes[EXIT_FAILED]} in which a "
        f"counter failed, {len(finished) - sum(codes.values())} that could not be run."
    )


def _sum_parts(finished: Sequence[Finished]) -> Iterator[str]:
    """Sentences on the models that ran and on the totals of their counters."""
    ran = [one for one in finished if one.outcome["traces"]]
    clean = [one for one in ran if one.exit_code == EXIT_OK]
    if ran and len(clean) < len(finished):
        share = percent(len(clean), len(ran))
        yield f"{len(ran)} of the {len(finished)} listed could be built and ran; of these, {share} are reconciled."
    partly = [one for one in ran if one.outcome["refused"]]
    if partly:
        yield f"Of those that ran, {len(partly)} are refused in one framework by their own code."
    counters = [c for one in ran for c in one.outcome["counters"]]
    settled = [c for c in counters if c["residual"] is not None]
    exact = sum(c["normalised"] == c["work"] for c in settled)
    off = sum(bool(c["residual"]) for c in settled)
    yield (
        f"{len(counters)} totals of counters: {exact} exact, {len(settled) - exact - off} off and explained to the last unit, "
        f"{off} with a residual, {len(counters) - len(settled)} without a statement."
    )
    yield from _sum_frameworks(ran)


def _sum_frameworks(ran: Iterable[Finished]) -> Iterator[str]:
    """How many ran in several frameworks, and in how many of these the work is the same."""
    found: dict[tuple[str, ...], list[bool]] = {}
    for one in ran:
        if between := one.outcome["between"]:
            frameworks = tuple(title(trace["framework"]) for trace in one.outcome["traces"])
            found.setdefault(frameworks, []).append(all(not b["causes"] and b["residual"] == 0 for b in between))
    if found and max(map(len, found)) <= 2:
        found = {(): [same for group in found.values() for same in group]}
    for frameworks, same in sorted(found.items(), key=lambda item: -len(item[0])):
        where, each = ("both frameworks", "either")
        if frameworks:
            where, each = (f"{', '.join(frameworks[:-1])} and {frameworks[-1]}", "each")
        rest = f"{sum(same)} with the same work in {each}, {len(same) - sum(same)} with another."
        yield f"{format_count(len(same), 'model')} ran in {where}: {rest}"


def _tabulate_causes(finished: Sequence[Finished]) -> Table:
    """What separates the counters from the work, in how many models, and how much of their work it is."""
    found: dict[tuple[str, str], list[Fraction | None]] = {}  # None: of no work there is no share
    for one in finished:
        for c in one.outcome["counters"]:
            for cause, amount in c["causes"].items():
                share = Fraction(amount, c["work"]) if c["work"] else None
                found.setdefault((c["counter"], cause), []).append(share)
    order = {name: place for place, name in enumerate(_counters(finished))}
    rows = []
    for (counter, cause), shares in sorted(found.items(), key=lambda f: (order[f[0][0]], -len(f[1]), f[0][1])):
        known = sorted((share for share in shares if share is not None), key=abs)
        ends = [_share(share) for share in (known[0], known[-1])] if known else ["", ""]
        rows.append((counter, cause, number(len(shares)), *ends))
    return tabulate("counter|cause|models>|least, of the work>|most, of the work>", rows)


def _tabulate_unknown(finished: Sequence[Finished]) -> Table:
    """The ops whose work is unknown, in how many models: under the convention of the sweep, and under others alone."""
    traces = [trace for one in finished for trace in one.outcome["traces"]]
    open_ = Counter(op for trace in traces for op in trace.get("unknown", ()))
    other = Counter(op for trace in traces for op in trace.get("unweighed", ()))
    ops = sorted({*open_, *other}, key=lambda op: (-open_[op], -other[op], op))
    here = f"models incomplete under {_convention(finished)}"
    titles = f"op|{here}>|models incomplete under other conventions alone>"
    return tabulate(titles, ((op, number(open_[op]), number(other[op])) for op in ops))


def _tabulate_reasons(finished: Sequence[Finished]) -> Table:
    """Why the rest is not reconciled: each reason once, with the models that it is true of."""
    models: dict[str, list[str]] = {}
    for one in finished:
        if one.exit_code != EXIT_OK:
            why = FACTORY.sub("", verdict(one))
            models.setdefault(why, []).append(one.name.rpartition(".")[2])
    ranked = sorted(models.items(), key=lambda item: (-len(item[1]), item[0]))
    return tabulate("reason|models>|which", ((why, number(len(of)), ", ".join(sorted(of))) for why, of in ranked))


def _share(part: Fraction) -> str:
    return ("-" if part < 0 else "+") + percent(part.numerator, part.denominator)


def _list_versions(finished: Iterable[Finished]) -> Iterator[str]:
    """What they ran on; where that is not the same everywhere, how many ran on what."""
    found = Counter(
        ", ".join(f"{name} {version}" for name, version in sorted(one.outcome["environment"].items()))
        for one in finished
        if one.outcome.get("environment")
    )
    for versions, models in found.items():
        yield f"{'All' if len(found) == 1 else format_count(models, 'model')} on {versions}."


def _model_cells(one: Finished, counters: Sequence[str], reports: bool) -> Iterator[Inline]:
    ran = bool(one.outcome["traces"])
    yield Span(one.name, link=f"{safe(one.name)}.md") if ran and reports else one.name
    yield _work(one.outcome["traces"])
    found = {c["counter"]: c for c in one.outcome["counters"]}
    yield from (_cell(found.get(name)) for name in counters)
    yield _residuals(one)
    yield verdict(one)
    yield f"{one.cost['wall_s']:.1f}" if "wall_s" in one.cost else ""
    yield f"{one.cost['peak_bytes'] / GIB:.2f}" if "peak_bytes" in one.cost else ""


def _work(traces: Sequence[Mapping[str, Any]]) -> str:
    known = {trace["work"] for trace in traces}
    if len(known) == 1 and None not in known:
        return number(known.pop())
    return "\n".join(f"{title(t['framework'])} {'unknown' if t['work'] is None else number(t['work'])}" for t in traces)


def _cell(counter: Mapping[str, Any] | None) -> str:
    if counter is None:
        return ""
    if counter["normalised"] is None or counter["work"] is None:
        return str(counter["state"]).replace("_", " ")
    text = ratio(counter["normalised"], counter["work"])
    return text if counter["state"] in ("equal", "explained") else f"{text} {counter['state']}"


def _residuals(one: Finished) -> str:
    """The one residual of all statements, or each that is not 0."""
    ends = [*one.outcome["counters"], *one.outcome["between"]]
    known = [end["residual"] for end in ends if end["residual"] is not None]
    rest = [number(residual) for residual in known if residual]
    return ", ".join(rest) or ("0" if known else "")


def to_csv(finished: Sequence[Finished]) -> str:
    """One row per counter of a cell, one per trace (``trace``) and one per framework that could not be run."""
    return table.format_report_csv(_rows(finished))


def _rows(finished: Sequence[Finished]) -> Iterator[tuple[object, ...]]:
    yield COLUMNS
    for one in finished:
        for trace in one.outcome["traces"]:
            work, state = trace["work"], (trace["state"], trace["reason"])
            yield (one.name, trace["framework"], "trace", "FLOP", work, work, work, "", *state)
        for c in one.outcome["counters"]:
            yield (one.name, c["framework"], *(c[name] for name in COLUMNS[2:]))
        for framework, why in one.outcome["refused"].items():
            yield (one.name, framework, "", "", "", "", "", "", "refused" if framework else "failed", why)


def costs(finished: Sequence[Finished]) -> str:
    """Wall time in seconds and the most memory that one of its processes held, in bytes, by cell; empty where unknown."""
    rows = [(one.name, one.cost.get("wall_s", ""), one.cost.get("peak_bytes", "")) for one in finished]
    return table.format_report_csv([("model", "wall_s", "peak_bytes"), *rows])
