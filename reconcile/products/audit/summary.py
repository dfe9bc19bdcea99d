"""Summary of an audit's verdicts, for its Markdown and HTML pages: counts of states, causes and readings, what the share that
is explained proves, the models with several figures, and the words that a reader may not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...core.causes import Cause
from ...core.number_format import number, percent
from ...core.records import FLOP, MAC
from ..decode.printed_figure import PARAMETER, figure
from .verdict import State, Verdict

HOW_SOURCES_ARE_READ = (
    "What a source counts is read from all of its rows together. The table says how much likelier its figures are with it than "
    "without it; what no reading explains is chance. The source of a row is what stands before the first comma or semicolon. No "
    "row is evidence for itself."
)
CAUSES = frozenset(cause.value for cause in Cause)


def words(verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """The words of a page of these verdicts, with what they mean."""
    said = [
        (
            "reading",
            "one way to count a model, such as its multiply-adds, or all of its operations (docs/decode.md).",
        )
    ]
    if any(v.best is not None for v in verdicts):
        said += [
            ("by chance", "the share of random figures of as many digits that a reading as simple as this one would explain."),
            ("alone", "one number only, of all readings of the model, has the digits of the figure."),
        ]  # fmt: skip
    if any(v.state is State.CUT for v in verdicts):
        said.append(
            (State.CUT.value, "the digits agree if the rest is dropped (3.87 as 3.8), where rounding gives 3.9.")
        )
    if any(v.best is not None and "textbook" in v.best.what for v in verdicts):
        said.append(
            ("textbook", "a sum of K products is 2K − 1 operations, K multiplications and K − 1 additions; else 2K.")
        )
    return said


def select_explained(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts on figures that are explained: a reading of the model rounds to the figure."""
    return [v for v in verdicts if v.state is State.EXPLAINED]


def states(verdicts: Sequence[Verdict]) -> str:
    """A sentence: how many figures have which verdict."""
    found = Counter(verdict.state for verdict in verdicts)
    return (
        f"{number(len(verdicts))} figures: "
        + "; ".join(f"{number(found[state])} {state.value}" for state in State)
        + "."
    )


def proves(verdicts: Sequence[Verdict], drawn: tuple[int, int]) -> tuple[str, ...]:
    """Sentences on the share that is explained, that of random figures, and what the difference proves."""
    looked = [verdict for verdict in verdicts if verdict.macs]
    if not looked:
        return ()
    found, (hits, draws) = select_explained(looked), drawn
    alone = sum(v.numbers == 1 for v in found)
    return (
        f"Of the {number(len(looked))} whose model ran, {percent(len(found), len(looked))} are explained. Of {number(draws)} "
        f"random figures for the same models, printed to the same place, {percent(hits, draws)} are ({number(hits)}): the "
        "share of the figures above that would be explained if they meant nothing.",
        f"A figure with few digits agrees with several readings: {number(alone)} of the {number(len(found))} explained ones "
        "agree with one number alone. Two decimals tell MACs from FLOPs, and they show that attention is missing; they seldom "
        "tell whether a bias or a norm was counted.",
    )


def kinds(verdicts: Sequence[Verdict]) -> list[tuple[str, int]]:
    """What the explained figures count, and what they leave out: how many of them."""
    found = select_explained(verdicts)
    units = Counter(v.best.unit for v in found if v.best is not None)
    wrong = Counter((v.claim.claim, v.best.unit) for v in found if v.best is not None and v.contradicts)
    causes = Counter(cause for v in found if (cause := cause_of(v)))
    lines = [(f"count {unit}s", units[unit]) for unit in (MAC, FLOP, PARAMETER) if units[unit]]
    lines += [(f"are called {claim} and count {unit}s", count) for (claim, unit), count in sorted(wrong.items())]
    return lines + [(f"leave something out: {cause}", count) for cause, count in sorted(causes.items())]


def cause_of(verdict: Verdict) -> str:
    """The cause by which the reading of a figure differs from the work that ran, '' for none."""
    cause = "" if verdict.best is None else verdict.best.note.partition(":")[0]
    return cause if cause in CAUSES else ""


def readings(verdicts: Sequence[Verdict]) -> list[tuple[str, int, int]]:
    """The readings that explain figures, the most frequent first: how many, and how many of these agree with no other number."""
    found = select_explained(verdicts)
    counts = Counter(v.best.what for v in found if v.best is not None)
    alone = Counter(v.best.what for v in found if v.best is not None and v.numbers == 1)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(what, count, alone[what]) for what, count in ranked]


def group_by_model(verdicts: Sequence[Verdict]) -> list[tuple[Verdict, ...]]:
    """The models with several figures for one input, the smallest first; those before others whose figures are further apart."""
    by_model: dict[tuple[str, str], dict[str, Verdict]] = {}
    for v in verdicts:
        if v.state not in (State.NOT_READ, State.NOT_RUN):
            by_model.setdefault((v.claim.model, v.claim.input), {}).setdefault(v.claim.printed, v)
    groups = [tuple(sorted(g.values(), key=_size)) for g in by_model.values() if len(g) > 1]
    return sorted(groups, key=lambda g: (-_size(g[-1]) / (_size(g[0]) or 1), name_model(g[0])))


def name_model(verdict: Verdict) -> str:
    """The model of a row, with its input."""
    return f"{verdict.claim.model} {verdict.claim.input}".strip()


def _size(verdict: Verdict) -> float:
    return float(figure(verdict.claim.printed).value)
