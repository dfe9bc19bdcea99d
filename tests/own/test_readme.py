"""The README's first screen: its ten lines, its command and its output are what the tool prints today."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.own.conftest import Repository

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PICTURE = (ROOT / "docs" / "pictures" / "terminal.svg").read_text()
LEFT_OUT = "[...]"


def test_the_first_screen_is_what_the_tool_prints(repository: Repository) -> None:
    found = re.search(r"```python\n(.*?)```\n\n```console\n\$ reconcile (.*?)\n(.*?)```", README, re.DOTALL)
    assert found
    module, command, shown = found.groups()
    assert README[: found.end()].count("\n## ") == 0
    assert sum(1 for line in module.splitlines() if line.strip()) == 10
    repository.write(net=module)
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from reconcile.cli import main; main()"
    words = [sys.executable, "-c", start, *shlex.split(command)]
    done = subprocess.run(words, cwd=repository.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    parts = [part.strip("\n") for part in shown.split(LEFT_OUT)]
    assert [part for part in parts if part not in printed] == []
    assert sum(len(part.splitlines()) for part in parts) > 15
    drawn = "".join(html.unescape(t).replace("\xa0", " ") for t in re.findall(r"<text [^>]*>(.*?)</text>", PICTURE))
    said = printed.partition("\nwrote ")[0].splitlines()
    missing = [line for line in said if "".join(line.split()) not in "".join(drawn.split())]
    assert missing == [], "docs/pictures/terminal.svg is stale: `make pictures`"


def test_what_it_says_of_the_gru() -> None:
    """30 steps of 240 columns: 3 gates of 64 x (240 + 64) multiply-adds each; thop's doubled rest is biases and gates."""
    assert f"{2 * 30 * 3 * 64 * (240 + 64):,}" in README
