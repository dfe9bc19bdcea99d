"""docs/corrections.md: every command prints what the page shows, and its numbers are closed forms."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.matrix.llm_page import python
from tests.own.documents import LEFT_OUT, consoles, files, not_printed

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "corrections.md").read_text()
REFUSED = consoles(TEXT.replace("```text\n$ ", "```console\n$ "))
SHOWN = consoles(TEXT)
"""What exits with 0; the others of REFUSED exit with 1."""
THREADS = (
    "flops-counter.pytorch/issues/142",
    "DeepSpeed/pull/8419",
    "torchtitan/pull/4300",
    "ultralytics/pull/25545",
    "ultralytics/pull/25573",
    "Megatron-Bridge/pull/5344",
    "olmoearth_pretrain/pull/605",
)
MARKS = {
    **dict.fromkeys(("yolo12n:make", "heads:make", "earth:make", "reconcile mfu "), pytest.mark.slow),
    **dict.fromkeys(("llm config.json", "decode --torch torchvision:swin_t", "yolo:make"), pytest.mark.heavy),
    "": pytest.mark.matrix,
}
"""By a part of the command: what needs no environment of its own, what takes half a minute or more, and all others."""


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a folder with the page's files; `llm` where transformers is."""
    for name, text in files(TEXT).items():
        (folder / name).write_text(text)
    (folder / "config.json").write_text(re.findall(r"^```json\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)[0])
    words = [
        python() if command.startswith("reconcile llm ") else sys.executable,
        "-m",
        "reconcile",
        *shlex.split(command)[1:],
    ]
    there = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=folder, env=there, capture_output=True, text=True, check=False)


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("command", "parts"),
    [
        pytest.param(command, parts, marks=MARKS[next(part for part in MARKS if part in command)])
        for command, parts in REFUSED
    ],
    ids=[shlex.join(shlex.split(command)[1:4]) for command, _ in REFUSED],
)
def test_a_command_prints_what_the_page_shows(command: str, parts: list[str], tmp_path: Path) -> None:
    done = typed(command, tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0 if (command, parts) in SHOWN else 1, False), done.stderr
    assert not_printed(parts, done.stdout) == []


@pytest.mark.frameworks
@pytest.mark.heavy
def test_repvgg_has_its_figure_in_the_fused_form(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "decode.md").read_text().replace("```text\n$ ", "```console\n$ ")
    ((command, parts),) = [(command, parts) for command, parts in consoles(page) if "timm:repvgg_a1" in command]
    done = typed(command, tmp_path)
    assert done.returncode == 1
    assert not_printed(parts, done.stdout) == []


def test_the_page_shows_every_thread_with_a_command() -> None:
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    assert [thread for thread, part in zip(THREADS, sections, strict=True) if thread not in part] == []
    assert [part for part in sections if "$ reconcile " not in part or LEFT_OUT not in part] == []


def numbers() -> dict[str, int]:
    """What the page says, by closed forms."""
    layers, width, heads, size, groups, tokens, words = 48, 2048, 32, 128, 4, 8192, 151_936
    experts, chosen, inner = 128, 8, 768
    attention = width * (heads + 2 * groups) * size + heads * size * width
    expert, router, table = 3 * width * inner, width * experts, words * width
    norms = layers * (2 * width + 2 * size) + width
    every = layers * (attention + router + experts * expert) + norms + 2 * table
    active = layers * (attention + router + chosen * expert) + table
    whole = 6 * layers * heads * 2 * size * tokens
    return {
        "the linear products of swin_t's attention": 2 * 12 * 4 * 3136 * 96**2,
        "one layer of it": 2 * 4 * 3136 * 96**2,
        "a linear layer with its bias": 4 * 16 * (2 * 8 + 1),
        "matmul of two stacks": 2 * 2 * 3 * 4 * 8 * 5,
        "addmm with its bias": 4 * 5 * (2 * 8 + 1),
        "what ran per token": 6 * active + whole,
        "torchtitan": 6 * (active + norms) + whole,
        "torchtitan-hf": 6 * every + whole // 2,
        "norms per token": 6 * norms,
        "yolo12n's attention": 4 * 2 * (4 * 2 * 400**2 * 64 + 4 * 400**2 * 64),
        "places and texts": 2 * (80**2 + 40**2 + 20**2) * 512 * 80,
        "attention of the block": 2 * 2 * 576**2 * 192,
        "a head three times too often": 3 * 2 * 576 * 192**2,
        "tokens of a step": 32 * 2048,
    }


def test_its_numbers_are_closed_forms() -> None:
    assert {what: value for what, value in numbers().items() if f"{value:,}" not in TEXT} == {}
