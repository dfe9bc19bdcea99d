"""Numbers among the options. Their help is click's; what they take is what ``numbers.py`` takes, and so are the sentences."""

from __future__ import annotations

from typing import Any

import click

MOST_JOBS = 1000


class Seconds(click.FloatRange):
    """A time limit. ``run_request`` says what is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or the text that is none."""
        try:
            return float(value)
        except ValueError:
            return value


class Jobs(click.IntRange):
    """How many run at the same time."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Raises UsageError."""
        from ..core.errors import UsageError, short
        from ..core.numbers import integer

        found = integer(str(value), 1, MOST_JOBS)
        if found is None:
            raise UsageError(f"--jobs must be a whole number from 1 to {MOST_JOBS:,}, not {short(value)}.")
        return found
