"""Whole sweeps of a package of Keras models in both frameworks: killed, resumed, on a Dask cluster that loses a worker.

Whatever happens to a sweep, what it writes in the end is the same, byte for byte, but for what its cells have cost.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from reconcile.launch.environments import definitions as environments
from reconcile.launch.workers import scratch
from reconcile.launch.workers.reaper import MARK as WORKER
from reconcile.products.sweep import listfile, listing
from tests.products.sweep.fakes import MARK, marked

pytestmark = [pytest.mark.slow, pytest.mark.frameworks]
ROOT = Path(__file__).resolve().parents[3]
LIMIT = 300.0
PACKAGE = '''
import os
import keras


def _net(shape, *layers):
    inputs = keras.Input(shape)
    outputs = inputs
    for layer in layers:
        outputs = layer(outputs)
    return keras.Model(inputs, outputs)


def dense(width=5):
    return _net((6,), keras.layers.Dense(width), keras.layers.Dense(4))


def conv(input_shape=None):
    """A network for images of any size. `input_shape` is (12, 12, 3) unless given."""
    return _net((None, None, 3), keras.layers.Conv2D(4, 3), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(2))


def picky():
    if keras.backend.backend() == "torch":
        raise ValueError("this model is for TensorFlow")
    return _net((6,), keras.layers.Dense(3))


def crash():
    os.abort()


def two():
    a, b = keras.Input((6,)), keras.Input((7,))
    return keras.Model([a, b], keras.layers.Dense(2)(keras.layers.concatenate([a, b])))
'''
WORK = {
    "tiny.dense": 2 * (6 * 5 + 5 * 4),
    "tiny.conv": 2 * (10 * 10 * 4 * 3 * 3 * 3 + 4 * 2),
    "tiny.picky": 2 * 6 * 3,
    "tiny.two": 2 * 13 * 2,
}
NAMES = sorted([*WORK, "tiny.crash"])
COUNTERS = ("tf.profiler@frozen", "thop", "fvcore", "flop_counter")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("user")
    (made / "tiny.py").write_text(PACKAGE)
    return made


def command(out: str, *more: str) -> list[str]:
    chosen = [word for name in COUNTERS for word in ("--counter", name)]
    return [sys.executable, "-m", "reconcile", "sweep", "tiny", "--out", out, *chosen, *more]


def environ(mark: str = "") -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), MARK: mark}


def sweep(folder: Path, out: str, *more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(out, *more), cwd=folder, env=environ(), capture_output=True, text=True, timeout=LIMIT * 2
    )
    assert done.returncode == 2, done.stdout + done.stderr  # of tiny.crash
    return done


def written(folder: Path, out: str) -> dict[str, str]:
    """Everything in that folder that is to be the same whenever it is written, by its name."""
    found = {path.name: path.read_text() for path in (folder / out).glob("tiny.*.md")}
    found["sweep.csv"] = (folder / out / "sweep.csv").read_text()
    for path in (folder / out / "cells").glob("*.json"):
        data = json.loads(path.read_text())
        assert set(data) == {"key", "outcome", "cost", "reports", "digest"}
        found[path.name] = json.dumps([data["key"], data["outcome"]], sort_keys=True)
    return found


@pytest.fixture(scope="module")
def reference(folder: Path) -> dict[str, str]:
    """What an undisturbed sweep writes."""
    sweep(folder, "undisturbed", "--jobs", "2")
    return written(folder, "undisturbed")


def until(true: Callable[[], object], why: str) -> None:
    since = time.monotonic()
    while not true():
        assert time.monotonic() - since < LIMIT, why
        time.sleep(0.05)


def workers(mark: str) -> list[int]:
    """The workers of a sweep with that mark: its reaper forks each, and a nursery has forked the reaper."""
    family = {}
    for pid in marked(**{MARK: mark}):
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if any(word.endswith(scratch.TOOL) for word in process.cmdline()):
                family[pid] = process.ppid()
    return [pid for pid, reaper in family.items() if family.get(reaper) in family]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_every_model_of_a_package_in_both_frameworks(folder: Path, reference: dict[str, str]) -> None:
    rows = table(folder / "undisturbed" / "sweep.csv")
    assert sorted({row["model"] for row in rows}) == NAMES
    traced = {(row["model"], row["framework"]): int(row["work"]) for row in rows if row["counter"] == "trace"}
    both = {(name, framework): work for name, work in WORK.items() for framework in ("tf", "torch")}
    both.pop(("tiny.picky", "torch"))
    assert traced == both
    counted = [row for row in rows if row["counter"] in COUNTERS]
    assert len(counted) == 4 * len(COUNTERS) - 3  # PyTorch's three of the one that it refuses
    assert {row["residual"] for row in counted} == {"0"}
    refused = {(row["model"], row["framework"]): row["reason"] for row in rows if row["state"] in ("refused", "failed")}
    assert set(refused) == {("tiny.picky", "torch"), ("tiny.crash", "")}
    said = "the factory tiny:picky raised ValueError: this model is for TensorFlow (tiny.py, line "
    assert refused["tiny.picky", "torch"].startswith(said)
    assert "died of signal 6" in refused["tiny.crash", ""]
    kept = {path.stem for path in (folder / "undisturbed" / "cells").glob("*.json")}
    assert kept == set(WORK)  # what crashed is tried again next time
    page = (folder / "undisturbed" / "README.md").read_text()
    assert "5 models: 4 reconciled" in page
    assert "(1, 12, 12, 3)" in reference["tiny.conv.md"]
    for row in table(folder / "undisturbed" / "costs.csv"):
        assert float(row["wall_s"]) > 0
        assert int(row["peak_bytes"]) > 1 << 20


def test_killed_in_the_middle_and_resumed(folder: Path, reference: dict[str, str]) -> None:
    mark, cells = uuid.uuid4().hex, folder / "killed" / "cells"
    with subprocess.Popen(command("killed", "--jobs", "2"), cwd=folder, env=environ(mark)) as process:
        until(lambda: list(cells.glob("*.json")), "no cell was finished")
        until(lambda: workers(mark), "no other cell is running")
        process.send_signal(signal.SIGKILL)
    until(lambda: not marked(**{MARK: mark}), "something still runs")
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in cells.glob("*.json")}
    assert 0 < len(before) < len(WORK)
    sweep(folder, "killed", "--jobs", "2")
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in before} == before
    assert written(folder, "killed") == reference


@contextmanager
def cluster(folder: Path, marks: list[str]) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler on loopback and a worker of one thread for each mark; its address, the workers and itself."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    with ExitStack() as stack, (folder / "dask.log").open("ab") as log:

        def start(*words: str, mark: str = "") -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words], cwd=folder, env=environ(mark), stdout=log, stderr=log
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        scheduler = start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
        )
        until(file.is_file, "there is no scheduler")
        shared = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder / "dask"))
        address: str = json.loads(file.read_text())["address"]
        workers = [start("worker", address, *shared, mark=mark) for mark in marks]
        ready = f"from distributed import Client; Client({address!r}).wait_for_workers({len(marks)}, {LIMIT})"
        subprocess.run([sys.executable, "-c", ready], cwd=folder, env=environ(), check=True, timeout=LIMIT)
        yield address, [*workers, scheduler]


def test_the_same_on_a_cluster_that_loses_a_worker(folder: Path, reference: dict[str, str]) -> None:
    marks = [uuid.uuid4().hex, uuid.uuid4().hex]
    cells = folder / "dask-out" / "cells"
    with cluster(folder, marks) as (address, workers):
        with subprocess.Popen(command("dask-out", "--dask", address), cwd=folder, env=environ()) as process:
            until(lambda: list(cells.glob("*.json")), "no cell was finished")
            until(lambda: marked(**{MARK: marks[0], WORKER: ""}), "the first worker has nothing to do")
            workers[0].kill()
            until(lambda: not marked(**{MARK: marks[0], WORKER: ""}), "what it was doing still runs")
            assert process.poll() is None
        assert process.returncode == 2
        assert workers[1].poll() is None
    assert written(folder, "dask-out") == reference


def test_what_the_document_shows(tmp_path: Path) -> None:
    """Its list names what there is, and its program runs with an executor of the reader's own."""
    text = (ROOT / "docs" / "sweep.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    _, listed = re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)  # the first needs transformers
    (tmp_path / "list.toml").write_text(listed)
    there = environments.load(None)
    cells = listfile.read_list(tmp_path / "list.toml", there, [there["current"]])
    assert [cell.name for cell in cells[-4:]] == [
        "MobileNetV2 at 96", "net_tf.make+net.make", "gru_demo", "gru_demo@tf-2.3.1",
    ]  # fmt: skip
    assert len(cells) == len(listing.list_public("keras.applications", listing.both(), ())) - 1 + 4
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environ(), capture_output=True, text=True, timeout=LIMIT
    )
    assert (done.stdout, done.returncode) == ("gru_demo 0 0\n", 0), done.stderr
