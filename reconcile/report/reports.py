"""Renders the reports of a run in the formats of --format, and chooses their file names; ``core/atomic`` writes the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..core.atomic import safe
from ..core.framework import pause_garbage_collection
from ..core.option import FORMATS, PICTURES
from ..core.records import DECODE, PREFILL, TRAINING
from ..core.registry import added_formats, load_formats
from ..core.results import Statement
from ..engine.answer import Answer
from . import foot
from .csv import layers_csv, to_csv
from .folds import MAX_UNFOLDED
from .json import to_json

TABLE = "layers.csv"
"""File name ending of the table of every layer, beside the Markdown report of many layers."""
PAGE_OPS = 200_000
"""The most ops of an HTML page: for more, a browser would take minutes and run out of memory."""


@pause_garbage_collection()
def render(
    result: Answer, formats: tuple[str, ...], statement: Statement | None = None, command: str = "", name: str = ""
) -> dict[str, str | bytes]:
    """The reports by the end of their file names; ``svg`` and ``png`` make pictures, which the Markdown then shows. With the
    Markdown of many layers comes ``layers.csv``. ``name`` is the beginning of the files' names, if it is not that of ``stem``.

    A page of more than ``PAGE_OPS`` ops is left out (``explain_missing_page``). Raises ValueError if the books do not add up,
    UsageError if pictures are requested but cannot be drawn, and for a disclosure of a run that is no training step.
    """
    foot.check(result)
    if explain_missing_page(result, formats):
        formats = tuple(name for name in formats if name != "html")
    drawn = _draw_files(result, statement, formats)
    tables = _layer_tables(result) if "md" in formats else {}
    makers: dict[str, Callable[[], str]] = {
        "md": lambda: _markdown(result, statement, command, tuple(drawn), tables, name),
        "csv": lambda: to_csv(result),
        "json": lambda: to_json(result),
        "html": lambda: _html(result, statement, command),
    }
    texts = {name: makers[name]() for name in FORMATS if name in formats}
    if others := set(formats).difference(FORMATS, PICTURES):
        texts |= {end: to_text(result, command) for end, to_text in load_formats(others, "render").items()}
    return {**texts, **tables, **drawn}


def explain_missing_page(result: Answer, formats: tuple[str, ...]) -> str:
    """A sentence if a page is requested that no browser could show; else ''."""
    ops = sum(len(trace.rows) for trace in result.traces)
    if "html" not in formats or ops <= PAGE_OPS:
        return ""
    return (
        f"There is no HTML page for {ops:,} ops, because a browser can show {PAGE_OPS:,}. The other formats hold everything "
        "(--format md,csv,json)."
    )


def find_formats(folder: Path, stem: str) -> tuple[str, ...]:
    """The formats of this model's reports that a folder already has."""
    others = tuple(f"{safe(stem)}.{end}" for end in (TABLE, *added_formats().values()))
    names = (path.name for path in folder.glob(f"{safe(stem)}.*") if path.name not in others)
    ends = {name.rpartition(".")[2] for name in names}
    return tuple(name for name in (*FORMATS, *PICTURES) if name in ends)


def stem(model: str, *, training: bool = False, pass_: str = "") -> str:
    """The beginning of the names of a run's files; another pass does not replace the reports of a call."""
    if pass_.startswith(DECODE + " "):
        return f"{model}-{DECODE}-{''.join(filter(str.isdecimal, pass_))}"
    if pass_ == PREFILL:
        return f"{model}-{PREFILL}"
    return f"{model}-training" if training or pass_ == TRAINING else model


def add_outdated_pictures(folder: Path, stem: str, formats: tuple[str, ...]) -> tuple[str, ...]:
    """``formats`` plus the formats of this report's pictures in the folder, because old pictures would not match new numbers.

    If nothing can draw them, they stay, and the Markdown does not show them.
    """
    from .pictures.charts import can_draw

    outdated = tuple(name for name in find_formats(folder, stem) if name in PICTURES and name not in formats)
    return (*formats, *outdated) if outdated and can_draw() else formats


def _draw_files(result: Answer, statement: Statement | None, formats: tuple[str, ...]) -> dict[str, str | bytes]:
    wanted = [name for name in PICTURES if name in formats]
    if not wanted:
        return {}
    from . import view
    from .pictures import charts as pictures

    pictures.require()
    return pictures.draw(result, view.default_statement(result) if statement is None else statement, wanted)


def _layer_tables(result: Answer) -> dict[str, str]:
    """The file of the table of layers by its name's end, if a report of so many layers folds those that are alike."""
    return {TABLE: layers_csv(result)} if len(result.layers) > MAX_UNFOLDED else {}


def _markdown(
    result: Answer,
    statement: Statement | None,
    command: str,
    drawn: tuple[str, ...],
    tables: Mapping[str, str],
    name: str,
) -> str:
    from .markdown import to_markdown

    name = safe(name or stem(result.model, pass_=result.pass_))
    shown: dict[str, str] = {}
    if drawn:
        from .pictures.charts import list_embedded

        shown = list_embedded(name, drawn)
    return to_markdown(result, statement, command, shown, f"{name}.{TABLE}" if tables else "")


def _html(result: Answer, statement: Statement | None, command: str) -> str:
    from .page import to_html

    return to_html(result, statement, command)
