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
    """Takes ``commands_at``: command name -> ("module:attribute", one line of help)."""

    def __init__(self, *args: Any, commands_at: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order they were declared in."""
        return list(self.commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's file."""
        if cmd_name not in self.commands_at:
            if ctx.resilient_parsing:
                return None
            raise unknown("command", cmd_name, self.commands_at)
        import importlib

        module, _, attribute = self.commands_at[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return _helpful(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.commands_at.items()])

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
        sys.exit(exit_code(lambda: super(LazyGroup, self).main(args, prog_name, **extra)))


def _helpful(command: click.Command) -> click.Command:
    """The command with its description, also where Python drops docstrings (-OO)."""
    if command.help is None and command.callback is not None:
        from inspect import cleandoc

        from ..worker.introspect import documentation

        command.help = cleandoc(documentation(command.callback))
    return command
