"""A click group that loads a command's file only when the command is called, and turns errors into sentences."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from ..errors import EXIT_OK, EXIT_USAGE, UsageError, unknown
from ..signals import heard

BY_SIGNAL = 128
"""What a shell adds to a signal's number for the exit status of what it ended."""


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

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; a reader that has gone (``| head``) is no error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            forget_stdout()
            ctx.exit(EXIT_OK)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run and exit: bad usage is one sentence and 2, an interruption one sentence and 128 + the signal's number."""
        extra["standalone_mode"] = False
        _helpful(self)
        with heard() as came:
            try:
                code = super().main(args, prog_name, **extra)
            except UsageError as error:
                click.echo(f"Error: {error}", err=True)
                code = EXIT_USAGE
            except click.ClickException as error:
                error.show()
                code = error.exit_code
            except (click.Abort, KeyboardInterrupt):
                with contextlib.suppress(OSError):  # a terminal that has hung up
                    click.echo("Interrupted; no file was left half-written.", err=True)
                code = BY_SIGNAL + (came[0] if came else signal.SIGINT)
        sys.exit(code if isinstance(code, int) else EXIT_OK)


def _helpful(command: click.Command) -> click.Command:
    """The command with its description, also where Python drops docstrings (-OO)."""
    if command.help is None and command.callback is not None:
        from inspect import cleandoc

        from ..declared import documentation

        command.help = cleandoc(documentation(command.callback))
    return command


def forget_stdout() -> None:
    """Nobody reads stdout any more: let what is left, and the interpreter's last flush, go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
