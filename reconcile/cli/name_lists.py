"""Lists of names that ``reconcile explain`` prints: models, counters, causes and conventions."""

from __future__ import annotations

import ast
import shutil
import textwrap
from collections.abc import Iterable
from pathlib import Path

import click


def table(kind: str) -> str:
    """The text that lists one kind of ``KINDS``, with a line on each name."""
    formatter = click.HelpFormatter(width=_width())
    formatter.write_dl(list(KINDS[kind]()), col_max=26)
    return formatter.getvalue()


def overview() -> str:
    """The text with the names of every kind."""
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
    from ..core.registry import load_places
    from ..model_zoo.loading import pair_path, zoo_names
    from ..worker.introspect import parse_documented

    notes = [notes_of() for notes_of in load_places("model_notes")]
    for name in zoo_names():
        tree = parse_documented(Path(pair_path(name)).read_text(encoding="utf-8"))
        about = (ast.get_docstring(tree) or "").partition("\n")[0]
        yield name, about + "".join(f" [{each[name]}]" for each in notes if name in each)


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
