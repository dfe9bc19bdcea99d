"""What a product adds to ``reconcile run``: options, what they do to the request, and what happens after the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..engine.answer import Answer
    from ..launch.request import RunRequest


@dataclass(frozen=True, slots=True)
class RunCall:
    """One call of ``reconcile run``.

    Attributes:
        ctx: Click's context of the command.
        request: What is going to run.
        given: The values of the product's own options, by their parameter names.
        out: The folder of the reports.
        formats: The formats of the reports.
        quiet: Whether only the verdict is printed.
        verbose: Whether every layer is printed.
        words: The words that repeat the options of all products in the command that a report shows.
    """

    ctx: click.Context
    request: RunRequest
    given: Mapping[str, Any]
    out: Path
    formats: tuple[str, ...]
    quiet: bool
    verbose: bool
    words: tuple[str, ...] = ()


class RunOptions:
    """Options that a product adds to ``run``. Subclass it, and override what the options do.

    ``options`` are decorators as ``click.option`` returns them, in the order of ``--help``.
    """

    options: Sequence[Callable[[Any], Any]] = ()

    @cached_property
    def parameters(self) -> tuple[click.Option, ...]:
        """The options as click has them."""

        def holder() -> None: ...

        for option in reversed(self.options):
            option(holder)
        return tuple(reversed(holder.__click_params__))  # type: ignore[attr-defined]

    def prepare(self, call: RunCall) -> RunCall:
        """Check the options before anything runs. Returns the call, with another request if they change it.

        Raises UsageError for values that do not go together.
        """
        return call

    def run_instead(self, call: RunCall) -> int | None:
        """Do something else than the run. Returns the exit code, or None to run."""
        return None

    def repeated(self, call: RunCall) -> list[str]:
        """The words that repeat these options in the command that a report shows."""
        return []

    def follow(self, call: RunCall, answer: Answer, stem: str) -> int:
        """Do something with the answer, whose reports are named ``stem``. Returns the exit code, 0 if nothing was wrong."""
        return 0


def registered_run_options() -> tuple[RunOptions, ...]:
    """The run options of every product, in the order of the products."""
    from ..core.product import load_place
    from ..core.registry import products

    return tuple(load_place(product, place) for product in products().values() for place in product.run_options)


def add_run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``run`` with the options of every product."""
    for each in reversed(registered_run_options()):
        for option in reversed(each.options):
            function = option(function)
    return function


def take_values(asked: dict[str, Any]) -> dict[str, Any]:
    """Take the values of these options out of the parameters of ``run``."""
    return {p.name or "": asked.pop(p.name) for each in registered_run_options() for p in each.parameters}


def prepare_options(call: RunCall) -> tuple[RunCall, list[tuple[RunOptions, RunCall]]]:
    """Prepare every product's options, each on the request that the one before it made.

    Returns the call with the last request and the words that repeat the options, and each product's options with a call that has
    their own values only. Raises UsageError as ``RunOptions.prepare`` does.
    """
    prepared = []
    for each in registered_run_options():
        own = each.prepare(replace(call, given={p.name or "": call.given[p.name] for p in each.parameters}))
        call = replace(call, request=own.request, words=(*call.words, *each.repeated(own)))
        prepared.append((each, own))
    return call, [(each, replace(own, request=call.request, words=call.words)) for each, own in prepared]
