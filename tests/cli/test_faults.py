"""Whose a fault is, the exit code says: 2 the user's or the system's, 4 ours. Either is a sentence, and nothing hangs."""

from __future__ import annotations

import errno
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.cli.streams import say
from reconcile.core.errors import EXIT_CRASHED, EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED, EXIT_USAGE, brief, of_system
from reconcile.launch import exits
from tests.cli.conftest import Stub


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, so that no test leaves one elsewhere."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def sentence(result: Result) -> str:
    """What a fault of the user's or the system's is told in: one line on stderr, exit code 2, nothing on stdout."""
    assert (result.exit_code, result.stdout) == (EXIT_USAGE, ""), result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert len(line) < 900
    return line


# Defects of ours


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("a bug\nand its second line"), "RuntimeError: a bug"),
        (MemoryError(), "MemoryError"),
        (RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth exceeded"),
        (KeyError("x"), "KeyError: 'x'"),
    ],
)
def test_a_defect_of_ours_has_a_code_of_its_own_and_keeps_its_traceback(
    stub: Stub, temporary: Path, error: Exception, said: str
) -> None:
    stub.answer = error
    result = stub.run()
    assert (result.exit_code, result.stdout) == (EXIT_CRASHED, "")
    (line,) = result.stderr.splitlines()
    assert re.match(
        rf"Error: this is a defect of reconcile: {re.escape(said)} \(reconcile/cli/run\.py, line \d+\)\.", line
    )
    (kept,) = temporary.iterdir()
    assert line.endswith(f"which is in {kept}.")
    text = kept.read_text()
    assert text.startswith("reconcile ")
    assert "Traceback (most recent call last):" in text
    assert [part for part in str(error).splitlines() if part not in text] == []


def test_where_no_file_takes_the_traceback_it_is_printed(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_options: object) -> tuple[int, str]:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    stub.answer = RuntimeError("a bug \x1b[2J")
    result = stub.run()
    assert result.exit_code == EXIT_CRASHED
    first, *rest = result.stderr.splitlines()
    assert "a bug \\x1b[2J" in first
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "RuntimeError: a bug \\x1b[2J"


@pytest.mark.parametrize(
    "start", ["from reconcile.cli import main; main()", "runpy.run_module('reconcile', None, '__main__')"]
)
def test_a_defect_ends_a_real_process_with_its_code(tmp_path: Path, start: str) -> None:
    code = f"""if 1:
        import runpy, sys
        from reconcile.launch import runner

        def deep(*_):
            deep()

        runner.run = deep
        sys.argv = ["reconcile", "run", "--model", "gru_demo", "--out", {str(tmp_path)!r}]
        {start}
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == EXIT_CRASHED
    assert done.stderr.startswith("Error: this is a defect of reconcile: RecursionError: ")
    assert len(done.stderr.splitlines()) == 1
    assert "RecursionError" in next(tmp_path.glob("*.traceback")).read_text()


def test_every_code_is_another_and_the_help_lists_them(stub: Stub) -> None:
    codes = (EXIT_OK, EXIT_UNEXPLAINED, EXIT_USAGE, EXIT_FAILED, EXIT_CRASHED)
    assert codes == (0, 1, 2, 3, 4)
    said = " ".join(stub.call("--help").stdout.split())
    assert [code for code in codes if f" {code} " not in said.partition("Exit codes:")[2]] == []


# Paths


OPTIONS: dict[str, tuple[str, ...]] = {
    "--torch": ("run", "--input", "1,3"),
    "--tf": ("run", "--input", "1,3"),
    "--onnx": ("run",),
    "--model": ("run",),
    "--formulas": ("run", "--model", "gru_demo"),
    "--convention-file": ("run", "--model", "gru_demo"),
    "--python": ("run", "--model", "gru_demo"),
    "--environments": ("run", "--model", "gru_demo"),
    "--mapping": ("run", "--tf", "a:b", "--torch", "c:d"),
    "--write-mapping": ("run", "--tf", "a:b", "--torch", "c:d"),
    "--out": ("run", "--model", "gru_demo"),
    "--against": ("check", "--model", "gru_demo"),
    "--data": ("gallery", "--model", "conv1x1"),
}


def _link(path: Path) -> None:
    path.symlink_to(path.name)


KINDS: dict[str, Callable[[Path], str]] = {
    "overlong": lambda folder: str(folder / ("a" * 5000)),
    "overlong.py": lambda folder: "a" * 5000 + ".py",
    "loop": lambda folder: (_link(folder / "loop"), str(folder / "loop"))[1],
    "fifo": lambda folder: (os.mkfifo(folder / "fifo"), str(folder / "fifo"))[1],
    "endless": lambda folder: "/dev/zero",
    "zero byte": lambda folder: str(folder / "a\0b"),
    "below a file": lambda folder: str(Path(__file__) / "below"),
    "denied": lambda folder: str(folder / "denied"),
}


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may read everything where that is root: what is called ``denied`` is refused even then."""
    real = os.stat

    def stat(path: object, **options: object) -> os.stat_result:
        if str(path).endswith("denied"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "lstat", stat)
    accessor = getattr(pathlib, "_NormalAccessor", None)
    if accessor is not None:  # Python 3.10 has its own hold of them
        monkeypatch.setattr(accessor, "stat", staticmethod(stat))


@pytest.mark.timeout(20)
@pytest.mark.usefixtures("denied", "temporary")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", OPTIONS)
def test_a_path_that_cannot_be_used_is_one_sentence(tmp_path: Path, option: str, kind: str) -> None:
    path = KINDS[kind](tmp_path)
    words = [*OPTIONS[option], option, path]
    if option != "--out":
        words += ["--out", str(tmp_path / "reports")] if words[0] != "check" else []
    said = sentence(CliRunner().invoke(cli, words, prog_name="reconcile"))
    assert "defect" not in said


@pytest.mark.parametrize("framework", ["tf", "torch", "onnx"])
def test_a_link_that_leads_nowhere_in_a_folder_is_named(tmp_path: Path, framework: str) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"x")
    _link(tmp_path / "itself")
    said = sentence(CliRunner().invoke(cli, ["run", f"--{framework}", str(tmp_path)]))
    assert "itself is a link that leads nowhere (Too many levels of symbolic links)" in said


def test_a_long_name_is_shown_without_its_middle() -> None:
    assert brief("a" * 160) == "a" * 160
    assert brief("a" * 100 + "b" * 100) == "a" * 80 + "..." + "b" * 80


# What the system refuses


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/x/y"), "/x/y cannot be used: Permission denied."),
        (OSError(errno.EIO, "Input/output error", b"/x"), "/x cannot be used: Input/output error."),
        (OSError(errno.EMFILE, "Too many open files"), "a file or folder cannot be used: Too many open files."),
        (OSError("odd."), "a file or folder cannot be used: odd."),
        (OSError(), "a file or folder cannot be used: OSError."),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "a file or folder cannot be used: Broken pipe."),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "a file or folder cannot be used: No space left on device. "
            "Free some space, or name another folder for temporary files (TMPDIR) or for reports (--out).",
        ),
        (
            FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/x']"),
            "a file or folder cannot be used: No usable temporary directory found in ['/x']. "
            "Call from a folder that exists, and set TMPDIR to one that can be written to.",
        ),
    ],
)
def test_what_the_system_refuses_is_no_defect_and_no_verdict(stub: Stub, error: OSError, said: str) -> None:
    stub.answer = error
    assert sentence(stub.run()) == f"Error: {said}"
    assert of_system(error) == said


def test_a_folder_for_temporary_files_that_takes_nothing_is_one_sentence(tmp_path: Path) -> None:
    done = shell(tmp_path, "ulimit -f 1; exec {python} -m reconcile run --model conv1x1 --counter thop --out {folder}")
    assert (done.returncode, len(done.stderr.splitlines())) == (EXIT_USAGE, 1)
    assert done.stderr.startswith("Error: a file or folder cannot be used: File too large. Free some space, ")


def test_a_refusal_stands_where_there_is_no_room_for_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "worker.log").write_text("what the model printed")
    monkeypatch.setattr(exits, "LOGS", str(tmp_path / "gone"))
    refused = exits.refused("the model cannot be used.", tmp_path, "torch")
    assert (str(refused), refused.declined, refused.printed) == ("the model cannot be used.", "torch", "")


# Standard streams


class Full(io.StringIO):
    """A stdout that takes nothing."""

    def write(self, _text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


PRINTING = [
    ("--help",),
    ("--version",),
    ("list", "causes"),
    ("explain", "matmul"),
    ("run", "--help"),
    ("completion", "bash"),
]


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


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell: {python}, {folder}."""
    return subprocess.run(
        ["/bin/sh", "-c", line.format(python=sys.executable, folder=folder)],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{python} -m reconcile list causes >&-", EXIT_USAGE),
        ("ulimit -f 0; {python} -m reconcile list causes > {folder}/full", EXIT_USAGE),
        ("ulimit -f 0; {python} -u -m reconcile --help > {folder}/full", EXIT_USAGE),
        ("ulimit -f 0; {python} -m reconcile lst 2> {folder}/full", EXIT_USAGE),
        ("{python} -m reconcile list causes 2>&- <&-", EXIT_OK),
        ("{python} -m reconcile lst 2>&- <&- >&-", EXIT_USAGE),
    ],
)
def test_streams_of_a_real_process_that_take_nothing(tmp_path: Path, line: str, code: int) -> None:
    done = shell(tmp_path, line)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == (0 if "2>" in line else 1)
    assert bool(done.stdout) == (code == EXIT_OK)


@pytest.mark.parametrize("args", [("--help",), ("run", "--help"), ("list", "causes")])
def test_a_reader_that_has_gone_is_no_fault(args: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "reconcile", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(timeout=60)) == (b"", EXIT_OK)
    process.stderr.close()


def test_a_stdout_of_few_letters_shows_the_others_as_escapes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(taken, encoding="latin-1", errors="strict"))
    code, said = ended(capsys, "list", "counters")
    assert (code, said) == (EXIT_OK, "")
    say("β")
    assert taken.getvalue().endswith(b"\\u03b2\n")
