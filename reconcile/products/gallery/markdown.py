"""The gallery's first page (README.md) and picture: a row per model, a counter's column is its ratio to the work that ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...core.text import markdown, number, ratio
from .rows import CounterCell, R, is_reconciled
from .run import GalleryRow

FAMILY = "family_"
PICTURE = "gallery"


def cell(entry: CounterCell | None) -> str:
    """A counter's ratio, and the largest cause of its difference."""
    if entry is None:
        return ""
    if entry.total is None or entry.work is None:
        return entry.state.replace("_", " ")
    text = f"**{ratio(entry.total, entry.work)}**" if entry.total == entry.work else ratio(entry.total, entry.work)
    state = "" if entry.state in ("equal", "explained") else f"<br>{entry.state}"
    return text + (f"<br>{entry.cause}" if entry.cause else "") + state


def work(row: GalleryRow) -> str:
    """FLOPs of the work that ran, given once if both frameworks do the same."""
    values = list(dict.fromkeys(row.work.values()))
    if len(values) == 1:
        return number(values[0])
    return "<br>".join(f"{name} {number(flops)}" for name, flops in row.work.items()) or "unknown"


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


def to_markdown(rows: Mapping[str, GalleryRow], missing: Mapping[str, str]) -> str:
    """``reports/README.md``; ``missing`` maps models that the zoo should have to the reason why they are missing."""
    clean = sum(is_reconciled(row) for row in rows.values())
    lines = [
        "# The gallery",
        "",
        "<!-- Written by `reconcile zoo gallery`; edit that, not this. -->",
        "",
        f"{len(rows)} pairs of one model in TensorFlow and in PyTorch, {clean} of them reconciled by every counter, to "
        "residual 0, under `matmul`, `all` and `textbook`.",
        "",
        "Each cell is a counter's total (MACs times 2) as a ratio to the work that ran under `matmul`: **1** is exact, 0 "
        "is nothing at all; below it stands the largest cause of the difference. A model's name leads to its report, "
        "layer by layer. *Weights* are the PyTorch model's parameters; *outputs* is the largest difference between the "
        "two models' outputs, relative to the largest output, with the same weights and input (\\* at smaller settings, "
        "where the output of a network that was never trained neither dies out nor saturates).",
        "",
        f"![The ratios of the networks as colours]({PICTURE}.svg)",
        "",
        "`reconcile zoo gallery` writes a page to open in a browser beside each report; [gru_demo.html](gru_demo.html) is kept "
        "here. What a training step of each takes stands in [training.md](training.md).",
    ]
    for title, group in group_rows(rows):
        lines += ["", f"## {title}", "", *_table(group)]
    lines += ["", *_list_declared(rows), *not_closed(rows, missing), "## Published figures", "", *_list_published(rows)]
    return "\n".join(lines) + "\n"


def to_svg(rows: Mapping[str, GalleryRow]) -> str | bytes:
    """``reports/gallery.svg``: the networks' ratios as colours."""
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
    return drawing.save(drawing.heat(ratios, texts, "What the counters say of the zoo's networks", about), "svg")


def _table(rows: Iterable[GalleryRow]) -> Iterable[str]:
    rows = list(rows)
    counters = list(dict.fromkeys(name for row in rows for name in row.cells))
    yield "| model | weights | work, FLOP | outputs | " + " | ".join(counters) + " |"
    yield "|:--|--:|--:|--:|" + "--:|" * len(counters)
    for row in rows:
        weights = "" if row.weights is None else number(row.weights)
        name = f"[{markdown(row.model)}]({row.model}.md)" + ("" if is_reconciled(row) else "<br>not reconciled")
        cells = " | ".join(cell(row.cells.get(counter)) for counter in counters)
        yield f"| {name}<br>{_settings(row)} | {weights} | {work(row)} | {markdown(parity(row))} | {cells} |"


def _settings(row: GalleryRow) -> str:
    return markdown(", ".join(f"{name} {value}" for name, value in row.settings.items()))


def _list_declared(rows: Mapping[str, GalleryRow]) -> Iterable[str]:
    declared = [(name, row.declared) for name, row in sorted(rows.items()) if row.declared]
    if declared:
        yield from ("## Pairs that are meant to differ", "")
        yield from (f"- {markdown(name)}: {markdown(text)}" for name, text in declared)
        yield ""


def not_closed(rows: Mapping[str, R], missing: Mapping[str, str]) -> Iterable[str]:
    """The models that do not reconcile and the models without a row, with the reasons."""
    open_ = [(name, text) for name, row in sorted(rows.items()) for text in row.open]
    for title, lines in (("What does not reconcile", open_), ("Missing", sorted(missing.items()))):
        if lines:
            yield from (f"## {title}", "")
            yield from (f"- {markdown(name)}: {markdown(text)}" for name, text in lines)
            yield ""


def _list_published(rows: Mapping[str, GalleryRow]) -> Iterable[str]:
    yield "What people print for these models, and the simplest reading of it here (`reconcile decode` gives all of them)."
    yield ""
    yield "| model | figure | said to be | where | what it is here |"
    yield "|:--|--:|:--|:--|:--|"
    for name, row in sorted(rows.items()):
        for reading in row.published:
            texts = (name, reading.figure, reading.claim, reading.source)
            yield "| " + " | ".join(map(markdown, texts)) + f" | {_explanation(reading.what, reading.numbers)} |"


def _explanation(sentence: str, numbers: int) -> str:
    if not sentence:
        return "not explained"
    return markdown(sentence) + (f" (ambiguous: {numbers} numbers have these digits)" if numbers > 1 else "")
