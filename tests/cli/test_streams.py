"""Standard streams that are full, closed, gone or take few letters: a sentence where one can be read, and nothing hangs."""

from __future__ import annotations

import errno
import io
import subprocess
import sys
from pathlib import Path

import pytest

from reconcile.cli import cli
from reconcile.cli.streams import exit_code, say
from reconcile.core.errors import EXIT_OK, EXIT_USAGE
from tests.cli.conftest import Stub, shell


class Full(io.StringIO):
    """A stdout that takes nothing."""

    def write(self, _text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


PRINTING = [("--help",), ("--version",), ("explain", "causes"), ("explain", "matmul"), ("run", "--help")]


def ended(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[object, str]:
    """The exit code and stderr of a call in this process, whatever its stdout is."""
    with pytest.raises(SystemExit) as end:
        cli(list(args), prog_name="reconcile")
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize("args", [*PRINTING, ("run", "--model", "gru_demo")])
def test_a_full_stdout_is_one_sentence(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: tuple[str, ...]
) -> None:
    more = ("--out", str(stub.folder)) if args[-1] == "gru_demo" else ()
    monkeypatch.setattr(sys, "stdout", Full())
    code, said = ended(capsys, *args, *more)
    assert said == "Error: standard output cannot be written to: No space left on device. Send it somewhere else.\n"
    assert code == EXIT_USAGE
    assert not more or (stub.folder / "toy.md").exists()


@pytest.mark.parametrize("args", [*PRINTING, ("run", "--model", "gru_demo")])
def test_a_closed_stdout_is_known_before_anything_runs(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    code, said = ended(capsys, *args)
    assert (code, said) == (EXIT_USAGE, "Error: standard output is closed: send it to a file, or to /dev/null.\n")
    assert stub.requests == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{python} -m reconcile explain causes >&-", EXIT_USAGE),
        ("ulimit -f 0; {python} -m reconcile explain causes > {folder}/full", EXIT_USAGE),
        ("ulimit -f 0; {python} -u -m reconcile --help > {folder}/full", EXIT_USAGE),
        ("ulimit -f 0; {python} -m reconcile lst 2> {folder}/full", EXIT_USAGE),
        ("{python} -m reconcile explain causes 2>&- <&-", EXIT_OK),
        ("{python} -m reconcile lst 2>&- <&- >&-", EXIT_USAGE),
    ],
)
def test_streams_of_a_real_process_that_take_nothing(tmp_path: Path, line: str, code: int) -> None:
    done = shell(tmp_path, line)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == (0 if "2>" in line else 1)
    assert bool(done.stdout) == (code == EXIT_OK)


@pytest.mark.parametrize("args", [("--help",), ("explain", "causes")])
def test_a_reader_that_has_gone_is_no_fault(args: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "reconcile", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(timeout=300)) == (b"", EXIT_OK)
    process.stderr.close()


def test_a_stdout_of_few_letters_shows_the_others_as_escapes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(taken, encoding="latin-1", errors="strict"))
    code, said = ended(capsys, "explain", "counters")
    assert (code, said) == (EXIT_OK, "")
    say("β")
    assert taken.getvalue().endswith(b"\\u03b2\n")


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), BlockingIOError(errno.EAGAIN, "no more")])
def test_a_limit_of_processes_is_said_as_one(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        raise error

    assert exit_code(call) == EXIT_USAGE
    assert "ulimit -u" in capsys.readouterr().err
