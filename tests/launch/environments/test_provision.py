"""Making and caching: once, completely or not at all, also if other processes do the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.launch.environments import interpreters, provision
from reconcile.launch.environments.definitions import Environment, load
from reconcile.launch.environments.interpreters import EnvironmentError_
from reconcile.launch.environments.provision import STAMP, ensure, folder_of
from tests.launch.conftest import until

ENV = Environment("mine", "Mine", "3.8", ("tf",), ("tensorflow==1", "protobuf<3.20"))
Uv = Callable[..., Path]


def venvs(log: Path) -> int:
    """How often uv was asked for a virtual environment."""
    return sum(line.startswith("venv ") for line in log.read_text().splitlines())


def test_made_once_without_pythons_away_from_the_users_folder(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    log = uv()
    monkeypatch.setenv("PYTHONPATH", "/mine")
    said: list[str] = []
    python = ensure(ENV, said.append)
    assert python == folder_of(ENV) / "bin" / "python"
    assert subprocess.run([python, "-c", "pass"]).returncode == 0
    assert [message.partition(":")[0] for message in said] == ["mine", "mine"]
    assert ensure(ENV, said.append) == python
    assert len(said) == 2
    calls = log.read_text().splitlines()
    assert calls[0] == f"venv --quiet --no-project --python {sys.executable} {folder_of(ENV)}"
    assert calls[2] == f"pip install --quiet --python {python} tensorflow==1 protobuf<3.20"
    assert set(calls[1::2]) == {f"downloads=never preference=only-system path= cwd={folder_of(ENV).parent}"}
    assert (folder_of(ENV) / STAMP).read_text().splitlines()[1:] == list(ENV.requirements)


def test_current_is_the_running_interpreter_and_asks_no_uv(uv: Uv) -> None:
    log = uv()
    assert ensure(load()["current"]) == Path(sys.executable)
    assert not log.exists()


def test_packages_over_running_ones_come_alone_and_find_those(uv: Uv) -> None:
    log = uv()
    env = Environment("mine", "Mine", "current", ("tf",), ("six==1.16.0",), over="current")
    python = ensure(env)
    assert log.read_text().splitlines()[2] == f"pip install --quiet --python {python} --no-deps six==1.16.0"
    assert folder_of(env) != folder_of(replace(env, over=""))
    (pth,) = folder_of(env).glob("lib/python*/site-packages/*.pth")
    # -S leaves the test run's own packages out, so that what is found is found through the file
    code = f"import site; site.addsitedir({str(pth.parent)!r}); import click; print(click.__file__)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env={}, check=False)
    assert done.stdout.strip() == click.__file__, done.stderr


@pytest.mark.parametrize("lacking", ["stamp", "interpreter"])
def test_what_is_not_whole_is_made_again(uv: Uv, lacking: str) -> None:
    log = uv()
    python = ensure(ENV)
    rubbish = folder_of(ENV) / "rubbish"
    rubbish.touch()
    if lacking == "stamp":
        (folder_of(ENV) / STAMP).unlink()
    else:
        python.unlink()
        python.symlink_to("/nowhere/python")
    assert ensure(ENV) == python
    assert python.exists()
    assert venvs(log) == 2
    assert not rubbish.exists()


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (
            "Using Python 3.8\nerror: No solution found when resolving dependencies\n  cause: Because a, b.\n\nhint: You",
            "uv: No solution found when resolving dependencies; Because a, b",
        ),
        ("  × No solution found:\n  ╰─▶ Because there is none.", "uv: No solution found; Because there is none"),
        ("error: Failed to fetch: `u`\n  Caused by: refused\n  Caused by: refused", "uv: Failed to fetch: `u`; refused"),
        ("one\nsomething odd", "uv: something odd"),
        ("", "uv: ended with status 2"),
    ],
)  # fmt: skip
def test_a_failed_install_gives_uvs_reason_and_leaves_nothing(uv: Uv, stderr: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(stderr)
    uv(f"cat {tmp_path / 'stderr'} >&2; exit 2")
    with pytest.raises(EnvironmentError_) as caught:
        ensure(ENV)
    assert str(caught.value) == reason
    assert not folder_of(ENV).exists()
    uv()
    assert ensure(ENV).exists()


def test_a_missing_interpreter_and_a_missing_uv_are_reasons(
    uv: Uv, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    uv()
    with monkeypatch.context() as patch:
        patch.setattr(provision, "uv_command", lambda: ("/nowhere/uv",))
        with pytest.raises(EnvironmentError_, match="uv cannot be started: No such file"):
            ensure(ENV)
    monkeypatch.undo()  # the real search for interpreters, by a uv that finds none
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(provision, "uv_command", lambda: ("uv",))
    monkeypatch.setattr(interpreters, "uv_command", lambda: (sys.executable, "-c", "raise SystemExit(2)"))
    with pytest.raises(EnvironmentError_, match=r"no Python 3\.1 "):
        ensure(Environment("old", "Old", "3.1", ("tf",), ()))


def test_an_install_that_hangs_is_ended(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    uv("exec sleep 60")
    monkeypatch.setattr(provision, "INSTALL_LIMIT", 0.3)
    with pytest.raises(EnvironmentError_, match=r"uv did not finish within 0\.3 s"):
        ensure(ENV)
    assert not folder_of(ENV).exists()


def test_a_cache_that_cannot_be_used_is_a_reason(uv: Uv, tmp_path: Path) -> None:
    uv()
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(EnvironmentError_, match=r"the environment cache .* cannot be used: Not a directory"):
        ensure(ENV)


CHILD = """
import sys
from pathlib import Path
from reconcile.launch.environments import provision as e
e.uv_command = lambda: (sys.argv[1],)
e.find = lambda version: Path(sys.executable)
e.ensure(e.Environment("mine", "Mine", "3.8", ("tf",), ("tensorflow==1", "protobuf<3.20")))
"""


@pytest.fixture
def child(tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> Callable[[], subprocess.Popen[bytes]]:
    """Start a process that makes ENV with the stand-in for uv."""

    def started() -> subprocess.Popen[bytes]:
        return start(
            [sys.executable, "-c", CHILD, str(tmp_path / "bin" / "uv")],
            start_new_session=True,
            stderr=subprocess.DEVNULL,
            cwd=Path(provision.__file__).parents[3],
        )

    return started


def test_threads_and_processes_at_once_make_it_once(uv: Uv, child: Callable[[], subprocess.Popen[bytes]]) -> None:
    log = uv("sleep 0.5")
    said: list[str] = []
    processes = [child(), child()]
    with ThreadPoolExecutor(3) as pool:
        pythons = set(pool.map(lambda _: ensure(ENV, said.append), range(3)))
    assert [process.wait() for process in processes] == [0, 0]
    assert pythons == {folder_of(ENV) / "bin" / "python"}
    assert venvs(log) == 1
    assert [message for message in said if "waiting for another process" in message], said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("orphaned", [False, True], ids=["with its uv", "its uv lives on"])
def test_a_build_that_is_killed_is_never_taken(
    tmp_path: Path, uv: Uv, child: Callable[[], subprocess.Popen[bytes]], number: signal.Signals, orphaned: bool
) -> None:
    go_on = tmp_path / "go on"
    log = uv(f'until [ -e "{go_on}" ]; do sleep 0.02; done; touch "$(dirname "$5")/late"')
    process = child()
    assert until(lambda: log.exists() and "pip install" in log.read_text())
    (os.kill if orphaned else os.killpg)(process.pid, number)
    assert process.wait() != 0
    assert not (folder_of(ENV) / STAMP).exists()
    uv()
    said: list[str] = []

    def say(message: str) -> None:
        said.append(message)
        go_on.touch()

    assert ensure(ENV, say).exists()
    assert venvs(log) == 2
    if orphaned and number == signal.SIGKILL:
        assert "waiting" in said[0]
    assert not (folder_of(ENV) / "bin" / "late").exists()
    assert list(folder_of(ENV).parent.glob("*.lock")) == []  # that of the killed one neither


def test_what_is_made_is_listed_with_its_size_and_removed(uv: Uv) -> None:
    uv()
    folder, other = (ensure(env).parents[1] for env in (ENV, replace(ENV, name="other")))
    (folder / "big").write_bytes(b"x" * 2**20)
    os.link(folder / "big", other / "big")
    made = provision.list_made()
    assert list(made) == [folder, other]
    assert made[folder] >= 2**20 > made[other]
    done = CliRunner().invoke(cli, ["environments", "--remove", "mine"])
    assert done.exit_code == 0
    assert list(provision.list_made()) == [other]
    assert ensure(ENV).is_file()  # made again
    assert CliRunner().invoke(cli, ["environments", "--remove", "nothing"]).exit_code == 2
