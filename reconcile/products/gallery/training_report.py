"""The gallery's second page (training.md): the exact work of a training step, as a ratio to the forward pass.

``write_report`` writes the report of the step of a single pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...core import atomic
from ...core.causes import State
from ...core.conventions import ALL, MATMUL
from ...core.number_format import multiple, number
from ...core.records import FORWARD, INPUT_GRADIENT, OPTIMIZER, RECOMPUTATION, WEIGHT_GRADIENT
from ...core.registry import choose_leading, frameworks, known_counters, title
from ...core.results import Statement
from ...engine.answer import Answer
from ...report import folds
from ...report.document import Column, Document, Heading, Inline, Span, Table, Text, mark_up
from ...report.document.markdown import to_markdown
from ...report.reports import find_formats, render, stem
from .report import describe_cell, group_rows, list_open
from .rows import is_reconciled
from .training import TrainingRow, settings_of

PHASES = (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, RECOMPUTATION)
PAGE = "training"
WHAT_THE_COLUMNS_HAVE = (
    "*Backward is twice forward*, people say. *Backward / forward* has the gradients with respect to activations and to "
    "weights over the forward pass (loss, recomputation and update left out), under `matmul` and under `all`. It is below 2 "
    "where the first layer needs no gradient of its input, and where inputs are looked up instead of multiplied. A model's "
    "name leads to its report, which has the same ratio for every layer. The counters' cells are ratios to the whole step's "
    "work under `matmul`: **1** is exact; below it stands the largest cause of the difference."
)


def command(model: str, at: Mapping[str, str], device: str) -> str:
    """The command that writes a model's report of its training step at these settings."""
    words = [f"reconcile run --model {model}", *(f"--set {name}={value}" for name, value in at.items())]
    from_, to = _ends()
    return " ".join(
        [*words, *([f"--device {device}"] if device != "cpu" else []), f"--pass training --from {from_} --to {to}"]
    )


def write_report(out: Path, model: str, result: Answer) -> None:
    """Write the report of a pair's step: Markdown, and any other format that is there."""
    name = stem(model, training=True)
    formats = ("md", *find_formats(out, name))
    atomic.write(out, name, render(result, formats, headline(result), command(model, *settings_of(model))))


def write_pages(out: Path, rows: Mapping[str, TrainingRow], missing: Mapping[str, str]) -> Path:
    """Write the page; returns its path."""
    return atomic.write(out, PAGE, {"md": to_markdown(describe_training(rows, missing))})[0]


def headline(result: Answer) -> Statement | None:
    """The first statement of a model's report: of the counter that sees gradients best, not thousands of lines of another one."""
    ends = _ends()
    return next((s for s in result.statements if (s.from_, s.to) == ends), None)


def _ends() -> tuple[str, str]:
    """From the leading counter of a step to the work of its framework."""
    name = choose_leading("step")[0]
    return name, frameworks()[known_counters()[name].framework].trace


def describe_training(rows: Mapping[str, TrainingRow], missing: Mapping[str, str]) -> Document:
    """``training.md``; ``missing`` maps models that the zoo should have to the reason why they are missing."""
    clean = sum(is_reconciled(row) for row in rows.values())
    blind = State.NOT_COMPARABLE.value
    cells = [(name, entry) for row in rows.values() for name, entry in row.cells.items()]
    seeing = list(dict.fromkeys(name for name, c in cells if c.total is not None or c.state != blind))
    why = {name: entry.reason for name, entry in cells if name not in seeing}
    groups = ((Heading(heading), _tabulate_steps(list(group), seeing)) for heading, group in group_rows(rows))
    return Document(
        "Training steps of the gallery",
        "",
        (
            Text(mark_up(
                f"One training step of {len(rows)} pairs, {clean} of them reconciled to residual 0 under `matmul`, `all` and "
                "`textbook`: the forward pass in train mode, the mean of squares of every output as the loss, gradients with "
                "respect to the weights (none with respect to the model's input), one step of SGD."
            )),
            Text(mark_up(WHAT_THE_COLUMNS_HAVE)),
            *([Text(f"Not in the tables: {'; '.join(why.values())}.")] if why else []),
            *(block for group in groups for block in group),
            *list_open(rows, missing),
        ),
        comment="Written by `reconcile zoo gallery --pass training`; edit that, not this.",
    )  # fmt: skip


def _tabulate_steps(rows: list[TrainingRow], counters: list[str]) -> Table:
    """A row for each model, and one more for each framework that does other work than those before it."""
    phases = [phase for phase in PHASES if any(_has(row, phase) for row in rows)]
    ratios = ("backward / forward", mark_up("under `all`"), mark_up(f"{OPTIMIZER}, `all`"))
    titles: tuple[Inline, ...] = (*phases, *ratios, *counters)
    cells: list[tuple[Inline, ...]] = []
    for row in rows:
        changed = "".join(f"\n{name} {value}" for name, value in row.at.items())
        changed += (f"\non {row.device}" if row.device != "cpu" else "") + (
            "" if is_reconciled(row) else "\nnot reconciled"
        )
        first: Inline = (Span(row.model, link=f"{stem(row.model, training=True)}.md"), changed)
        counted = [describe_cell(row.cells.get(counter)) for counter in counters]
        for group in _group_frameworks(row):
            work = row.work[group[0]]
            numbers = [number(work[MATMUL.name].get(phase, 0)) for phase in phases]
            steps = [row.total(group[0], name) for name in (MATMUL.name, ALL.name)]
            numbers += [multiple(step.backward, step.forward) for step in steps]
            numbers.append(number(work[ALL.name].get(OPTIMIZER, 0)))
            cells.append((first, ", ".join(map(title, group)), *numbers, *counted))
            first, counted = "", [""] * len(counters)
        if not row.work:
            cells.append((first, "unknown", *[""] * (len(phases) + 3), *counted))
    return Table((Column("model"), Column("in"), *(Column(title, "right") for title in titles)), tuple(cells))


def _group_frameworks(row: TrainingRow) -> list[list[str]]:
    """The frameworks in groups; those of a group do exactly the same work."""
    return folds.group_same(list(row.work), lambda name: folds.make_hashable(row.work[name]))


def _has(row: TrainingRow, phase: str) -> bool:
    return phase != RECOMPUTATION or any(work[MATMUL.name].get(phase) for work in row.work.values())
