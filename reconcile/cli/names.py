"""What ``reconcile explain`` lists: the names of every kind, and one kind with a line on each name."""

from __future__ import annotations

import ast
import shutil
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..gallery.run import GalleryRow


def table(kind: str) -> str:
    """One kind with a line on each name."""
    formatter = click.HelpFormatter(width=_width())
    formatter.write_dl(list(KINDS[kind]()), col_max=26)
    return formatter.getvalue()


def overview() -> str:
    """The names of every kind."""
    parts = []
    for kind, rows in KINDS.items():
        names = " ".join(name for name, _ in rows())
        parts.append(f"{kind.capitalize()}, with a line on each: reconcile explain {kind}")
        parts.append(
            textwrap.fill(names, _width(), initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False) + "\n"
        )
    return "\n".join(parts)


def model(name: str) -> str:
    """The line of a model, and the command that runs it."""
    return f"{name}: {dict(_models())[name]}\nRun it with: reconcile run --model {name}"


def _width() -> int:
    return min(shutil.get_terminal_size().columns, 120)


def _models() -> Iterable[tuple[str, str]]:
    from ..gallery.run import read
    from ..model_zoo.loading import pair_path, zoo_names

    rows = read()
    for name in zoo_names():
        tree = ast.parse(Path(pair_path(name)).read_text(encoding="utf-8"))
        about = (ast.get_docstring(tree) or "").partition("\n")[0]
        yield name, about + (f" [{_measured(rows[name])}]" if name in rows else " [not measured yet]")


def _measured(row: GalleryRow) -> str:
    """Weights, work and how far the two outputs are apart, as the gallery has them."""
    from ..gallery.markdown import parity
    from ..gallery.rows import source_of

    weights = "" if row.weights is None else f"{row.weights:,} weights"
    work = " or ".join(f"{flops:,}" for flops in dict.fromkeys(row.work.values())) + " FLOP (matmul)"
    proven = ", ".join(f"{name}={value}" for name, value in row.proven_at.items())
    outputs = f"outputs within {parity(row).rstrip('*')}" + (f" (at {proven})" if proven else "")
    if row.declared:
        outputs = "outputs differ, as declared"
    settings = ", ".join(f"{name}={value}" for name, value in row.settings.items())
    stale = "" if source_of(row.model) == row.source else "measured before the pair was last changed"
    return "; ".join(part for part in (weights, work, outputs, settings, stale) if part)


def _counters() -> Iterable[tuple[str, str]]:
    from ..core.registry import known_counters

    for name, counter in known_counters().items():
        yield name, f"{counter.summary} [{counter.framework}, {counter.unit}]"


def _causes() -> Iterable[tuple[str, str]]:
    from ..core.causes import Cause

    return ((cause.value, cause.meaning) for cause in Cause)


def _conventions() -> Iterable[tuple[str, str]]:
    from ..core.conventions import NAMED

    return ((name, convention.meaning) for name, convention in NAMED.items())


KINDS = {"models": _models, "counters": _counters, "causes": _causes, "conventions": _conventions}
