"""``reconcile new``: a pair file, or the package of a counter, to start from."""

from __future__ import annotations

from pathlib import Path

import click

from .options import PATH
from .streams import say

COUNTER = {
    "pyproject.toml": "pyproject",
    "reconcile_THE_COUNTER/__init__.py": "init",
    "reconcile_THE_COUNTER/capture.py": "capture",
    "reconcile_THE_COUNTER/rules.py": "rules",
    "reconcile_THE_COUNTER/bridge.py": "bridge",
}
"""Files of a counter's package, each with the template that it is made from."""


@click.command()
@click.argument("file", type=PATH, metavar="NAME")
@click.option("--counter", is_flag=True, help="Write the package of a counter instead.")
def new(file: Path, counter: bool) -> None:
    """Write a pair file or a counter to start from.

    NAME becomes ./NAME.py: a small model in both frameworks with everything a pair can say of itself. Put your own in
    its place, step by step. A model of your own in one framework needs no file: see `reconcile run --torch`.

    With --counter, NAME becomes a folder with a counter's package: install it with `pip install -e NAME`, run the counter with
    `reconcile run --model gru_demo --counter NAME`, and test it with `reconcile conform NAME`.
    """
    if counter:
        _counter(file)
    else:
        _pair(file)


def _counter(folder: Path) -> None:
    from ..core import atomic
    from ..core.errors import UsageError
    from ..core.registry import known_counters

    name = folder.name
    if not name.isidentifier():
        raise UsageError(f"{name!r} cannot name a Python package. Use letters, digits and _.")
    if name in known_counters():
        raise UsageError(f"a counter named {name} is already registered. Choose another name.")
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} is there already; it is left as it is. Choose another name.")
    for path, template in COUNTER.items():
        target = folder / path.replace("THE_COUNTER", name)
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_file(target, _filled(f"counter/{template}", "THE_COUNTER", name), new=True)
    say(f"wrote {folder}. Install it with: pip install -e {folder}")
    say(f"Then run it with: reconcile run --model gru_demo --counter {name}")


def _filled(template: str, word: str, name: str) -> str:
    path = Path(__file__).parents[1] / "templates" / f"{template}.txt"
    return path.read_text(encoding="utf-8").replace(word, name)


def _pair(file: Path) -> None:
    from ..core import atomic
    from ..core.errors import UsageError

    target = file if file.suffix == ".py" else file.parent / f"{file.name}.py"
    if not target.stem.isidentifier():
        raise UsageError(f"{target.stem!r} cannot name a Python file that is imported. Use letters, digits and _.")
    try:
        atomic.write_file(target, _filled("pair", "THE_PAIR", target.stem), new=True)
    except FileExistsError:
        raise UsageError(f"{target} is there already; it is left as it is. Choose another name.") from None
    say(f"wrote {target}. Run it with: reconcile run --model {target if target.is_absolute() else f'./{target}'}")
