"""The command that makes this report again."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from ..core.text import typed
from ..launch.request import flags, words


def again(ctx: click.Context, wanted: Collection[str] = (), *more: str, bare: bool = True, command: str = "") -> str:
    """The command of ``ctx`` with those of its options that are not at their defaults, and ``more`` after them.

    ``command`` is another command that is to have these options.
    ``wanted`` are the options that it is to have; unless they are given, those that decide what a report says.
    ``bare`` names files without their folders: a report is made again from the folder that holds the files it names.
    """
    wanted = wanted or flags(lambda option: option.report)
    line = ["reconcile", command or ctx.command.name or ""]
    for parameter in ctx.command.params:
        value, flag = ctx.params.get(parameter.name or ""), parameter.opts[0]
        if flag in wanted and value and value != parameter.get_default(ctx):
            line += words(flag, value, str if not bare else _name if parameter.name == "model" else _bare)
    return typed([*line, *more])


def _name(item: Any) -> str:
    return Path(item).name


def _bare(item: Any) -> str:
    return _name(item) if isinstance(item, Path) else str(item)
