"""Click types for numbers: ``Jobs`` for --jobs, and ``Signed``, a command that says why it takes no negative number.

core/numbers.py reads the numbers, so its error messages are the same as in Python.
"""

from __future__ import annotations

import re
from typing import Any

import click

MOST_JOBS = 1000


class Signed(click.Command):
    """A command whose argument is a number: a negative one gets the sentence of ``read``, not click's on an unknown option."""

    def read(self, text: str) -> object:
        """Read the argument. Raises UsageError, with the sentence for what it does not take."""
        raise NotImplementedError

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, but have ``read`` refuse what starts like a negative number."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            for signed in given:
                if re.match(r"-[.\d]", signed, re.ASCII) and signed.startswith(error.option_name):
                    self.read(signed)
            raise


class Jobs(click.IntRange):
    """The type of --jobs: the number of runs at the same time."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Raises UsageError."""
        from ..core.errors import UsageError, short
        from ..core.numbers import integer

        found = integer(str(value), 1, MOST_JOBS)
        if found is None:
            raise UsageError(f"--jobs must be a whole number from 1 to {MOST_JOBS:,}, not {short(value)}.")
        return found
