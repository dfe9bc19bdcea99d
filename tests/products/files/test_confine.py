"""What confines a worker that loads a file: it may not write outside its folder, and reaches no other process or machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.errors import UsageError
from reconcile.launch.environments.interpreters import Interpreter
from reconcile.launch.workers import reaper
from reconcile.launch.workers.supervisor import Event, Supervisor
from reconcile.products.files import confine
from tests.programs import run_program, skip_unless_runs_as
from tests.workers import meta, model_file, request, user_model

ATTEMPTS = Path(__file__).with_name("attempts.py")
HOLDS = {confine.FILES: "", confine.CALLS: ""}


@pytest.fixture(scope="module", autouse=True)
def _linux() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("Landlock and seccomp are Linux's")
    from landlock import LandlockError, landlock_abi_version

    try:
        abi = landlock_abi_version()
    except LandlockError as error:
        pytest.skip(f"this kernel has no Landlock ({error})")
    if abi < 3:
        pytest.skip(f"this kernel's Landlock (ABI {abi}) lets files be emptied")


OTHER = 65534
"""The user "nobody", whose interpreter is the system's."""
SYSTEM_PYTHON = "/usr/bin/python3"


def attempts(tmp_path: Path, confined: bool, python: str = sys.executable, **user: Any) -> Any:
    """What harm and what work is done by a process with a reaper, and the capabilities of that process."""
    inside, outside = tmp_path / "run" / "inside", tmp_path / "outside"
    inside.mkdir(parents=True)
    outside.mkdir()
    (outside / "theirs").write_text("theirs")
    for path in (tmp_path, *tmp_path.rglob("*")) if user else ():
        os.chown(path, OTHER, OTHER)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        worker = [python, str(ATTEMPTS), str(inside), str(outside), str(port)]
        readable = confine.list_readable(Path(python), os.environ, str(ATTEMPTS))
        _, *command = reaper.command(worker, inside, confine if confined else None, readable)
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "env": {**os.environ, "SECRET_TOKEN": "x"},
        }
        with subprocess.Popen([python, *command], cwd=outside, **pipes, **user) as process:
            assert process.stdout is not None
            out = process.stdout.read()  # with standard input open: its end ends the process
            assert process.wait(300) == 0
    return json.loads(out)


def hold_attempts(folder: Path, **given: Any) -> None:
    """No harm is done, all work is, and nothing of root is left but to open files."""
    harm, work, capabilities = attempts(folder, confined=True, **given)
    assert [name for name, said in harm.items() if said == "done"] == []
    assert set(work.values()) == {"done"}
    assert capabilities & ~confine.OPENS == 0
    assert json.loads((folder / "run" / "inside" / reaper.CONFINED).read_text()) == HOLDS
    assert [path.name for path in (folder / "outside").iterdir()] == ["theirs"]
    assert (folder / "outside" / "theirs").read_text() == "theirs"


def test_no_harm_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where PYTHONPATH names folders below wherever a process stands: as an empty entry, and below the root."""
    relative = ["", ".", str(tmp_path.relative_to(os.sep))]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.environ.get("PYTHONPATH", ""), *relative]))
    hold_attempts(tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="this is an ordinary user")
def test_nor_as_an_ordinary_user() -> None:
    skip_unless_runs_as(OTHER, SYSTEM_PYTHON)
    with tempfile.TemporaryDirectory() as folder:
        hold_attempts(Path(folder), python=SYSTEM_PYTHON, user=OTHER, group=OTHER, extra_groups=[])


def test_the_kernel_lets_no_signal_out(tmp_path: Path) -> None:
    """Landlock alone, whatever call would send it."""
    from landlock import landlock_abi_version

    if landlock_abi_version() < confine.SCOPED:
        pytest.skip("this kernel's Landlock knows no signals")
    code = f"""
import os
from reconcile.products.files import confine
confine._files({str(tmp_path)!r}, (), False)
os.kill(os.getpid(), 0)
os.kill(os.getppid(), 0)
"""
    assert "PermissionError" in run_program("-c", code).stderr


def test_unconfined_it_would_be(tmp_path: Path) -> None:
    """This system allows each attempt, except those that a container or Yama refuses to every process."""
    harm, work, _ = attempts(tmp_path, confined=False)
    elsewhere = {"variables of another", "memory of another", "trace another", "namespace", "io_uring", "attributes"}
    assert {name for name, said in harm.items() if said != "done"} <= elsewhere
    assert set(work.values()) == {"done"}


TOOL = """
import json, os, sys

out = json.load(open(sys.argv[1]))["out"]
status = {name: said.strip() for name, _, said in (line.partition(":") for line in open("/proc/self/status"))}
with open(out + "/part", "w") as file:
    json.dump({**META, "status": status}, file)
os.replace(out + "/part", out + "/meta.json")
"""


@pytest.mark.parametrize(
    ("fields", "confined"),
    [
        ({"model": user_model("m.pb", model_file("m.pb", "graph_def"))}, True),
        ({"model": user_model("m.pb", model_file("m.pb", "graph_def", trusted=True))}, False),
        ({"model": user_model("m:make")}, False),
        ({"pair": "m.py"}, False),
    ],
)
def test_a_worker_that_loads_an_untrusted_file_is_confined(
    tmp_path: Path, fields: dict[str, Any], confined: bool
) -> None:
    tool = tmp_path / "tool.py"
    tool.write_text(f"META = {meta()!r}\n{TOOL}")
    events: list[Event] = []
    supervisor = Supervisor(
        request("tf", tasks=("trace",), **fields), tmp_path / "run", 60, events.append, tool, Interpreter()
    )
    supervisor.run()
    assert supervisor.meta is not None
    filtered, phases = ("2", ["confined"]) if confined else ("0", [])
    assert supervisor.meta["status"]["Seccomp"] == filtered
    assert supervisor.meta["status"]["NoNewPrivs"] == str(int(confined))
    assert [event.phase for event in events] == phases
    assert [event.task for event in events] == [confine.sentence(HOLDS)] * confined


def test_an_interpreter_in_a_home_opens_neither_that_home_nor_the_root(tmp_path: Path) -> None:
    """As ``~/bin/python``, and as ``/bin/python`` of a system."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "secret").touch()
    for python in (tmp_path / "bin" / "python", Path("/bin/python3")):
        readable = confine.list_readable(python, os.environ)
        above = {*tmp_path.parents, tmp_path, tmp_path / "secret", Path.home()}
        assert [path for path in readable if Path(path) in above] == []
    assert str(tmp_path / "bin") in confine.list_readable(tmp_path / "bin" / "python", os.environ)


def test_what_an_environment_imports_from_is_read(tmp_path: Path) -> None:
    """A ``.pth`` file may name a folder, or run a statement that adds one; PYTHONPATH names others."""
    venv.create(tmp_path / "own", with_pip=False)
    (site,) = (tmp_path / "own" / "lib").glob("python*/site-packages")
    folders = [tmp_path / name for name in ("named", "added", "variable")]
    for folder in folders:
        folder.mkdir()
    (site / "a.pth").write_text(f"{folders[0]}\n")
    (site / "b.pth").write_text(f"import site; site.addsitedir({str(folders[1])!r})\n")
    variables = {**os.environ, "PYTHONPATH": str(folders[2])}
    readable = confine.list_readable(tmp_path / "own" / "bin" / "python", variables)
    assert {str(folder) for folder in folders} <= set(readable)


def test_a_layer_that_a_system_lacks_leaves_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_given: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(confine, "_files", lacking)
    monkeypatch.setattr(confine, "_calls", lambda: None)
    assert confine.confine("", (), False) == {confine.FILES: "Function not implemented", confine.CALLS: ""}
    monkeypatch.setattr(sys, "platform", "darwin")
    assert set(confine.confine("", (), False).values()) == {"only Linux can prevent it"}


def test_what_does_not_hold_is_said() -> None:
    assert confine.holds(HOLDS)
    reasons = {confine.FILES: "Function not implemented", confine.CALLS: ""}
    assert not confine.holds(reasons)
    assert "Function not implemented" in confine.refusal(reasons)
    assert "--trust-file" in confine.refusal(reasons)


def test_without_a_layer_the_worker_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the reaper itself, whatever home then does."""
    monkeypatch.setattr(confine, "find_libraries", list)
    inside = tmp_path / "inside"
    inside.mkdir()
    worker = [sys.executable, "-c", f"open({str(inside / 'started')!r}, 'w').close()"]
    command = reaper.command(worker, inside, confine, confine.list_readable(Path(sys.executable), os.environ))
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(300) != 0
    assert [path.name for path in inside.iterdir()] == [reaper.CONFINED]


def test_without_a_layer_an_untrusted_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer's package cannot be imported by the reaper, as on a system without it."""
    monkeypatch.setattr(confine, "find_libraries", list)
    tool = tmp_path / "tool.py"
    tool.write_text(f"META = {meta()!r}\n{TOOL}")
    model = user_model("m.pb", model_file("m.pb", "graph_def"))
    asked = request("tf", tasks=("trace",), model=model)
    with pytest.raises(UsageError, match=r"cannot be confined here.*landlock is not installed.*--trust-file"):
        Supervisor(asked, tmp_path / "run", 60, print, tool, Interpreter()).run()
    assert not list(tmp_path.rglob("meta.json"))
