"""``reconcile environments``: list the environments that uv made for runs, with their sizes, and remove some."""

from __future__ import annotations

import click

from ..streams import say

ALL = "all"


@click.command()
@click.option("--remove", "names", multiple=True, metavar="NAME", help="Remove this one, or `all`. Repeatable.")
def environments(names: tuple[str, ...]) -> None:
    """List the environments that runs have made, or remove some.

    \b
    reconcile environments
    reconcile environments --remove torch-1.10.1
    reconcile environments --remove all

    `--environment`, `--with`, `matrix` and `upgrade` make them with uv and keep them. One that was removed is made again when a
    run needs it. NAME is that of an environment, or of one folder of it. A file that several share counts for the first.
    """
    from ...core.errors import check_names
    from ...launch.environments import provision

    made = provision.list_made()
    folders = {folder.name: (folder, folder.name.rpartition("-")[0]) for folder in made}
    check_names("environment", names, {ALL, *folders, *(name for _, name in folders.values())})
    for folder, name in folders.values():
        size = f"{made[folder] / 1e9:7.2f} GB  {folder.name}"
        if {ALL, name, folder.name} & set(names):
            provision.remove(folder)
            say(f"{size}, removed")
        elif not names:
            say(size)
    if not names:
        say(f"{sum(made.values()) / 1e9:7.2f} GB in {provision.cache_root()}")
