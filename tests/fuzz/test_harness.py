"""The fuzzing finds what it is there to find: planted targets that raise, write, run, start, hang, die."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import run_program

from .planted import CHECKS
from .running import Ended, run

WRONG = {
    "evaluates": "outside its folder: runs: runs code of '<string>'",
    "slow": "Slow in tests/fuzz/planted.py:<lambda>: Slow: it takes too long",
    "starts": "outside its folder: subprocess.Popen: subprocess.Popen (",
    "swallowed": "outside its folder: opens: opens ",
    "unheard": "outside its folder: ",
    "writes": "outside its folder: opens: opens ",
}
ENDS = {"dies": "the process ended with status -6"}


def planted(name: str, folder: Path, seconds: float = 0.5) -> Ended:
    return run(name, 3, seconds, folder / "work", folder / "found", ("-m", "tests.fuzz.planted"))


def replay(*files: Path) -> tuple[int, dict[str, str]]:
    """Exit status of a replay of planted inputs, and what it says of each target."""
    done = run_program("-m", "tests.fuzz.planted", "--replay", *files)
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    return done.returncode, {file.name.partition("-")[0]: said[str(file)] for file in files}


def test_what_is_wrong_is_noticed(tmp_path: Path) -> None:
    assert {*WRONG, *ENDS, "raises", "fine"} == set(CHECKS)
    files = [tmp_path / f"{name}-1" for name in ("fine", *WRONG)]
    for file in files:
        file.write_bytes(b"x")
    status, said = replay(*files)
    assert (status, said.pop("fine")) == (1, "nothing is wrong")
    assert {name: line for name, line in said.items() if not line.startswith(WRONG[name])} == {}


def test_a_finding_is_as_small_as_it_gets_and_kept(tmp_path: Path) -> None:
    """Bytes above 16 are wrong: the smallest such input is one byte, 17."""
    ended = planted("raises", tmp_path, 3.0)  # to make it smaller takes a while on a busy machine
    (kept,) = (tmp_path / "found").iterdir()
    assert kept.read_bytes() == b"\x11"
    where, why = "ValueError in tests/fuzz/planted.py:_large", "ValueError: 17 is above 16"
    assert ended.findings == (f"{where} ({why})\n  python -m tests.fuzz --replay {kept}\n  seed 3",)
    assert replay(kept) == (1, {"raises": f"{where}: {why}"})


@pytest.mark.parametrize("name", ENDS)
def test_an_input_that_ends_the_process_is_kept(name: str, tmp_path: Path) -> None:
    ended = planted(name, tmp_path)
    (kept,) = (tmp_path / "found").iterdir()
    assert len(ended.findings) == 1
    assert ended.findings[0].startswith(f"{ENDS[name]}\n  python -m tests.fuzz --replay {kept}\n")
