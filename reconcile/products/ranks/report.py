"""Report files of ``reconcile run --ranks``: of the world (Markdown, JSON, HTML), of each fold's first rank, of one device.

``describe_reports`` is the page of ``reconcile ranks``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...core.number_format import number, si
from ...report import document, reports, view
from ...report.document import Column, Document, Heading, Items, Table
from ...report.document.html import to_html
from ...report.document.markdown import to_markdown
from ...report.json_statements import statement_data
from ...report.json_text import fields_of
from . import words
from .files import Together
from .picture import STYLE, pictures
from .ranked import Ranked

SCHEMA = 1
BAR = 16
"""Characters of the longest bar."""
RANKS = (Column("ranks", "whole"), Column("FLOP of each", "right"), Column("", "right"), Column("", "whole"))


def render(result: Ranked, formats: tuple[str, ...], command: str = "") -> dict[str, str | bytes]:
    """The reports by the end of their file names: ``ranks.md``, ``ranks.json``, ``ranks.html``, and ``rank-0.md`` and so on."""
    page = describe_ranks(result, command)
    texts: dict[str, str | bytes] = {}
    if "md" in formats:
        texts["ranks.md"] = to_markdown(page)
    if "json" in formats:
        texts["ranks.json"] = json.dumps(to_dict(result), indent=1) + "\n"
    if "html" in formats:
        texts["ranks.html"] = to_html(page, STYLE)
    named = [(f"rank-{fold.ranks[0]}", fold.answer) for fold in result.folds]
    for name, answer in (*named, *([("one-device", result.one)] if result.one is not None else [])):
        texts |= {f"{name}.{end}": text for end, text in reports.render(answer, formats, None, command).items()}
    return texts


def to_dict(result: Ranked) -> dict[str, Any]:
    """The content of ``ranks.json``: the ranks, their sum, one device and the statement between them, as plain data."""
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
                "counters": [fields_of(x, "counter total state reason") for x in fold.answer.ledgers],
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


def describe_ranks(result: Ranked, command: str = "", *, verbose: bool = False) -> Document:
    """The page of the world: FLOPs of each fold, the balance, the statement to one device, the traffic. ``verbose`` opens every
    line of the statement on a terminal."""
    name, statement = result.convention.name, result.statement
    totals = [(words.ranks(fold.ranks), fold.trace.totals.get(name)) for fold in result.folds]
    sums = [(f"sum of {number(result.world.size)} ranks", result.totals.get(name))] if result.whole else []
    if result.one is not None:
        sums.append(("one device", result.one.traces[0].totals.get(name)))
    title = f"From the {statement.from_} to {statement.to}" if statement is not None else ""
    shown = document.Statement(statement, limit=None if verbose else 12) if statement is not None else None
    traffic = tuple(Column(title, "whole" if index < 3 else "right") for index, title in enumerate(words.TRAFFIC))
    return Document(
        words.headline(result),
        words.summary(result),
        (
            tabulate_ranks(totals, sums),
            *pictures(result),
            *document.section(title, shown),
            Heading("Counters"),
            Items((*words.counters(result), *words.balance(result))),
            *document.section("What a rank passes to others", Table(traffic, tuple(words.traffic(result)))),
            *document.section("How it was counted", Items(tuple(words.notes(result)), "dim")),
        ),
        result.exit_code == 0,
        tuple(line for answer in result.answers for line in view.unknown_sentences(answer)),
        command,
    )


def describe_reports(found: Together) -> Document:
    """The page of ``reconcile ranks``: a row for ranks with equal numbers, and their sum."""
    name = found.convention
    totals = [(words.ranks(ranks), found.totals(ranks[0]).get(name)) for ranks in found.folds]
    sums = [(f"sum of {number(found.world)} ranks", found.sum[name])] if name in found.sum else []
    title = f"{found.stem}, {number(found.world)} ranks, convention {name}"
    blocks = (tabulate_ranks(totals, sums),)
    return Document(title, words.sum_of(found), blocks, found.exit_code == 0, tuple(words.describe_counters(found)))


def tabulate_ranks(totals: Sequence[tuple[str, int | None]], sums: Sequence[tuple[str, int | None]]) -> Table:
    """A row per fold with FLOPs of one of its ranks and a bar, then the sums without one."""
    most = max((total for _, total in totals if total), default=0)
    bars = ["█" * round(BAR * total / most) if total else "" for _, total in totals]
    return Table(
        RANKS,
        tuple(
            (label, *(("unknown", "") if total is None else (number(total), si(total))), bar)
            for (label, total), bar in zip((*totals, *sums), (*bars, *("" for _ in sums)), strict=True)
        ),
    )
