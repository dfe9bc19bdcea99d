"""A click group of registered commands, each loaded when it is called; it writes their help under headings, too."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, NoReturn

import click

from ..core.errors import unknown
from ..core.option import Group
from ..core.product import Command, Product, load_place, refuse_product
from .commands import CORE
from .streams import exit_code, reader_may_go

OPTION_HEADINGS = {
    Group.MODEL: "Model",
    Group.CONVENTION: "What is counted",
    Group.COUNT: "What is counted",
    Group.PLACE: "Where it runs",
    Group.MANNER: "Where it runs",
    Group.OUTPUT: "Output",
    Group.PRINT: "Output",
}
"""The headings in the help of a command that options of a run stand under. Other options are the command's own."""
HEADINGS = ("Count a model", "Many models", "A number that you were given", "Releases", "For authors of counters")
"""The headings of ``--help`` in their order. Those that only other packages use come last."""


class LazyGroup(click.Group):
    """The commands of the core and of all products whose names are one word longer than ``words``.

    Args:
        words: The words that call this group, ``()`` for ``reconcile`` itself.
    """

    def __init__(self, *args: Any, words: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.words = words

    @cached_property
    def registered_commands(self) -> dict[str, tuple[Product, Command]]:
        """The commands by their last word, with the product that has them, in the order of ``--help``. One below a command that
        is no group has two words, ``formula conform``. Raises UsageError for a name that two products have."""
        from ..core.registry import products

        every = [(product, command) for product in (CORE, *products().values()) for command in product.commands]
        depth = len(self.words)
        inner = [(p, c) for p, c in every if c.name.split()[:depth] == list(self.words) and len(c.name.split()) > depth]
        groups = {tuple(c.name.split()[: depth + 1]) for _, c in inner if len(c.name.split()) > depth + 1}
        plain = {command.name for _, command in inner if command.place}
        own = [
            (product, command)
            for product, command in inner
            if (len(command.name.split()) == depth + 1 and (command.place or tuple(command.name.split()) in groups))
            or " ".join(command.name.split()[: depth + 1]) in plain - {command.name}
        ]
        first: dict[str, Product] = {}
        for product, command in own:
            if command.name in first:
                why = f"a command named {command.name} is already registered by {first[command.name].name}"
                raise refuse_product(product, why)
            first[command.name] = product
        own.sort(key=lambda found: (_heading_position(found[1].heading), found[1].order))
        return {" ".join(command.name.split()[depth:]): (product, command) for product, command in own}

    @property
    def groups(self) -> dict[str, dict[str, str]]:
        """``{heading: {command: its line of help}}``."""
        found: dict[str, dict[str, str]] = {}
        for name in self.list_commands(click.Context(self)):
            _, command = self.registered_commands[name]
            found.setdefault(command.heading, {})[name] = command.line
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of ``--help``. Those of two words stand in the help of the command above them."""
        return [name for name in self.registered_commands if " " not in name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first words name, two of them if there is one of that name."""
        words = " ".join(args[:2])
        return super().resolve_command(ctx, [words, *args[2:]] if words in self.registered_commands else args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command. Raises UsageError for an unknown name, and for a product's that cannot be loaded."""
        if cmd_name not in self.registered_commands:
            if ctx.resilient_parsing:
                return None
            raise unknown("command", cmd_name, list(self.registered_commands))
        product, record = self.registered_commands[cmd_name]
        if not record.place:
            return LazyGroup(cmd_name, words=(*self.words, cmd_name), help=record.text)
        command = load_place(product, record.place)
        if not isinstance(command, click.Command):
            raise refuse_product(product, f"{record.place} is not a command of click")
        below = [each for name, (_, each) in self.registered_commands.items() if name.startswith(f"{cmd_name} ")]
        if below:
            command.epilog = "\n\n".join(f"reconcile {each.name}: {each.line}" for each in below)
        command.format_options = partial(_write_options, command)  # type: ignore[method-assign]
        return _helpful(command)

    def walk(self, ctx: click.Context, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
        """Every command with the words that call it, and those of the groups in it."""
        for name in self.registered_commands:
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
        main = super().main

        def run() -> Any:
            _helpful(self)
            return main(args, prog_name, **extra)

        sys.exit(exit_code(run))


def _write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options of a command under headings, in its own order; a command's own options come first if one of them is
    first, or else last."""
    from ..launch.options import by_parameter

    headings = {option.flag: OPTION_HEADINGS[option.group] for option in by_parameter().values()}
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        own = "Other options" if "Model" in sections else "Options"
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
            text = re.sub(r"  \[[\dx<>=]+\]$|; [\dx<>=]+(?=\]$)", "", record[1])  # the range of a number
            term = record[0].replace("INTEGER RANGE", "N")
            sections.setdefault(headings.get(parameter.opts[-1], own), []).append((term, text))
    for heading, records in sorted(sections.items(), key=lambda section: section[0] == "Other options"):
        with formatter.section(heading):
            formatter.write_dl(records)


def _heading_position(heading: str) -> int:
    return HEADINGS.index(heading) if heading in HEADINGS else len(HEADINGS)


def _helpful(command: click.Command) -> click.Command:
    """The command with its description, also where Python drops docstrings (-OO)."""
    if command.help is None and command.callback is not None:
        from inspect import cleandoc

        from ..worker.introspect import documentation

        command.help = cleandoc(documentation(command.callback))
    return command
