"""The README: its first screen is what the tool prints today, and its commands and programs run."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.own.conftest import Repository
from tests.own.documents import BLOCK, commands, consoles, not_printed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PICTURE = (ROOT / "docs" / "pictures" / "terminal.svg").read_text()
COMMANDS = commands(README)
MODULE, STEP, _ = BLOCK.findall(README)
((FIRST, SHOWN),) = consoles(README)
START = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[0] = 'reconcile'; from reconcile.cli import main; main()"
)
ELSEWHERE = "reconcile llm "
"""It needs transformers: `make llm` runs it, and docs/llm.md is run as well."""


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command line that begins with ``reconcile``, typed in a folder."""
    words = [sys.executable, "-c", START, *shlex.split(command)[1:]]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_first_screen_is_what_the_tool_prints(repository: Repository) -> None:
    assert README[: README.index(SHOWN[-1])].count("\n## ") == 1
    assert sum(1 for line in MODULE.splitlines() if line.strip()) == 10
    repository.write(net=MODULE)
    done = typed(FIRST, repository.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not_printed(SHOWN, done.stdout) == []
    assert sum(len(part.splitlines()) for part in SHOWN) > 15
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    drawn = "".join(html.unescape(t).replace("\xa0", " ") for t in re.findall(r"<text [^>]*>(.*?)</text>", PICTURE))
    shown = printed.partition("\nwrote ")[0].splitlines()
    missing = [line for line in shown if "".join(line.split()) not in "".join(drawn.split())]
    assert missing == [], "docs/pictures/terminal.svg is stale: `make pictures`"


@pytest.mark.frameworks
@pytest.mark.slow
def test_every_other_command_of_the_tool_runs(repository: Repository) -> None:
    """One after the other, as a reader types them, beside the README's own ``net.py``."""
    repository.write(net=MODULE)
    failed = {}
    others = [command for command in COMMANDS if command.startswith("reconcile ") and command != FIRST]
    others = [command for command in others if not command.startswith(ELSEWHERE)]
    for command in others:
        done = typed(command, repository.folder)
        if done.returncode:
            failed[command] = done.stdout + done.stderr
    assert failed == {}
    assert len(others) > 4
    written = {path.name for path in repository.folder.glob("reports/*.html")}
    assert written == {"net.Net.html", "net.Net-training.html", "my_pair.html"}


LOOP = """import reconcile, torch
from net import Net

model, images, labels = Net(), torch.randn(1, 1, 32, 32), torch.tensor([3])
loss_of, optimizer = torch.nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters())
"""
"""What a reader has before the lines that count a step."""


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_four_lines_count_a_training_step(repository: Repository) -> None:
    """The image has no gradient, and neither has the GRU's first state, which is none of its own."""
    assert len(STEP.splitlines()) == 4
    repository.write(net=MODULE, program=f"import sys\n\nsys.path.insert(0, {str(ROOT)!r})\n{LOOP}{STEP}")
    words = [sys.executable, "-W", "error", "program.py"]
    done = subprocess.run(words, cwd=repository.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    conv, gates, state, head = 8 * 30 * 30 * 9, 3 * 64 * 240, 3 * 64 * 64, 64 * 10
    macs = 2 * conv + 30 * 3 * gates + (30 + 29 + 30) * state + 3 * head
    assert f"{2 * macs:,} FLOPs" in done.stdout
    assert (
        " per step of Net as the program runs it (1 call of a model, 1 backward pass, 1 step of an optimizer) in PyTorch "
        in done.stdout
    )
