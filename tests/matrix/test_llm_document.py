"""docs/llm.md: every command prints what the page shows, in an environment with transformers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.own.documents import consoles, not_printed
from tests.own.one_process import Commands

ROOT = Path(__file__).parents[2]
CONSOLES = consoles((ROOT / "docs" / "llm.md").read_text())


def configuration() -> dict[str, str]:
    """The file that the page shows, by its name."""
    return {command.removeprefix("cat "): parts[0] for command, parts in CONSOLES if command.startswith("cat ")}


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("command", "parts"), [c for c in CONSOLES if c[0].startswith("reconcile ")], ids=lambda c: str(c)[:40]
)
def test_the_page_shows_what_is_printed(command: str, parts: list[str], llm: Commands, tmp_path: Path) -> None:
    for name, text in configuration().items():
        (tmp_path / name).write_text(text)
    done = llm(*command.split()[1:], folder=tmp_path)
    assert done.returncode == int("formula conform" in command), done.stderr  # the function that it shows is wrong
    assert not_printed(parts, done.stdout) == []
