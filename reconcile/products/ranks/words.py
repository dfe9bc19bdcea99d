"""Sentences and table rows about ranks, the same in the terminal output, the Markdown report and the HTML report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.causes import State
from ...core.number_format import format_signed, number, percent
from ...core.records import CALLED_WITH
from ...engine.citation import META_DEVICE
from ...report import view
from .files import Together, describe_missing, describe_mixed
from .ranked import ONLY_SOME_RANKS_RAN, Ranked, Traffic

TRAFFIC = ("ranks", "collective", "group", "calls", "bytes sent")


def ranks(numbers: Sequence[int]) -> str:
    """``0-7 × 8``: which ranks these are, and how many."""
    text = span(numbers)
    return text if len(numbers) == 1 else f"{text}  × {number(len(numbers))}"


def span(numbers: Sequence[int]) -> str:
    """``0-7``, ``0, 4-6``, ``0, 2, 4 ... 14``: which ranks these are."""
    runs: list[list[int]] = []
    for rank in numbers:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    if len(texts) > 4:
        texts = [*texts[:3], f"... {texts[-1]}"]
    return ", ".join(texts).replace(", ...", " ...")


def headline(result: Ranked) -> str:
    """The title of the page: the model, the pass, the ranks with their mesh, and the convention."""
    world, answer = result.world, result.folds[0].answer
    mesh = " x ".join(f"{name} {size}" for name, size in zip(world.mesh.names, world.mesh.sizes, strict=True))
    ran = f"{number(len(world.ran))} ran" if len(world.ran) < world.size else "each ran"
    return f"{answer.model}, {answer.pass_}, {number(world.size)} ranks ({mesh}; {ran}), convention {result.convention.name}"


def counters(result: Ranked) -> Iterator[str]:
    """A sentence for each counter; ranks of which it says the same share it."""
    found: dict[tuple[str, str], list[int]] = {}
    for fold in result.folds:
        for counter in fold.answer.verdict.counters:
            found.setdefault((counter.ledger.counter, view.describe_closing(counter)), []).extend(fold.ranks)
    for (counter_name, closing), numbers in found.items():
        yield f"{counter_name} on {_which(sorted(numbers), result.world.size)}: {closing}"


def _which(numbers: Sequence[int], world: int) -> str:
    if len(numbers) == world:
        return "each rank"
    return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {span(numbers)}"


def balance(result: Ranked) -> Iterator[str]:
    """Which rank does the most, if they differ."""
    found = result.balance()
    if found is None:
        return
    fold, times, layer = found
    beyond = percent(times.numerator - times.denominator, times.denominator)
    where = layer or "the model itself"
    yield f"balance: rank {fold.ranks[0]} does the most, {beyond} above the mean of all ranks; most of that is in {where}."


def traffic(result: Ranked) -> Iterator[tuple[str, ...]]:
    """A row per kind of collective and group; ranks that send equal amounts share it."""
    found: dict[Traffic, list[int]] = {}
    for fold, passed in zip(result.folds, result.traffic, strict=True):
        for each in passed:
            found.setdefault(each, []).extend(fold.ranks)
    for each, numbers in found.items():
        sent = "unknown" if each.payload is None else number(round(each.payload))
        yield ranks(sorted(numbers)), each.kind, f"{each.line} ({each.size})", number(each.calls), sent


def notes(result: Ranked) -> list[str]:
    """How the ranks were counted; what all of them say once."""
    on_meta = any(fold.trace.device == "meta" for fold in result.folds)
    first, *others = (fold.trace.notes for fold in result.folds)
    said = [f"ran on {META_DEVICE}: nothing shows that it runs with values"] * on_meta
    said += [*first, *(note for notes in others for note in notes if not note.startswith(CALLED_WITH))]
    return [view.as_sentence(note) for note in dict.fromkeys(said)]


def summary(result: Ranked) -> str:
    """The last line of ``reconcile run --ranks``: whether it is reconciled, and the sum; or why there is no sum."""
    statement, name = result.statement, result.convention.name
    lost = next((fold for fold in result.folds if name not in fold.trace.totals), None)
    if lost is not None:
        return f"Withheld: rank {lost.ranks[0]}: {lost.trace.reason}"
    if not result.whole:
        return ONLY_SOME_RANKS_RAN[0].upper() + ONLY_SOME_RANKS_RAN[1:]
    total = f"{number(result.world.size)} ranks do {number(result.totals[name])} FLOPs together ({name})."
    if any(answer.exit_code for answer in result.answers):
        return f"Not reconciled: a counter of a rank is not explained, see above. {total}"
    if statement is None:
        return f"Reconciled: {total} Compare them with one device: --against MODULE:FUNCTION."
    if statement.state in (State.EQUAL, State.EXPLAINED):
        return (
            f"Reconciled: {total} One device does {number(statement.to_total or 0)}; every FLOP between is explained."
        )
    gap = "" if statement.residual is None else f" Residual {format_signed(statement.residual)}."
    first = statement.reason.partition("; ")[0]
    return f"Not reconciled: {total}{gap} {view.as_sentence(first)}"


def describe_counters(found: Together) -> Iterator[str]:
    """What each counter said, and why the number of a rank is withheld; ranks of which it says the same share a line."""
    lines: dict[tuple[str, str], list[int]] = {}
    for rank, report in sorted(found.reports.items()):
        for counter in report["verdict"]["counters"]:
            causes = ", ".join(f"{each['cause']} {format_signed(each['amount'])}" for each in counter["causes"])
            lines.setdefault((counter["counter"], counter["reason"] or causes or "exact"), []).append(rank)
        for trace in report["traces"]:
            if trace["reason"]:
                lines.setdefault(("Withheld", trace["reason"]), []).append(rank)
    for (name, said), numbers in lines.items():
        yield f"{name} on {_which(numbers, found.world)}: {view.as_sentence(said)}"


def sum_of(found: Together) -> str:
    """The last line of ``reconcile ranks``: the sum of the reports, or why there is none."""
    if found.missing_ranks or found.is_mixed:
        return " ".join(filter(None, (describe_missing(found), describe_mixed(found))))
    if found.convention not in found.sum:
        return "Withheld: the number of a rank is not known, so there is no sum."
    total = f"{number(found.world)} ranks do {number(found.sum[found.convention])} FLOPs together ({found.convention})."
    return (
        f"Reconciled: {total}" if not found.exit_code else f"Not reconciled: a rank's counter is not explained. {total}"
    )
