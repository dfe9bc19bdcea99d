"""Report files of ``reconcile run --ranks``: of the world (Markdown, JSON, HTML), of each fold's first rank, of one device."""

from __future__ import annotations

import json
from typing import Any

from ...core.text import format_signed, markdown, number, si
from ...engine.breakdown import blocks
from ...report import reports
from ...report.json_statements import statement_data
from . import page, words
from .ranked import Ranked

SCHEMA = 1


def render(result: Ranked, formats: tuple[str, ...], command: str = "") -> dict[str, str | bytes]:
    """The reports by the end of their file names: ``ranks.md``, ``ranks.json``, ``ranks.html``, and ``rank-0.md`` and so on."""
    texts: dict[str, str | bytes] = {}
    if "md" in formats:
        texts["ranks.md"] = to_markdown(result, command)
    if "json" in formats:
        texts["ranks.json"] = json.dumps(to_dict(result), indent=1) + "\n"
    if "html" in formats:
        texts["ranks.html"] = page.to_html(result, command)
    named = [(f"rank-{fold.ranks[0]}", fold.answer) for fold in result.folds]
    for name, answer in (*named, *([("one-device", result.one)] if result.one is not None else [])):
        texts |= {f"{name}.{end}": text for end, text in reports.render(answer, formats, None, command).items()}
    return texts


def to_dict(result: Ranked) -> dict[str, Any]:
    """The ranks as plain data."""
    world, statement = result.world, result.statement
    return {
        "schema": SCHEMA,
        "model": result.folds[0].answer.model,
        "pass": result.folds[0].answer.pass_,
        "convention": result.convention.name,
        "world": world.size,
        "mesh": {"names": list(world.mesh.names), "sizes": list(world.mesh.sizes)},
        "exit_code": result.exit_code,
        "summary": words.summary(result),
        "ranks": [
            {
                "ranks": list(fold.ranks),
                "totals": dict(fold.trace.totals),
                "reason": fold.trace.reason,
                "counters": [
                    {"counter": x.counter, "total": x.total, "state": x.state.value, "reason": x.reason}
                    for x in fold.answer.ledgers
                ],
                "collectives": [
                    {
                        "collective": each.kind,
                        "group": each.line,
                        "size": each.size,
                        "calls": each.calls,
                        "bytes": None if each.payload is None else str(each.payload),
                    }
                    for each in passed
                ],
            }
            for fold, passed in zip(result.folds, result.traffic, strict=True)
        ],
        "sum": dict(result.totals),
        "batches": world.batches,
        "one_device": dict(result.one.traces[0].totals) if result.one is not None else None,
        "statements": [statement_data(statement)] if statement is not None else [],
    }


def to_markdown(result: Ranked, command: str = "") -> str:
    """The page of the world."""
    name, statement = result.convention.name, result.statement
    lines = [f"# {markdown(words.headline(result))}", "", markdown(words.summary(result)), ""]
    lines += ["| ranks | FLOP of each | |", "|:--|--:|--:|"]
    lines += [_row(words.ranks(fold.ranks), fold.trace.totals.get(name)) for fold in result.folds]
    if result.whole:
        lines.append(_row(f"**sum of {number(result.world.size)} ranks**", result.totals.get(name)))
    if result.one is not None:
        lines.append(_row("**one device**", result.one.traces[0].totals.get(name)))
    if statement is not None and statement.closed:
        lines += ["", f"## From the {statement.from_} to {statement.to}", ""]
        lines += ["| cause | layer | of which | FLOP |", "|:--|:--|--:|--:|"]
        lines.append(f"| **{statement.from_}** | | | **{number(statement.from_total or 0)}** |")
        for block in blocks(statement, ()):
            lines.append(f"| {block.cause} | | | {format_signed(block.amount)} |")
            for part in block.parts:
                what = markdown(part.reason or ", ".join(part.ops))
                lines.append(f"| | {markdown(part.layer) or '(no layer)'}: {what} | {format_signed(part.amount)} | |")
        if not statement.residuals:
            lines.append(f"| residual | | | {format_signed(statement.residual or 0)} |")
        lines.append(f"| **{statement.to}** | | | **{number(statement.to_total or 0)}** |")
    lines += [
        "",
        "## Counters",
        "",
        *(f"- {markdown(line)}" for line in (*words.counters(result), *words.balance(result))),
    ]
    if rows := list(words.traffic(result)):
        lines += [
            "",
            "## What a rank passes to others",
            "",
            f"| {' | '.join(words.TRAFFIC)} |",
            "|:--|:--|:--|--:|--:|",
        ]
        lines += [f"| {' | '.join(map(markdown, row))} |" for row in rows]
    lines += ["", "## How it was counted", "", *(f"- {markdown(note)}" for note in words.notes(result))]
    return "\n".join([*lines, *(["", f"`{command}`"] if command else [])]) + "\n"


def _row(label: str, total: int | None) -> str:
    return f"| {label} | {'unknown' if total is None else number(total)} | {'' if total is None else si(total)} |"
