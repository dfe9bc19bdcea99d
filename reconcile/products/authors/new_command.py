"""``reconcile zoo new`` and ``reconcile counter new``: commands that write a pair file or a counter's package from templates."""

from __future__ import annotations

from pathlib import Path

import click

from ...cli.options import PATH
from ...cli.streams import say

COUNTER = {
    "pyproject.toml": "pyproject",
    "reconcile_THE_COUNTER/__init__.py": "init",
    "reconcile_THE_COUNTER/capture.py": "capture",
    "reconcile_THE_COUNTER/rules.py": "rules",
    "reconcile_THE_COUNTER/bridge.py": "bridge",
}
"""Files of a counter's package, each with the template that it is made from."""


@click.command("new")
@click.argument("folder", type=PATH, metavar="NAME")
def new_counter(folder: Path) -> None:
    """Write the package of a counter to start from.

    NAME becomes a folder with a package. Install it with `pip install -e NAME`, run the counter with
    `reconcile run --model gru_demo --counter NAME`, and test it with `reconcile counter conform NAME`.
    """
    from ...core import atomic
    from ...core.errors import UsageError
    from ...core.registry import known_counters

    name = folder.name
    if not name.isidentifier():
        raise UsageError(f"{name!r} cannot name a Python package. Use letters, digits and _.")
    if name in known_counters():
        raise UsageError(f"a counter named {name} is already registered. Choose another name.")
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} already exists. Choose another name.")
    for path, template in COUNTER.items():
        target = folder / path.replace("THE_COUNTER", name)
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_file(target, _fill_template(f"counter/{template}", "THE_COUNTER", name), new=True)
    say(f"wrote {folder}. Install it with: pip install -e {folder}")
    say(f"Then run it with: reconcile run --model gru_demo --counter {name}")


def _fill_template(template: str, word: str, name: str) -> str:
    path = Path(__file__).parent / "templates" / f"{template}.txt"
    return path.read_text(encoding="utf-8").replace(word, name)


@click.command("new")
@click.argument("file", type=PATH, metavar="NAME")
def new_pair(file: Path) -> None:
    """Write a pair file to start from.

    NAME becomes ./NAME.py: a small model in both frameworks, with every declaration that a pair can make. Replace the models
    with your own, step by step. One model in one framework needs no file: see `reconcile run --torch`.
    """
    from ...core import atomic
    from ...core.errors import UsageError

    target = file if file.suffix == ".py" else file.parent / f"{file.name}.py"
    if not target.stem.isidentifier():
        raise UsageError(f"{target.stem!r} cannot name a Python module. Use letters, digits and _.")
    try:
        atomic.write_file(target, _fill_template("pair", "THE_PAIR", target.stem), new=True)
    except FileExistsError:
        raise UsageError(f"{target} already exists. Choose another name.") from None
    say(f"wrote {target}. Run it with: reconcile run --model {target if target.is_absolute() else f'./{target}'}")
