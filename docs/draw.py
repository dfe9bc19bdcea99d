"""Draws what the documents show: ``make pictures``. Needs both frameworks; a minute.

``docs/pictures/terminal.svg``, the README's first screen as a terminal shows it; ``docs/pictures/witness.svg``, the same network
by a counter, by the trace and by the log of the math libraries; and the report of gru_demo with its pictures.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from reconcile import workflow
from reconcile.core import atomic
from reconcile.engine.answer import Answer
from reconcile.launch.request import run_request
from reconcile.report.pictures import charts, drawing
from reconcile.report.pictures.drawing import Layers
from reconcile.report.terminal import screen as terminal

ROOT = Path(__file__).parents[1]
WIDTH = 80
THEME = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        (72, 79, 88),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
    [
        (110, 118, 129),
        (255, 161, 152),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (240, 246, 252),
    ],
)


def first_screen() -> tuple[str, list[str]]:
    """The README's ten lines and the words of its command."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\n```console\n\$ (reconcile .*?)\n", readme, re.DOTALL)
    assert found
    return found[1], found[2].split()


def picture(result: Answer, title: str) -> str:
    """A run as its terminal view, in colours, with letters of the reader's own machine."""
    console = Console(
        record=True,
        width=WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    terminal.print_run(result, console)
    svg = console.export_svg(title=title, theme=THEME, unique_id="reconcile")
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)  # nothing is fetched
    return svg.replace(
        "Fira Code, monospace", "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
    )


COUNTER, LOG = "fvcore", "cpu_libraries"


def three_columns(result: Answer) -> Layers:
    """A run by layer: a counter, the work that ran, and the log."""
    chart = charts.by_layer(result)
    by_name = {column.counter: column for column in chart.columns}
    counter, log = by_name[COUNTER], by_name[LOG]
    ran = tuple(count or 0 for count in log.work)
    columns = (counter, replace(log, counter="trace", values=ran), replace(log, counter="log of MKL and oneDNN"))
    return replace(chart, columns=columns)


def witnessed(result: Answer) -> str | bytes:
    """The three columns as a picture."""
    title = "One network, three columns: a counter, the trace, and the libraries' log"
    about = f"{result.model} on the CPU, FLOPs by layer, convention {result.convention.name}"
    return drawing.save_figure(drawing.draw_layers(three_columns(result), title, about), "svg")


def first_run(counters: Sequence[str] = ()) -> Answer:
    """A run of the README's network, with these counters or as its command says."""
    code, words = first_screen()
    values, here = dict(pairwise(words)), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "net.py").write_text(code, encoding="utf-8")
        os.chdir(folder)
        try:
            request = run_request(torch=values["--torch"], inputs=[values["--input"]], counters=counters)
            return workflow.run(request, lambda event: None, None)
        finally:
            os.chdir(here)


def main() -> None:
    """Draw all of them."""
    title = " ".join(first_screen()[1])
    atomic.write(ROOT / "docs" / "pictures", "terminal", {"svg": picture(first_run(), title)})
    atomic.write(ROOT / "docs" / "pictures", "witness", {"svg": witnessed(first_run((COUNTER, LOG)))})
    run = [
        sys.executable,
        "-m",
        "reconcile",
        "run",
        "--model",
        "gru_demo",
        "--quiet",
        "--format",
        "md,csv,json,html,svg",
    ]
    sys.exit(subprocess.run(run, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
