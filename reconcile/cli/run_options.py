"""Options that products add to ``reconcile run`` and ``watch``: their base class with its hooks, and what adds them."""

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
    """One call of ``reconcile run`` or ``watch``.

    Attributes:
        ctx: Click's context of the command.
        request: What is going to run.
        given: The values of the product's own options, by their parameter names.
        out: The folder of the reports.
        formats: The formats of the reports.
        quiet: Whether only the verdict is printed.
        verbose: Whether every layer is printed.
        program: What follows the options of ``watch``: the script and its arguments.
        words: The words that repeat the options of all products in the command that a report shows.
    """

    ctx: click.Context
    request: RunRequest
    given: Mapping[str, Any]
    out: Path
    formats: tuple[str, ...]
    quiet: bool
    verbose: bool
    program: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class RunOptions:
    """Options that a product adds to ``run``, and to ``watch``. Subclass it, and override what the options do.

    ``options`` and ``watch_options`` are decorators as ``click.option`` returns them, in the order of ``--help``.
    """

    options: Sequence[Callable[[Any], Any]] = ()
    watch_options: Sequence[Callable[[Any], Any]] = ()

    def prepare(self, call: RunCall) -> RunCall:
        """Check the options before anything runs. Returns the call, with another request if they change it.

        Raises UsageError for values that do not go together.
        """
        return call

    def run_instead(self, call: RunCall) -> int | None:
        """Do something else than the run. Returns the exit code, or None to run."""
        return None

    def repeat_options(self, call: RunCall) -> list[str]:
        """The words that repeat these options in the command that a report shows."""
        return []

    def follow(self, call: RunCall, answer: Answer, stem: str) -> int:
        """Do something with the answer, whose reports are named ``stem``. Returns the exit code, 0 if nothing was wrong."""
        return 0


def parameters_of(options: Sequence[Callable[[Any], Any]]) -> tuple[click.Option, ...]:
    """The parameters of click that these decorators make, in their order."""

    def holder() -> None: ...

    for option in options:
        option(holder)
    return tuple(getattr(holder, "__click_params__", ()))


class AddedOptions:
    """The options that all products add to one command.

    Args:
        field: The field of RunOptions that has them: ``"options"`` for ``run``, ``"watch_options"`` for ``watch``.
    """

    def __init__(self, field: str) -> None:
        self.field = field

    @cached_property
    def products(self) -> tuple[tuple[RunOptions, tuple[click.Option, ...]], ...]:
        """What each product adds to this command, with its parameters, in the order of the products that add something.
        Raises UsageError for a product whose options cannot be added."""
        from ..core.product import load_place, refuse_product
        from ..core.registry import products
        from ..launch.options import by_parameter

        taken = {word for option in by_parameter().values() for word in (option.flag, option.parameter)}
        found = []
        for product in products().values():
            for place in product.run_options:
                each = load_place(product, place)
                if not isinstance(each, RunOptions):
                    raise refuse_product(product, f"{place} is not a RunOptions")
                parameters = parameters_of(getattr(each, self.field))
                words = [word for parameter in parameters for word in (*parameter.opts, parameter.name or "")]
                again = next((word for word in words if word in taken), "")
                if again:
                    raise refuse_product(product, f"its option {again} of run is another's, too")
                taken.update(words)
                if parameters:
                    found.append((each, parameters))
        return tuple(found)

    def decorate(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Add the options to a command."""
        for each, _ in reversed(self.products):
            for option in reversed(getattr(each, self.field)):
                function = option(function)
        return function

    def take_values(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Take the values of these options out of the parameters of the command."""
        return {p.name or "": asked.pop(p.name or "") for _, parameters in self.products for p in parameters}

    def prepare(self, call: RunCall) -> tuple[RunCall, list[tuple[RunOptions, RunCall]]]:
        """Prepare every product's options, each on the request that the one before it made.

        Returns the call with the last request and the words that repeat the options, and each product's options with a call that
        has their own values only. Raises UsageError as ``RunOptions.prepare`` does.
        """
        prepared = []
        for each, parameters in self.products:
            own = each.prepare(replace(call, given={p.name or "": call.given[p.name or ""] for p in parameters}))
            call = replace(call, request=own.request, words=(*call.words, *each.repeat_options(own)))
            prepared.append((each, own))
        return call, [(each, replace(own, request=call.request, words=call.words)) for each, own in prepared]


RUN = AddedOptions("options")
WATCH = AddedOptions("watch_options")
