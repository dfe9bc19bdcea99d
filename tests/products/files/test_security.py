"""SECURITY.md says what is so: its kinds, options, limits and commands are those of the tool, and others link to it."""

from __future__ import annotations

import re
from pathlib import Path

import click

from reconcile.cli import cli
from reconcile.products.files import confine, kinds, worker

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_kinds_are_those_that_are_opened() -> None:
    rows = re.findall(r"^\| (.+?) \| `--(\w+)` \| .+ \|$", TEXT, re.MULTILINE)
    assert sorted(rows) == sorted((re.sub("^an? ", "", title), framework) for framework, title in kinds.KINDS.values())


def test_every_option_exists() -> None:
    known = {"--version"}
    for _, command in cli.walk(click.Context(cli)):
        known |= {option for parameter in command.params for option in parameter.opts}
    named = set(re.findall(r"--[a-z][a-z-]+", TEXT))
    assert {"--trust-file", "--torch", "--tf", "--onnx", "--formulas"} <= named
    assert named - known == set()


def test_every_command_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)`", TEXT))
    assert "fuzz" in named
    assert named - targets == set()


def test_the_bounds_are_those_that_hold() -> None:
    assert f"may unpack to {kinds.LIMIT >> 30} GiB" in TEXT
    assert f"at most {confine.PATIENCE // 60} minutes" in TEXT
    assert f"{worker.MEMORY >> 30} GiB of\nmemory beside {worker.COPIES} times the file" in TEXT
    assert f"more than {worker.LONGEST_RUN:,} turns" in TEXT
    assert confine.PATIENCE % 60 == kinds.LIMIT % (1 << 30) == worker.MEMORY % (1 << 30) == 0
