"""Output of ``reconcile run --ncu``: the GPU's count beside the trace, for the terminal, as Markdown, JSON and HTML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...core.number_format import format_signed, number, percent
from ...report.document import Column, Document, Heading, Items, Statement, Table, section
from ...report.document.html import to_html
from ...report.document.markdown import to_markdown
from ...report.json_statements import statement_data
from ...report.json_text import fields_of
from .witness import GPU, Row, Witness

SCHEMA = 1
HEADS = (
    Column("layer"), Column("operator"), Column("GPU", "right"), Column("trace", "right"), Column("to the trace", "right"),
    Column("cause"),
)  # fmt: skip


def summary(found: Witness) -> str:
    """The last line: how much of the trace the GPU bears witness to."""
    whole = sum(row.trace for row in found.rows)
    lacks = [row for row in found.rows if not row.is_witnessed]
    share = (
        f"{number(found.witnessed_flops)} of {number(whole)} FLOP of products are witnessed by the GPU's own counters"
    )
    if found.exit_code == 0:
        return f"{share}: every product, kernel by kernel."
    ran = (
        f"; kernels outside the trace multiplied {number(sum(row.gpu for row in found.foreign))} FLOP"
        if found.foreign
        else ""
    )
    part = f" ({percent(found.witnessed_flops, whole)})" if whole else ""
    return f"{share}{part}; {len(lacks)} operators are not{ran}."


def notes(found: Witness) -> Iterator[str]:
    """Sentences on how the kernels were counted, and what is not."""
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


def describe_kernels(found: Witness, model: str, command: str = "", *, verbose: bool = True) -> Document:
    """The page: the statement from the GPU to the trace, and the operators; without ``verbose`` those that differ alone, without
    their kernels."""
    columns = (*HEADS, Column("kernels")) if verbose else HEADS
    rows = [
        (
            row.layer or "(model)",
            row.op + (f" x {row.calls}" if row.calls > 1 else ""),
            *(number(row.gpu), number(row.trace), format_signed(row.trace - row.gpu)),
            cause(row),
            *([", ".join(row.kernels)] if verbose else []),
        )
        for row in (*found.rows, *found.foreign)
        if verbose or row.lines or row.residual
    ]
    return Document(
        f"{model}, kernel by kernel",
        summary(found),
        (
            Heading(f"From {GPU} to the {found.statement.to}"),
            Statement(found.statement, limit=None if verbose else 12),
            *section("Operator by operator", Table(columns, tuple(rows))),
            *section("How it was counted", Items(tuple(notes(found)), "dim")),
        ),
        found.exit_code == 0,
        command=command,
    )


def render(found: Witness, formats: tuple[str, ...], model: str, command: str) -> dict[str, str | bytes]:
    """The reports by the end of their file names: ``kernels.md``, ``kernels.json``, ``kernels.html``."""
    texts: dict[str, str | bytes] = {}
    if "md" in formats:
        texts["kernels.md"] = to_markdown(describe_kernels(found, model, command))
    if "json" in formats:
        texts["kernels.json"] = json.dumps(to_dict(found, model), indent=1) + "\n"
    if "html" in formats:
        texts["kernels.html"] = to_html(describe_kernels(found, model, command))
    return texts


def to_dict(found: Witness, model: str) -> dict[str, Any]:
    """The content of ``kernels.json``; amounts are whole FLOP."""
    return {
        "schema": SCHEMA,
        "model": model,
        "exit_code": found.exit_code,
        "summary": summary(found),
        "launches": found.kernels,
        "witnessed": found.witnessed_flops,
        "operators": [
            {
                **fields_of(row, "layer op calls gpu trace kernels"),
                "causes": [{"cause": cause.value, "amount": amount, "why": why} for cause, amount, why in row.lines],
                **fields_of(row, "residual reason"),
            }
            for row in (*found.rows, *found.foreign)
        ],
        "statements": [statement_data(found.statement)],
    }
