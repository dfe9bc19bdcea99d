"""What the shell offers for the value of an option when the user presses the key."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem


def complete_values(names: Callable[[], Iterable[str]], *, files: bool = False) -> Callable[..., list[CompletionItem]]:
    """Shell completion from names that are looked up when the user presses the key; none if that fails.

    Where ``files`` may be given, what looks like a path is complete_names as one.
    """

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if files and ("/" in incomplete or incomplete.startswith(".")):
            return [CompletionItem(incomplete, type="file")]
        try:
            return [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        except Exception:
            return []

    return complete
