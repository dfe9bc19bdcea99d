"""The gallery's second page (training.md): the exact work of a training step, as a ratio to the forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...core.causes import State
from ...core.conventions import ALL, MATMUL
from ...core.records import (
    FORWARD,
    INPUT_GRADIENT,
    OPTIMIZER,
    RECOMPUTATION,
    WEIGHT_GRADIENT,
)
from ...core.registry import choose_leading, frameworks, known_counters, title
from ...core.results import Statement
from ...core.text import markdown, multiple, number
from ...engine.answer import Answer
from ...report.reports import stem
from .markdown import cell, group_rows, not_closed
from .rows import CounterCell, is_reconciled
from .training import TrainingRow

COLUMNS = (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, RECOMPUTATION)
PAGE = "training"


def command(model: str, at: Mapping[str, str], device: str) -> str:
    """The command that writes a model's report of its training step at these settings."""
    words = [f"reconcile run --model {model}", *(f"--set {name}={value}" for name, value in at.items())]
    from_, to = _ends()
    return " ".join(
        [*words, *([f"--device {device}"] if device != "cpu" else []), f"--pass training --from {from_} --to {to}"]
    )


def headline(result: Answer) -> Statement | None:
    """The first statement of a model's report: of the counter that sees gradients best, not thousands of lines of another one."""
    ends = _ends()
    return next((s for s in result.statements if (s.from_, s.to) == ends), None)


def _ends() -> tuple[str, str]:
    """From the leading counter of a step to the work of its framework."""
    name = choose_leading("step")[0]
    return name, frameworks()[known_counters()[name].framework].trace


def to_markdown(rows: Mapping[str, TrainingRow], missing: Mapping[str, str]) -> str:
    """``reports/training.md``; ``missing`` maps models that the zoo should have to the reason why they are missing."""
    clean = sum(is_reconciled(row) for row in rows.values())
    lines = [
        "# Training steps of the gallery",
        "",
        "<!-- Written by `reconcile zoo gallery --pass training`; edit that, not this. -->",
        "",
        f"One training step of {len(rows)} pairs, {clean} of them reconciled to residual 0 under `matmul`, `all` and "
        "`textbook`: the forward pass in train mode, the mean of squares of every output as the loss, gradients with "
        "respect to the weights (none with respect to the model's input), one step of SGD.",
        "",
        "*Backward is twice forward*, people say. *Backward / forward* has the gradients with respect to activations and to "
        "weights over the forward pass (loss, recomputation and update left out), under `matmul` and under `all`. It is "
        "below 2 where the first layer needs no gradient of its input, and where inputs are looked up instead of "
        "multiplied. A model's name leads to its report, which has the same ratio for every layer. The counters' cells are "
        "ratios to the whole step's work under `matmul`: **1** is exact; below it stands the largest cause of the "
        "difference.",
        *_explain_missing_columns(rows),
    ]
    seeing = _counters_with_numbers(rows)
    for heading, group in group_rows(rows):
        lines += ["", f"## {heading}", "", *_table(list(group), seeing)]
    lines += ["", *not_closed(rows, missing)]
    return "\n".join(lines).rstrip() + "\n"


def _table(rows: list[TrainingRow], counters: list[str]) -> Iterable[str]:
    columns = [phase for phase in COLUMNS if any(_has(row, phase) for row in rows)]
    heads = [*columns, "backward / forward", "under `all`", f"{OPTIMIZER}, `all`", *counters]
    yield "| model | in | " + " | ".join(heads) + " |"
    yield "|:--|:--|" + "--:|" * len(heads)
    for row in rows:
        first = f"[{markdown(row.model)}]({stem(row.model, training=True)}.md)"
        first += "".join(f"<br>{markdown(name)} {markdown(value)}" for name, value in row.at.items())
        first += f"<br>on {row.device}" if row.device != "cpu" else ""
        first += "" if is_reconciled(row) else "<br>not reconciled"
        cells = [cell(row.cells.get(counter)) for counter in counters]
        for group in _sides(row):
            work = row.work[group[0]]
            numbers = [number(work[MATMUL.name].get(phase, 0)) for phase in columns]
            numbers += [_over(row, group[0], name) for name in (MATMUL.name, ALL.name)]
            numbers.append(number(work[ALL.name].get(OPTIMIZER, 0)))
            yield f"| {first} | {', '.join(map(title, group))} | " + " | ".join([*numbers, *cells]) + " |"
            first, cells = "", [""] * len(counters)
        if not row.work:
            yield f"| {first} | unknown | " + " | ".join([*[""] * (len(columns) + 3), *cells]) + " |"


def _counters_with_numbers(rows: Mapping[str, TrainingRow]) -> list[str]:
    """Counters that have a number for at least one of the models."""
    return list(dict.fromkeys(name for row in rows.values() for name, entry in row.cells.items() if _sees(entry)))


def _sees(entry: CounterCell) -> bool:
    return entry.total is not None or entry.state != State.NOT_COMPARABLE.value


def _explain_missing_columns(rows: Mapping[str, TrainingRow]) -> Iterable[str]:
    """A sentence on the counters without a column, with the reasons."""
    seeing = _counters_with_numbers(rows)
    why = {name: entry.reason for row in rows.values() for name, entry in row.cells.items() if name not in seeing}
    if why:
        yield ""
        yield "Not in the tables: " + "; ".join(markdown(reason) for reason in why.values()) + "."


def _sides(row: TrainingRow) -> list[list[str]]:
    """The frameworks in groups; those of a group do exactly the same work."""
    groups: list[list[str]] = []
    for name, work in row.work.items():
        same = next((g for g in groups if row.work[g[0]] == work), None)
        if same is None:
            groups.append([name])
        else:
            same.append(name)
    return groups


def _over(row: TrainingRow, framework: str, convention: str) -> str:
    step = row.total(framework, convention)
    return multiple(step.backward, step.forward)


def _has(row: TrainingRow, phase: str) -> bool:
    return phase != RECOMPUTATION or any(work[MATMUL.name].get(phase) for work in row.work.values())
