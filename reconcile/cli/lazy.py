"""A click group that loads a command's file only when the command is called."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import click

from ..core.errors import unknown
from .streams import exit_code, reader_may_go


class LazyGroup(click.Group):
    """Takes ``groups``: heading -> command name -> one line of help.

    A command is the function of its name in the file of its name in ``commands/``. ``functions`` names the others:
    command name -> ``file.function``.
    """

    def __init__(
        self,
        *args: Any,
        groups: Mapping[str, Mapping[str, str]],
        functions: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups
        self.functions = functions or {}

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

        file, _, function = self.functions.get(cmd_name, f"{cmd_name}.{cmd_name}").partition(".")
        command = getattr(import_module(f"{__package__}.commands.{file}"), function)
        assert isinstance(command, click.Command)
        return _helpful(command)

    def walk(self, ctx: click.Context, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
        """Every command with the words that call it, and those of the groups in it."""
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert command is not None
            yield " ".join((*words, name)), command
            if isinstance(command, LazyGroup):
                yield from command.walk(ctx, (*words, name))

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
        """Run and exit, as ``exit_code`` says."""
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
