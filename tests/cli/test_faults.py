"""The exit code says whose fault it is: 2 the user's or the system's, 4 ours, with its traceback in a file."""

from __future__ import annotations

import errno
import re
import tempfile
from pathlib import Path

import pytest

from reconcile.core.errors import EXIT_CRASHED, EXIT_USAGE, of_system
from reconcile.launch.workers import crashes
from tests.cli.conftest import Stub, sentence, shell
from tests.programs import run_program


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("a bug\nand its second line"), "RuntimeError: a bug"),
        (MemoryError(), "MemoryError"),
        (RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth exceeded"),
        (KeyError("x"), "KeyError: 'x'"),
    ],
)
def test_a_defect_of_ours_has_its_code_and_keeps_its_traceback(
    stub: Stub, temporary: Path, error: Exception, said: str
) -> None:
    stub.answer = error
    result = stub.run()
    assert (result.exit_code, result.stdout) == (EXIT_CRASHED, "")
    (line,) = result.stderr.splitlines()
    assert re.match(
        rf"Error: this is a defect of reconcile: {re.escape(said)} \(reconcile/cli/commands/run\.py, line \d+\)\.", line
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
    "start",
    [
        "from reconcile.cli import main; main()",
        pytest.param("runpy.run_module('reconcile', None, '__main__')", marks=pytest.mark.slow),
    ],
)
def test_a_defect_ends_a_real_process_with_its_code(tmp_path: Path, start: str) -> None:
    code = f"""if 1:
        import runpy, sys
        from reconcile import workflow

        def deep(*_):
            down()

        def down():  # Python 3.13.0 counts no calls of a function that takes *arguments
            down()

        workflow.run = deep
        sys.argv = ["reconcile", "run", "--model", "gru_demo", "--out", {str(tmp_path)!r}]
        {start}
    """
    done = run_program("-c", code, TMPDIR=str(tmp_path))
    assert done.returncode == EXIT_CRASHED
    assert done.stderr.startswith("Error: this is a defect of reconcile: RecursionError: ")
    assert len(done.stderr.splitlines()) == 1
    assert "RecursionError" in next(tmp_path.glob("*.traceback")).read_text()


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
            "Run from a folder that exists, and set TMPDIR to a folder that you can write to.",
        ),
    ],
)
def test_what_the_system_refuses_is_no_defect_and_no_verdict(stub: Stub, error: OSError, said: str) -> None:
    stub.answer = error
    assert sentence(stub.run()) == f"Error: {said}"
    assert of_system(error) == said


def test_a_temporary_folder_that_takes_nothing_is_one_sentence(tmp_path: Path) -> None:
    done = shell(tmp_path, "ulimit -f 1; exec {python} -m reconcile run --model conv1x1 --counter thop --out {folder}")
    assert (done.returncode, len(done.stderr.splitlines())) == (EXIT_USAGE, 1)
    assert done.stderr.startswith("Error: a file or folder cannot be used: File too large. Free some space, ")


def test_a_refusal_stands_where_there_is_no_room_for_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "worker.log").write_text("what the model printed")
    monkeypatch.setattr(crashes, "LOGS", str(tmp_path / "gone"))
    refused = crashes.refuse_model("the model cannot be used.", tmp_path, "torch")
    assert (str(refused), refused.declined, refused.printed) == ("the model cannot be used.", "torch", "")
