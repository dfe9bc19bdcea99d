"""``reconcile completion``: the script that teaches a shell this tool's commands, options, models and counters."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .streams import say

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of your shell.

    \b
    bash:  echo 'eval "$(reconcile completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(reconcile completion zsh)"' >> ~/.zshrc
    fish:  reconcile completion fish > ~/.config/fish/completions/reconcile.fish
    """
    chosen = get_completion_class(shell)
    assert chosen is not None
    # source() of bash's class starts bash to look at its version; the script itself says what it needs.
    script = chosen(ctx.find_root().command, {}, "reconcile", "_RECONCILE_COMPLETE")
    say(script.source_template % script.source_vars())
