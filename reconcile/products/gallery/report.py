"""The gallery's first page (README.md) and picture: a row per model, a counter's column is its ratio to the work that ran.

``write_report`` writes the report of a single pair, and ``model_notes`` are for ``reconcile explain models``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core import atomic
from ...core.number_format import number, ratio
from ...engine.answer import Answer
from ...model_zoo.loading import zoo_names
from ...report import reports
from ...report.document import (
    Block,
    Document,
    Heading,
    Inline,
    Items,
    Picture,
    Span,
    Table,
    Text,
    mark_up,
    section,
    strong,
    tabulate,
)
from ...report.document.markdown import to_markdown
from .rows import CounterCell, R, is_reconciled, source_of
from .run import GalleryRow, PublishedReading, read_gallery

FAMILY = "family_"
PICTURE = "gallery"
WHAT_A_CELL_HAS = (
    "Each cell is a counter's total (MACs times 2) as a ratio to the work that ran under `matmul`: **1** is exact, 0 is "
    "nothing at all; below it stands the largest cause of the difference. A model's name leads to its report, layer by "
    "layer. *Weights* are the PyTorch model's parameters; *outputs* is the largest difference between the two models' "
    "outputs, relative to the largest output, with the same weights and input (* at smaller settings, where the output of a "
    "network that was never trained neither dies out nor saturates)."
)
OTHER_PAGES = (
    "`reconcile zoo gallery` writes a page to open in a browser beside each report; [gru_demo.html](gru_demo.html) is kept "
    "here. What a training step of each takes stands in [training.md](training.md)."
)
WHAT_PEOPLE_PRINT = (
    "What people print for these models, and the simplest reading of it here (`reconcile decode` gives all of them)."
)


def describe_cell(entry: CounterCell | None) -> Inline:
    """A counter's ratio, and the largest cause of its difference."""
    if entry is None:
        return ""
    if entry.total is None or entry.work is None:
        return entry.state.replace("_", " ")
    text = ratio(entry.total, entry.work)
    state = "" if entry.state in ("equal", "explained") else f"\n{entry.state}"
    return strong(text) if entry.total == entry.work else text, (f"\n{entry.cause}" if entry.cause else "") + state


def work(row: GalleryRow) -> str:
    """FLOPs of the work that ran, given once if both frameworks do the same."""
    values = list(dict.fromkeys(row.work.values()))
    if len(values) == 1:
        return number(values[0])
    return "\n".join(f"{name} {number(flops)}" for name, flops in row.work.items()) or "unknown"


def parity(row: GalleryRow) -> str:
    """The difference of the two outputs, or why there is none to show."""
    if row.declared:
        return "declared"
    if row.error is None:
        return "unknown"
    return ("0" if row.error == 0 else f"{row.error:.0e}") + ("*" if row.proven_at else "")


def group_rows(rows: Mapping[str, R]) -> list[tuple[str, tuple[R, ...]]]:
    """The networks and the layer families, under their titles."""
    families = tuple(row for name, row in sorted(rows.items()) if name.startswith(FAMILY))
    networks = tuple(row for name, row in sorted(rows.items()) if not name.startswith(FAMILY))
    return [group for group in (("Networks", networks), ("Layer families", families)) if group[1]]


def describe_gallery(rows: Mapping[str, GalleryRow], missing: Mapping[str, str]) -> Document:
    """``README.md``; ``missing`` maps models that the zoo should have to the reason why they are missing."""
    clean = sum(is_reconciled(row) for row in rows.values())
    declared = (f"{name}: {row.declared}" for name, row in sorted(rows.items()) if row.declared)
    readings = ((name, reading) for name, row in sorted(rows.items()) for reading in row.published)
    return Document(
        "The gallery",
        "",
        (
            Text(mark_up(
                f"{len(rows)} pairs of one model in TensorFlow and in PyTorch, {clean} of them reconciled by every counter, to "
                "residual 0, under `matmul`, `all` and `textbook`."
            )),
            Text(mark_up(WHAT_A_CELL_HAS)),
            Picture("Ratios", "The ratios of the networks as colours", "", f"{PICTURE}.svg"),
            Text(mark_up(OTHER_PAGES)),
            *(block for title, group in group_rows(rows) for block in (Heading(title), _tabulate_models(group))),
            *section("Pairs that are meant to differ", Items(tuple(declared))),
            *list_open(rows, missing),
            Heading("Published figures"),
            Text(mark_up(WHAT_PEOPLE_PRINT)),
            tabulate(
                "model|figure>|said to be|where|what it is here",
                (_reading_cells(name, reading) for name, reading in readings),
            ),
        ),
        comment="Written by `reconcile zoo gallery`; edit that, not this.",
    )  # fmt: skip


def to_svg(rows: Mapping[str, GalleryRow]) -> str | bytes:
    """``gallery.svg``: the networks' ratios as colours."""
    from ...report.pictures import drawing

    networks = {row.model: row for _, group in group_rows(rows)[:1] for row in group}
    near = {"1.000": "≈ 1", "0.000": "≈ 0"}
    texts = {
        model: {
            name: near.get(text := ratio(c.total, c.work).partition(" ")[0], text)
            for name, c in row.cells.items()
            if c.total is not None and c.work
        }
        for model, row in networks.items()
    }
    ratios = {
        model: {name: c.total / c.work if c.total is not None and c.work else None for name, c in row.cells.items()}
        for model, row in networks.items()
    }
    about = "each counter's total (MACs times 2) as a ratio to the work that ran, convention matmul; green: exact"
    return drawing.save_figure(
        _draw_heat_map(ratios, texts, "What the counters say of the zoo's networks", about), "svg"
    )


def _draw_heat_map(
    rows: Mapping[str, Mapping[str, float | None]], texts: Mapping[str, Mapping[str, str]], title: str, subtitle: str
) -> Any:
    """A cell per model and counter, coloured by the counter's ratio to the work that ran: one colour below 1, another above."""
    counters = list(dict.fromkeys(name for row in rows.values() for name in row))
    from matplotlib.colors import LinearSegmentedColormap

    from ...report.pictures import drawing

    colours = LinearSegmentedColormap.from_list("ratio", [drawing.MORE, "#dbe7f6", "#f6e3d3", drawing.LESS])
    with drawing.drawing_style():
        figure, (axes,) = drawing.empty_figure(
            2.4 + 1.15 * len(counters), drawing.TITLE_INCHES + 0.55 + 0.25 * len(rows), 1, (1,)
        )
        drawing.draw_titles(figure, title, subtitle)
        drawing.row_labels(axes, [(name, "") for name in rows])
        axes.set_xlim(-0.5, len(counters) - 0.5)
        axes.set_xticks(range(len(counters)), [name.replace("@", "\n@") for name in counters], fontsize=8)
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelcolor=drawing.INK)
        for y, (model, row) in enumerate(rows.items()):
            for x, counter in enumerate(counters):
                ratio = row.get(counter)
                exact = texts[model].get(counter) == "1"
                face = (
                    drawing.RIGHT if exact else drawing.PAPER if ratio is None else colours(min(max(ratio, 0), 2) / 2)
                )
                cell = axes.barh(y, 0.96, left=x - 0.48, height=0.9, color=face, linewidth=0)[0]
                cell.set_gid(f"cell-{y}-{x}")
                strong = exact or (ratio is not None and (ratio < 0.35 or ratio > 1.65))
                colour = "#fdfdfd" if strong else "#24292f" if ratio is not None else drawing.MUTED
                axes.text(x, y, texts[model].get(counter, ""), ha="center", va="center", fontsize=7, color=colour)
    return figure


def write_report(out: Path, model: str, result: Answer) -> None:
    """Write the report of a pair: Markdown, HTML, and any other format that is there."""
    formats = ("md", "html", *reports.find_formats(out, model))
    atomic.write(out, model, reports.render(result, formats, None, f"reconcile run --model {model}"))


def write_pages(out: Path, rows: Mapping[str, GalleryRow], missing: Mapping[str, str]) -> Path:
    """Write the picture and the page; returns the path of the page."""
    atomic.write(out, PICTURE, {"svg": to_svg(rows)})
    return atomic.write(out, "README", {"md": to_markdown(describe_gallery(rows, missing))})[0]


def _tabulate_models(rows: Iterable[GalleryRow]) -> Table:
    rows = list(rows)
    counters = list(dict.fromkeys(name for row in rows for name in row.cells))
    titles = ("weights", "work, FLOP", "outputs", *counters)
    return tabulate(
        "|".join(("model", *(f"{title}>" for title in titles))),
        (
            (
                (Span(row.model, link=f"{row.model}.md"), "" if is_reconciled(row) else "\nnot reconciled",
                 "\n" + ", ".join(f"{name} {value}" for name, value in row.settings.items())),
                "" if row.weights is None else number(row.weights),
                work(row),
                parity(row),
                *(describe_cell(row.cells.get(counter)) for counter in counters),
            )
            for row in rows
        ),
    )  # fmt: skip


def list_open(rows: Mapping[str, R], missing: Mapping[str, str]) -> Iterator[Block]:
    """The models that do not reconcile and the models without a row, with the reasons."""
    sentences = tuple(f"{name}: {text}" for name, row in sorted(rows.items()) for text in row.open)
    yield from section("What does not reconcile", Items(sentences))
    yield from section("Missing", Items(tuple(f"{name}: {why}" for name, why in sorted(missing.items()))))


def _reading_cells(name: str, reading: PublishedReading) -> tuple[str, ...]:
    what = reading.what or "not explained"
    if reading.what and reading.numbers > 1:
        what += f" (ambiguous: {reading.numbers} numbers have these digits)"
    return name, reading.figure, reading.claim, reading.source, what


def model_notes() -> dict[str, str]:
    """Weights, work and the difference of the outputs of every pair of the zoo, for ``reconcile explain models``."""
    rows = read_gallery()
    return {name: describe_row(rows[name]) if name in rows else "not measured yet" for name in zoo_names()}


def describe_row(row: GalleryRow) -> str:
    """Weights, work and how far the two outputs are apart, as the gallery has them."""
    weights = "" if row.weights is None else f"{row.weights:,} weights"
    work = " or ".join(f"{flops:,}" for flops in dict.fromkeys(row.work.values())) + " FLOP (matmul)"
    proven = ", ".join(f"{name}={value}" for name, value in row.proven_at.items())
    outputs = f"outputs within {parity(row).rstrip('*')}" + (f" (at {proven})" if proven else "")
    if row.declared:
        outputs = "outputs differ, as declared"
    settings = ", ".join(f"{name}={value}" for name, value in row.settings.items())
    stale = "" if source_of(row.model) == row.source else "measured before the pair was last changed"
    return "; ".join(part for part in (weights, work, outputs, settings, stale) if part)
