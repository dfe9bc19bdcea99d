"""``reconcile notes``: print the notes in a folder of reports."""

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default="reports")
def notes(folder: Path) -> None:
    """Print the notes of past runs, in the order of their models."""
    for file in sorted(folder.glob("*.note")):
        click.echo(f"{file.stem}: {file.read_text()}")
