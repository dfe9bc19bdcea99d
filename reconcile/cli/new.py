"""``reconcile new``: a pair file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from .options import PATH
from .streams import say


@click.command()
@click.argument("file", type=PATH, metavar="NAME")
def new(file: Path) -> None:
    """Write a pair file that runs, to start from.

    NAME becomes ./NAME.py: a small model in both frameworks with everything a pair can say of itself. Put your own in
    its place, step by step. A model of your own in one framework needs no file: see `reconcile run --torch`.
    """
    from ..core import atomic
    from ..core.errors import UsageError

    target = file if file.suffix == ".py" else file.with_name(f"{file.name}.py")
    if not target.stem.isidentifier():
        raise UsageError(f"{target.stem!r} cannot name a Python file that is imported. Use letters, digits and _.")
    template = Path(__file__).parents[1] / "templates" / "pair.txt"
    text = template.read_text(encoding="utf-8").replace("THE_PAIR", target.stem)
    try:
        atomic.write_file(target, text, new=True)
    except FileExistsError:
        raise UsageError(f"{target} is there already; it is left as it is. Choose another name.") from None
    say(f"wrote {target}. Run it with: reconcile run --model {target if target.is_absolute() else f'./{target}'}")
