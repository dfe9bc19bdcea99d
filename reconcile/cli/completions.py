"""What the shell offers for the value of an option when the user presses the key."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from ..core.registry import frameworks


def complete_names(names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """Shell completion from names that are looked up when the user presses the key; none if that fails."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        except Exception:
            return []

    return complete


def model_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The models of the zoo, or a file."""
    from ..model_zoo.loading import zoo_names

    if "/" in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(name) for name in zoo_names() if name.startswith(incomplete)]


def counter_names() -> Iterable[str]:
    """The values of ``--counter``."""
    from ..core.registry import known_counters

    return known_counters()


def end_names() -> list[str]:
    """The values of ``--from`` and ``--to``."""
    return [*counter_names(), *(record.trace for record in frameworks().values())]


def convention_names() -> Iterable[str]:
    """The values of ``--convention``."""
    from ..core.conventions import NAMED

    return NAMED


def optimizer_names() -> Iterable[str]:
    """The values of ``--optimizer``."""
    return sorted({name for record in frameworks().values() for name in record.optimizers})


def environment_names() -> Iterable[str]:
    """The values of ``--environment``."""
    from ..launch.environments.named import load

    return load(None)
