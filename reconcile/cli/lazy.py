"""A click group that loads a command's file only when the command is called."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from ..core.errors import unknown
from .faults import exit_code
from .streams import reader_may_go


class LazyGroup(click.Group):
    """Takes ``groups``: heading -> command name -> one line of help.

    The command ``draft-rules`` is the function ``draft_rules`` of the file of that name beside this one; ``list`` is ``list_``.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order they were declared in."""
        return [name for group in self.groups.values() for name in group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's file."""
        names = self.list_commands(ctx)
        if cmd_name not in names:
            if ctx.resilient_parsing:
                return None
            raise unknown("command", cmd_name, names)
        from importlib import import_module

        name = cmd_name.replace("-", "_")
        command = getattr(import_module(f"{__package__}.{name}"), "list_" if name == "list" else name)
        assert isinstance(command, click.Command)
        return _helpful(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, without importing any command."""
        longest = max(map(len, self.list_commands(ctx)))
        for heading, group in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(longest), line) for name, line in group.items()])

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the words; ``--help`` and ``--version`` print while that happens."""
        with reader_may_go():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; a reader that has gone (``| head``) is no error."""
        with reader_may_go():
            return super().invoke(ctx)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run and exit, as ``faults`` says."""
        extra["standalone_mode"] = False
        _helpful(self)
        main = super().main
        sys.exit(exit_code(lambda: main(args, prog_name, **extra)))


def _helpful(command: click.Command) -> click.Command:
    """The command with its description, also where Python drops docstrings (-OO)."""
    if command.help is None and command.callback is not None:
        from inspect import cleandoc

        from ..worker.introspect import documentation

        command.help = cleandoc(documentation(command.callback))
    return command
