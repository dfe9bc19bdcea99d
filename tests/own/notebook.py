"""Execute a notebook's cells as IPython does, without a kernel, and keep what each of them shows.

``python -m tests.own.notebook docs/example.ipynb`` executes it and writes it back with what it shows today.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


class Kept(DisplayHook):
    """Keeps the representations of a cell's last value in place of printing one."""

    data: dict[str, str] | None = None

    def __call__(self, result: Any = None) -> None:
        self.check_for_underscore()
        if result is not None and not self.quiet():
            self.data, _ = self.shell.display_formatter.format(result)
            self.update_user_ns(result)


class Shell(InteractiveShell):
    displayhook_class = Kept


def executed(path: Path) -> Any:
    """The notebook with fresh outputs. Raises what a cell raises."""
    notebook = nbformat.read(path, as_version=4)
    shell = Shell(config=Config(HistoryManager={"enabled": False}), colors="nocolor")
    shell.displayhook.shell = shell
    number = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            number += 1
            cell.execution_count = number
            cell.outputs = _outputs(shell, cell.source, number)
    nbformat.validate(notebook)
    return notebook


def _outputs(shell: Any, source: str, number: int) -> list[Any]:
    printed = io.StringIO()
    shell.displayhook.data = None
    with contextlib.redirect_stdout(printed):
        shell.run_cell(source, store_history=True).raise_error()
    outputs = []
    if printed.getvalue():
        outputs.append(nbformat.v4.new_output("stream", name="stdout", text=printed.getvalue()))
    if shell.displayhook.data is not None:
        outputs.append(nbformat.v4.new_output("execute_result", shell.displayhook.data, execution_count=number))
    return outputs


def text(notebook: Any) -> str:
    """The file's text."""
    return nbformat.writes(notebook) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(text(executed(Path(name))), encoding="utf-8")
