"""The command that somebody types to get this again."""

from __future__ import annotations

import shlex
from collections.abc import Container
from pathlib import Path
from typing import Any

import click

WHAT = (
    "model", "torch", "tf", "onnx", "inputs", "signature", "trust_file", "mapping", "overrides",
    "convention", "convention_files", "counters", "from_", "to", "pass_", "optimizer",
    "environment", "names", "file", "with_", "python", "device", "timeout", "formulas",
)  # fmt: skip
"""Parameters that decide what a report says."""


def again(ctx: click.Context, parameters: Container[str] = WHAT, *more: str, bare: bool = True) -> str:
    """The command of ``ctx`` with those of its parameters that are not at their defaults, and ``more`` after them.

    ``bare`` names files without their folders: a report is made again from the folder that holds the files it names.
    """
    words = ["reconcile", ctx.command.name or ""]
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        if parameter.name in parameters and value and value != parameter.get_default(ctx):
            words += [parameter.opts[0]] if value is True else []
            for item in [] if value is True else _items(value):
                words += [parameter.opts[0], Path(item).name if bare and _is_file(parameter, item) else str(item)]
    return shlex.join([*words, *more])


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [f"{name}={text}" for name, text in value.items()]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _is_file(parameter: click.Parameter, item: Any) -> bool:
    return isinstance(item, Path) or parameter.name == "model"
