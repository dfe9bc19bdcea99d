"""Clocks and scales of the benchmarks: runs of whole processes, their peak memory, and what the machine is."""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
BARE = HERE / "bare"
MODELS = HERE / "models"
PYTHON = sys.executable
RECONCILE = str(Path(PYTHON).with_name("reconcile"))
MEMORY_STEP = 0.01


@dataclass
class Section:
    """One part of the results: Markdown lines under a title, and the bounds that did not hold."""

    title: str
    lines: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def bound(self, what: str, ratio: float, limit: float) -> str:
        """``1.21 times, at most 1.5``, noted as broken where it is more."""
        if ratio > limit:
            self.broken.append(f"{what} is {ratio:.2f}, more than {limit:g}")
        return f"**{ratio:.2f}** times, at most {limit:g}"


def run(command: list[str], cwd: Path | None = None) -> str:
    """Run to the end; give back what it printed. A failure ends the benchmark."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(Path(part).name for part in command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def busy() -> tuple[float, float]:
    """Processor seconds so far: of the whole machine, and of this process with the children it has waited for."""
    machine = psutil.cpu_times()
    own = os.times()
    return sum(machine) - machine.idle - getattr(machine, "iowait", 0), sum(own[:4])


class Others:
    """How many cores other processes keep busy from now on: with more than a fraction the times say little."""

    def __init__(self) -> None:
        self.began, (self.machine, self.own) = time.perf_counter(), busy()

    def cores(self) -> float:
        machine, own = busy()
        return max((machine - self.machine - (own - self.own)) / (time.perf_counter() - self.began), 0.0)


def medians(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Sorted seconds of each command over interleaved rounds; the first round warms the file cache and is dropped."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            run(command)
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: sorted(values) for name, values in seconds.items()}


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def measured(command: list[str], cwd: Path | None = None) -> tuple[float, int, str]:
    """(seconds, largest sum of resident bytes over the process tree, what it printed); pages shared by two count twice."""
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        process = psutil.Popen(command, stdout=said, stderr=subprocess.STDOUT, cwd=cwd)
        peak = 0
        while process.poll() is None:
            total = 0
            with contextlib.suppress(psutil.NoSuchProcess):
                for member in [process, *process.children(recursive=True)]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        total += member.memory_info().rss
            peak = max(peak, total)
            time.sleep(MEMORY_STEP)
        seconds = time.perf_counter() - start
        said.seek(0)
        text = said.read()
        if process.wait():
            sys.exit(f"{' '.join(Path(part).name for part in command)} failed:\n{text[-2000:]}")
    return seconds, peak, text


def machine() -> str:
    """Cores, memory, system and versions, in a line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "thop", "fvcore", "click"))
    tensorflow = next(f"{name} {version(name)}" for name in ("tensorflow-cpu", "tensorflow") if _installed(name))
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {psutil.virtual_memory().total / 2**30:.0f} GiB of memory, "
        f"{platform.system()}, Python {platform.python_version()}; {tensorflow}, {packages}."
    )


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except ModuleNotFoundError:
        return False


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> list[str]:
    """A Markdown table: names to the left, numbers to the right."""
    return [_row(head), _row(("---", *["---:"] * (len(head) - 1))), *map(_row, rows)]


def _row(cells: tuple[object, ...]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def mib(amount: float) -> str:
    return f"{amount / 2**20:,.0f}"
