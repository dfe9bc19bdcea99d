"""The messages of a run while it goes on, on a terminal, on a dumb one and into a file, and what ``--quiet`` leaves of it."""

from __future__ import annotations

import pytest

from reconcile.launch.workers.supervisor import Event
from tests.cli.conftest import Stub, Terminal
from tests.report import samples


def test_quiet_says_one_line(stub: Stub) -> None:
    result = stub.run("--quiet")
    assert " ".join(result.stdout.split()).startswith("Reconciled: 4 counters")
    assert "From" not in result.stdout


def test_quiet_says_which_counter_failed_and_why(stub: Stub) -> None:
    stub.answer = samples.without_tf()
    result = stub.run("-q")
    assert result.exit_code == 3
    assert result.stderr == "tf.profiler@frozen: skipped: TensorFlow is not installed.\n"
    assert "From" not in result.stdout
    assert stub.run().stderr == ""  # it stands in the report on stdout


def test_quiet_names_the_models_with_which_all_is_not_well(capsys: pytest.CaptureFixture[str]) -> None:
    from reconcile.cli import progress

    with progress.bar(2, quiet=True) as (begun, tell):
        begun("a")
        tell("a", "reconciled")
        tell("b", "a counter failed: thop to trace@torch: failed: it died")
    assert capsys.readouterr() == ("", "b: a counter failed: thop to trace@torch: failed: it died\n")


EVENTS = (Event("tf", "", "loading"), Event("torch", "thop", "started"), Event("torch", "thop", "failed"))


def test_events_are_lines_on_stderr_only_with_verbose(stub: Stub) -> None:
    stub.events = EVENTS
    assert stub.run().stderr == ""
    assert stub.run("-q").stderr == ""
    assert stub.run("-v").stderr.splitlines() == [
        "TensorFlow: loading",
        "PyTorch: thop started",
        "PyTorch: thop failed",
    ]


def test_on_a_terminal_progress_is_drawn_and_cleared_away(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconcile.cli import progress

    monkeypatch.setattr(progress.sys, "stderr", Terminal())
    with progress.progress(quiet=False, verbose=False) as tell:
        for event in EVENTS:
            tell(event)
    drawn = progress.sys.stderr.getvalue()
    assert "PyTorch: thop failed" in drawn
    assert "TensorFlow  loading" in drawn
    assert drawn.rstrip().endswith("\x1b[2K")


def test_on_a_dumb_terminal_progress_is_lines(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconcile.cli import progress

    stderr = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", stderr)
    monkeypatch.setenv("TERM", "dumb")
    with progress.progress(quiet=False, verbose=False) as tell:
        for event in EVENTS:
            tell(event)
    assert stderr.getvalue().splitlines() == ["TensorFlow: loading", "PyTorch: thop failed"]


def test_progress_says_what_is_done_and_idle_ones_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    from reconcile.cli import progress

    monkeypatch.setattr(progress.sys, "stderr", Terminal())
    with progress.progress(quiet=False, verbose=False) as tell:
        for task in ("trace", "thop"):
            for phase in ("started", "done"):
                tell(Event("tf-1.12, TensorFlow", task, phase))
        tell(Event("current, PyTorch", "", "loading"))
    last = [frame for frame in progress.sys.stderr.getvalue().split("\x1b[2K") if "loading" in frame][-1]
    assert "current, PyTorch  loading" in last
    assert "tf-1.12" not in last
    assert progress._Line("PyTorch", None, {"thop": None}, done=2).text() == "PyTorch     thop; 2 done"
