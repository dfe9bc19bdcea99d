"""Output of ``reconcile run --ncu``: the GPU's count beside the trace, for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...core.text import clean, format_signed, markdown, number, percent, si
from ...report.json_statements import statement_data
from ...report.terminal.columns import Column, laid_out, widen
from ...report.terminal.tables import statement_table
from .witness import GPU, Row, Witness

SCHEMA = 1
HEADS = ("layer", "operator", "GPU", "trace", "to the trace", "cause")


def summary(found: Witness) -> str:
    """The last line: how much of the trace the GPU bears witness to."""
    whole = sum(row.trace for row in found.rows)
    lacks = [row for row in found.rows if not row.witnessed]
    share = f"{number(found.witnessed)} of {number(whole)} FLOP of products are witnessed by the GPU's own counters"
    if found.exit_code == 0:
        return f"{share}: every product, kernel by kernel."
    ran = (
        f"; kernels outside the trace multiplied {number(sum(row.gpu for row in found.foreign))} FLOP"
        if found.foreign
        else ""
    )
    part = f" ({percent(found.witnessed, whole)})" if whole else ""
    return f"{share}{part}; {len(lacks)} operators are not{ran}."


def notes(found: Witness) -> Iterator[str]:
    """How the kernels were counted."""
    yield (
        f"The file has {number(found.kernels)} launches of kernels. FLOP of a kernel: the operations of its tensor cores, else 2 "
        "for each multiply-add of its threads if it is a kernel for products. Kernels that work element by element are left out."
    )
    yield (
        "What tiles have beyond the tensors follows from a kernel's name, its grid and the sizes, not from its count. What no "
        "rule predicts stays in the residual."
    )


def cause(row: Row) -> str:
    """The causes of a row's difference, or why it has none."""
    if row.residual:
        return f"unexplained: {row.reason}"
    if not row.lines:
        return "equal"
    return "; ".join(f"{cause.value} {format_signed(amount)} ({why})" for cause, amount, why in row.lines)


def _cells(row: Row) -> tuple[str, ...]:
    calls = f" x {row.calls}" if row.calls > 1 else ""
    amounts = (number(row.gpu), number(row.trace), format_signed(row.trace - row.gpu) if row.trace != row.gpu else "0")
    return (row.layer or "(model)", row.op + calls, *amounts, cause(row))


def show(
    found: Witness, console: Console, files: Sequence[Path], *, quiet: bool = False, verbose: bool = False
) -> None:
    """Print the statement and the operators that differ; ``verbose`` prints them all, ``quiet`` the last line alone."""
    widen(console)
    parts: list[RenderableType] = []
    if not quiet:
        title = Text(f"From {GPU} to the {found.statement.to}", style="bold")
        parts += [Text(), title, statement_table(found.statement, limit=None if verbose else 12, width=console.width)]
        rows = [_cells(row) for row in (*found.rows, *found.foreign) if verbose or row.lines or row.residual]
        if (
            table := _table(rows, console.width) if rows else None
        ):  # where it does not fit, the statement has the same lines
            parts += [Text(), Text("Operator by operator", style="bold"), table]
        parts += [Text(), *(Text(clean(note), style="dim") for note in notes(found))]
    style = "bold green" if found.exit_code == 0 else "bold red"
    parts.append(Text(clean(summary(found)), style=style))
    if files and not quiet:
        parts.append(Text("wrote " + ", ".join(clean(str(file)) for file in files), style="dim"))
    console.print(Group(*parts), highlight=False, soft_wrap=False)


def _table(rows: Sequence[tuple[str, ...]], width: int) -> RenderableType | None:
    columns = [
        Column(HEADS[0]),
        Column(HEADS[1]),
        *(Column(head, "right") for head in HEADS[2:5]),
        Column(HEADS[5], "left"),
    ]
    return laid_out(columns, rows, width)


def render(found: Witness, formats: tuple[str, ...], model: str, command: str) -> dict[str, str | bytes]:
    """The reports by the end of their file names: ``kernels.md`` and ``kernels.json``."""
    texts: dict[str, str | bytes] = {}
    if "md" in formats:
        texts["kernels.md"] = to_markdown(found, model, command)
    if "json" in formats:
        texts["kernels.json"] = json.dumps(to_dict(found, model), indent=1) + "\n"
    return texts


def to_dict(found: Witness, model: str) -> dict[str, Any]:
    """As plain data; amounts are whole FLOP."""
    return {
        "schema": SCHEMA,
        "model": model,
        "exit_code": found.exit_code,
        "summary": summary(found),
        "launches": found.kernels,
        "witnessed": found.witnessed,
        "operators": [
            {
                "layer": row.layer,
                "op": row.op,
                "calls": row.calls,
                "gpu": row.gpu,
                "trace": row.trace,
                "kernels": list(row.kernels),
                "causes": [{"cause": cause.value, "amount": amount, "why": why} for cause, amount, why in row.lines],
                "residual": row.residual,
                "reason": row.reason,
            }
            for row in (*found.rows, *found.foreign)
        ],
        "statements": [statement_data(found.statement)],
    }


def to_markdown(found: Witness, model: str, command: str) -> str:
    """The page."""
    statement = found.statement
    total = statement.from_total or 0
    lines = [f"# {markdown(model)}, kernel by kernel", "", markdown(summary(found)), ""]
    lines += ["| from the GPU to the trace | FLOP |", "|:--|--:|", f"| **{GPU}** ({si(total)}) | **{number(total)}** |"]
    lines += [f"| {cause.value} | {format_signed(amount)} |" for cause, amount in statement.by_cause().items()]
    lines += [
        f"| residual | {format_signed(statement.residual or 0)} |",
        f"| **{statement.to}** | **{number(statement.to_total or 0)}** |",
    ]
    lines += ["", "## Operator by operator", "", f"| {' | '.join(HEADS)} | kernels |", "|:--|:--|--:|--:|--:|:--|:--|"]
    lines += [
        f"| {' | '.join(map(markdown, (*_cells(row), ', '.join(row.kernels))))} |"
        for row in (*found.rows, *found.foreign)
    ]
    lines += ["", "## How it was counted", "", *(f"- {markdown(note)}" for note in notes(found))]
    return "\n".join([*lines, *(["", f"`{command}`"] if command else [])]) + "\n"
