"""What a worker starts ends with it, wherever it went; and all of it, folder included, where the tool itself is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.launch.environments.interpreters import Interpreter
from reconcile.launch.workers.supervisor import Supervisor
from reconcile.launch.workers.worker_files import Outcome
from reconcile.products.gallery import rows
from tests.launch.conftest import PATIENCE, STRAY, running, until
from tests.workers import meta, request

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has subreapers and /proc")

HANGS = "time.sleep(1000)"
TOOL = """
import json, os, signal, sys, tempfile, time

request = json.load(open(sys.argv[1]))
stray(request["device"])
with open(request["out"] + "/part", "w") as file:
    json.dump(META, file)
os.replace(request["out"] + "/part", request["out"] + "/meta.json")
open(tempfile.gettempdir() + "/mine", "w").close()
"""


def supervisor(tmp_path: Path, ready: Path, code: str, timeout: float = PATIENCE) -> Supervisor:
    """A worker that leaves a stray and a temporary file behind, and then does this."""
    tool = tmp_path / "tool.py"
    tool.write_text(f"META = {meta('torch')!r}\n{STRAY}{TOOL}{code}")
    asked = request("torch", tasks=("thop",), device=str(ready))  # a field that this worker may use as it likes
    return Supervisor(asked, tmp_path / "run", timeout, lambda _event: None, tool, Interpreter())


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "its process ended with status 0 before it was done"),
        ("os._exit(4)", "its process ended with status 4 before it was done"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "its process died of signal 11 (SIGSEGV)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "its process was killed (signal 9: out of memory?)"),
        ("os.killpg(0, signal.SIGKILL)", "its process was killed (signal 9: out of memory?)"),
        (HANGS, "its process ran into the time limit of 0.5 s"),
    ],
)
def test_a_worker_ends_with_all_that_it_started(tmp_path: Path, ready: Path, code: str, said: str) -> None:
    one, mine = supervisor(tmp_path, ready, code), tmp_path / "run" / "0" / "tmp" / "mine"

    def limit() -> None:
        """However long it took to start, it is given half a second from here on."""
        assert until(mine.exists)
        one.timeout = 0.5

    with ThreadPoolExecutor(1) as pool:
        limited = pool.submit(limit) if code == HANGS else None
        found = one.run()
    assert limited is None or limited.exception() is None
    assert found == {"thop": Outcome(None, said)}
    assert ready.exists()
    assert running(ready) == []
    assert list(mine.parent.iterdir()) == [mine]


def test_a_run_that_is_stopped(tmp_path: Path, ready: Path) -> None:
    one = supervisor(tmp_path, ready, HANGS)
    thread = threading.Thread(target=one.run)
    thread.start()
    assert until(ready.exists)
    one.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert running(ready) == []


def test_an_interruption_waits_for_no_worker_in_other_threads(tmp_path: Path, ready: Path) -> None:
    """As in a gallery or a matrix, where each model runs in a thread: one is done, and the other hangs."""

    def measure(name: str) -> tuple[Any, None]:
        if name == "hangs":
            supervisor(tmp_path, ready, HANGS).run()
        assert until(ready.exists)
        return SimpleNamespace(model=name), None

    def each(*_found: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows.at_once(["done", "hangs"], 2, measure, each)
    assert running(ready) == []


def test_a_worker_that_kills_its_reaper(tmp_path: Path, ready: Path) -> None:
    """It dies of it, and what it has started is known by a variable, if it has kept that."""
    code = "reaper = os.getppid()\nos.fork() or (os.setsid(), time.sleep(1000))\nos.kill(reaper, signal.SIGKILL)\n"
    found = supervisor(tmp_path, ready, code + "time.sleep(1000)").run()
    assert found == {"thop": Outcome(None, "its process was killed (signal 9: out of memory?)")}
    assert until(lambda: not running(tmp_path / "tool.py"))  # the kernel ends what was killed in its own time


HOME = """
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from tests.launch.workers.test_reaper import supervisor
supervisor(Path(sys.argv[1]), Path(sys.argv[2]), "time.sleep(1000)").run()
"""


def test_where_the_tool_is_killed(
    tmp_path: Path, ready: Path, environ: dict[str, str], start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start([sys.executable, "-c", HOME, str(tmp_path), str(ready)], env=environ)
    assert until(ready.exists)
    process.send_signal(signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert until(lambda: not running(ready))
