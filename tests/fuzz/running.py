"""A target in a process of its own, which may be killed by what it is given: what it found, and its death where it died."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .audit import ROOT
from .harness import Finding, kept

GRACE = 300
"""Seconds for imports, for the models that inputs are made of, and for making a last input smaller."""


@dataclass(frozen=True)
class Ended:
    """What became of a target: how many inputs were tried, and a line for each finding."""

    inputs: int
    findings: tuple[str, ...]


def run(
    target: str,
    seed: int,
    seconds: float,
    work: Path,
    found: Path,
    command: Sequence[str] = ("-m", "tests.fuzz"),
    python: str = sys.executable,
) -> Ended:
    """Fuzz a target for so long, in the environment of an interpreter; an input that ends the process is a finding, too."""
    arguments = [target, "--seed", str(seed), "--seconds", str(seconds), "--work", str(work), "--found", str(found)]
    done = subprocess.run(
        [python, *command, *arguments], cwd=ROOT, capture_output=True, text=True, errors="replace", check=False,
        timeout=seconds + GRACE,
    )  # fmt: skip
    said = [line.partition(" ") for line in done.stdout.splitlines()]
    lines = [line for word, _, line in said if word == "FOUND"]
    tried = [json.loads(line)["inputs"] for word, _, line in said if word == "TRIED"]
    findings = [f"{each['where']} ({each['why'][:300]})\n  {each['replay']}" for each in map(json.loads, lines)]
    if not tried:
        findings.append(_death(target, done, work, found))
    return Ended(sum(tried), tuple(f"{each}\n  seed {seed}" for each in findings))


def _death(target: str, done: subprocess.CompletedProcess[str], work: Path, found: Path) -> str:
    current = work / "current"
    last = "\n".join(done.stderr.splitlines()[-15:])
    if not current.exists():
        return f"{target} could not start:\n{last}"
    made = Finding(target, "the process ended", f"with status {done.returncode}", current.read_bytes())
    return f"the process ended with status {done.returncode}\n  {kept(made, found)['replay']}\n{last}"
