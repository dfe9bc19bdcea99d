"""SECURITY.md says what is so: its kinds and bounds are those of the tool."""

from __future__ import annotations

import re
from pathlib import Path

from reconcile.products.files import confine, kinds, worker

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_kinds_are_those_that_are_opened() -> None:
    rows = re.findall(r"^\| (.+?) \| `--(\w+)` \| .+ \|$", TEXT, re.MULTILINE)
    assert sorted(rows) == sorted((re.sub("^an? ", "", title), framework) for framework, title in kinds.KINDS.values())


def test_the_bounds_are_those_that_hold() -> None:
    assert f"which may unpack to {kinds.LIMIT >> 30} GiB" in TEXT
    assert f"can write at most {confine.LARGEST >> 30} GiB in all" in TEXT
    assert f"at most {confine.PATIENCE // 60} minutes" in TEXT
    assert f"{worker.MEMORY >> 30} GiB of memory beside {worker.COPIES} times the file" in TEXT
    assert f"more than {worker.LONGEST_RUN:,} turns" in TEXT
    assert confine.PATIENCE % 60 == kinds.LIMIT % (1 << 30) == worker.MEMORY % (1 << 30) == 0


def test_the_attempts_are_those_that_are_made() -> None:
    made = (ROOT / "tests/products/files/attempts.py").read_text()
    harm = made.partition("HARM = {")[2].partition("\n}")[0]
    assert f"tries {harm.count(chr(10))} ways out" in TEXT
