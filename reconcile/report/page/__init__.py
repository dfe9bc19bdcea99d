"""The HTML page of a run (``--format html``): one file that contains everything and sends no request.

The template holds the fixed words; the script on the page makes the statements between any two ends, the layers and the
lines from :mod:`.data`.  A Content Security Policy in the page allows this one script and this one style and nothing from
outside.  Other pages (audits, ranks, the scorecard) take their style and policy from here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from ...core.conventions import Convention
from ...core.escaping import escape_line
from ...core.number_format import number
from ...core.results import Statement
from ...engine.answer import Answer
from ...engine.phases import PhaseRow, PhaseTable
from ...engine.verdict import GIVE_FORMULAS
from .. import folds, view
from ..alignment import sentences
from ..rendering import environment
from .data import page_data

SCRIPTS = ("books", "show", "waterfall", "rows", "folds", "tree", "lines", "detail", "main")
"""In the order in which they run, as one script."""


def to_html(result: Answer, statement: Statement | None = None, command: str = "") -> str:
    """The page. ``statement`` is shown first (default: see view.describe_answer); ``command`` reproduces the
    run. Conventions other than the run's own come from ``result.others``."""
    views = (result, *result.others)
    shown = [view.describe_answer(each, statement) for each in views]
    first = shown[0].headline
    phased = [[_phase_data(*pair) for pair in each.phases] for each in shown]
    about, differ = (list(_paragraphs(text)) for text in view.split_description(result))
    style, script = style_page(file_text("page.css")), _script()
    return _template().render(
        result=result,
        views=shown,
        phased=phased,
        folded=any(row["each"] for table in phased[0] for row in table["rows"]),
        inputs=list(_inputs(result)),
        about=about,
        aligned=sentences(result.alignment) if result.alignment else [],
        notes=list(result.notes) or differ,
        said=[f"{x.counter}: {note}" for x in result.ledgers for note in x.notes]
        + [f"{t.name}: {note}" for t in result.traces for note in t.notes],
        environment=list(_environment(result)),
        command=command,
        style=Markup(style),
        script=Markup(script),
        style_hash=Markup(hash_of(style)),
        script_hash=Markup(hash_of(script)),
        books=Markup(_script_json(page_data(views, (first.from_, first.to) if first else None))),
    )


def file_text(name: str) -> str:
    """The text of a file beside the template."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def style_page(rules: str) -> str:
    """The CSS rules of a page, after the palette that all pages share."""
    return file_text("palette.css") + rules


@lru_cache(maxsize=1)
def _script() -> str:
    """All scripts as one, in its own scope."""
    parts = "\n".join(file_text(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def hash_of(text: str) -> str:
    """The SHA-256 digest by which the page's Content Security Policy allows a script or a style."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    made = environment(finalize, autoescape=True, package=__package__, folder=".")
    made.filters.update(spans=_spans, weights=_list_weights)
    made.globals.update(give_formulas=GIVE_FORMULAS)
    return made.get_template("page.html.j2")


def _list_weights(convention: Convention) -> str:
    """``mac 2, add 1``: the components that a convention counts."""
    return ", ".join(f"{name} {weight}" for name, weight in convention.weights.items() if weight)


def finalize(value: Any) -> Any:
    """A value as the page shows it: separators in a number, escapes in a text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    return value if isinstance(value, Markup) else escape_line(str(value))


def _script_json(data: Any) -> str:
    """JSON that may stand inside a ``<script>`` element: nothing in it can end the element or open a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _spans(text: str) -> Markup:
    """An author's text on one line, with its `code spans` as code."""
    pieces = re.split(r"`+([^`]+)`+", " ".join(text.split()))
    return Markup().join(
        Markup("<code>{}</code>").format(escape_line(piece)) if i % 2 else escape(escape_line(piece))
        for i, piece in enumerate(pieces)
    )


def _inputs(result: Answer) -> Iterator[tuple[str, str]]:
    """The inputs of the models, given once if they are the same."""
    if len(set(result.inputs.values())) == 1:
        yield "called with", next(iter(result.inputs.values()))
    else:
        yield from ((f"{framework} called with", text) for framework, text in result.inputs.items())


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of the author's text on the pair."""
    for block in re.split(r"\n\s*\n|\n(?=[*-] )", text.strip()):
        if block.strip():
            yield re.sub(r"^[*-] ", "", block)


def _phase_data(framework: str, table: PhaseTable) -> dict[str, Any]:
    def cells(row: PhaseRow) -> list[str]:
        return [*(view.phase_cell(row, phase) for phase in table.phases), view.phase_ratio(row)]

    sentences = view.ratio_sentence(table.total), view.utilisation_sentence(table.total, table.steps)
    return {
        "framework": framework,
        "titles": [*table.phases, "backward / forward"],
        "rows": [
            {
                "name": each.name or "(no layer)",
                "cells": cells(each.one),
                "each": [(row.layer, cells(row)) for row in each.lines] if each.count > 1 else [],
            }
            for each in folds.fold_phases(table.rows)
        ],
        "total": cells(table.total),
        "sentence": "; ".join(filter(None, sentences)),
    }


def _environment(result: Answer) -> Iterator[tuple[str, str]]:
    """The versions of the run, then the device of each trace and counter and its versions that differ."""
    yield from sorted(result.environment.items())
    homes = [(t.name, t.device, t.versions) for t in result.traces]
    homes += [(x.counter, x.device, x.versions) for x in result.ledgers]
    for name, device, versions in homes:
        other = [f"{k} {v}" for k, v in sorted(versions.items()) if result.environment.get(k) != v]
        words = ", ".join([*([f"on {device}"] if device else []), *other])
        if words:
            yield name, words
