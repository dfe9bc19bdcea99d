"""Model files, loaded by real frameworks: every kind gives what the zoo's model gives, and harm does none.

The files are made by processes of their own (making_tf.py, making_torch.py).  The expected work of gru_demo in these
settings, in multiply-adds: 17 x 7 x 3 outputs of 16 products each; 17 steps of 3 gates of 5 on 21 + 5; 17 x 5 x 4.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.records import Ledger
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle
from reconcile.products.files import confine
from tests.products.files.hostile import ZOO
from tests.products.files.processes import found_by
from tests.programs import output_of, run_program

pytestmark = pytest.mark.frameworks

MACS = 17 * 7 * 3 * 16 + 17 * 3 * 5 * (21 + 5) + 17 * 5 * 4
TF = ("tf.profiler@function", "tf.profiler@frozen", "tf.profiler@runmeta")

SAID_TF = {
    "custom.pb": "custom.pb holds the op ReadFire, which this TensorFlow does not have",
    "damaged.pb": "damaged.pb is cut short or damaged: TensorFlow cannot parse it.",
    "variable.pb": "variable.pb is not frozen: it holds variables without their values.",
    "asks.pb": "the input a/b of asks.pb is float32 (?, 3): give its size. For example: --input a_b=1,3 --input c=1,3,224,224",
    "asks.pb|1,3": "asks.pb takes a_b=float32 (?, 3), c=float32 of any rank; you gave 1.",
    "asks.pb|d=1,3": "asks.pb has no input 'd'; it takes a_b=float32 (?, 3), c=float32 of any rank.",
    "asks.pb|1,4 1,3": "the input a/b of asks.pb is float32 (?, 3), not (1, 4).",
    "asks.pb|1,3:int32 1,3": "the input a/b of asks.pb is float32 (?, 3), not int32 (1, 3).",
    "asks.pb|c=5,3 a_b=2,3": "asks.pb cannot be loaded: raised ValueError: Dimensions must be equal, but are 2 and 5",
    "asks.pb|c=2,3 a_b=2,3": "0 FLOP",
    "loop.pb": "a loop in loop.pb runs 1,000,000,001 times, and tf.profiler@runmeta runs the model: choose counters that do "
    "not run it, with --counter tf.profiler@function --counter tf.profiler@frozen.",
    "loop_v1.pb": "a loop in loop_v1.pb runs 1,000,000,001 times, and tf.profiler@runmeta runs the model",
    # (2, 3) by (3, 3), 10^9 times: a multiplication, where nothing has to run them
    "loop.pb!": f"{2 * 2 * 3 * 3 * 10**9} FLOP",
    "two_saved@one": f"{2 * 2 * 3 * 3} FLOP",
    "two_saved@two": f"{2 * 2 * (2 * 3 * 3)} FLOP",
    "two_saved@three": "two_saved has no signature 'three'; it has one, two.",
    "two_saved": "two_saved has the signatures one, two: choose one with --signature.",
    "v1_saved": "the input x of v1_saved is float32 (?, 8): give its size. For example: --input x=1,8",
    "v1_saved|3,8": f"{2 * 3 * 8 * 4} FLOP",
    "words_saved": f"{2 * 5 * 3 * 2} FLOP",
    "damaged_saved": "damaged_saved cannot be loaded: raised ",
    "cut_saved": "cut_saved/saved_model.pb: it is cut short: a part of ",
    "lambda.keras": "lambda.keras holds code of its own, such as a Lambda layer; pass --trust-file to let it run.",
    "lambda.h5": "lambda.h5 holds code of its own, such as a Lambda layer; pass --trust-file to let it run.",
    "custom.keras": "custom.keras needs the class 'Mine', which Keras does not find. Write a factory that imports it",
    "only.weights.h5": "only.weights.h5 cannot be loaded: raised ValueError: No model config found in the file",
    "wide.keras": "wide.keras cannot be loaded: it asks for more memory than it is allowed; --trust-file lets it.",
    "cut.h5": "cut.h5 cannot be loaded: raised OSError: Unable to synchronously open file (truncated file: ",
    "huge.h5": "huge.h5 cannot be loaded: ",
    "link.h5": "link.h5 cannot be loaded: ",
    "elsewhere.h5": "elsewhere.h5 cannot be loaded: ",
    "plain.keras": f"{2 * 2 * 3 * 4} FLOP",
}  # fmt: skip

SAID_TORCH = {
    "wide.pt2": "the input x of wide.pt2 is float32 (?, 8): give its size. For example: --input x=1,8 --input mask=1,4",
    "wide.pt2|mask=3,4 x=3,8": f"{2 * 3 * 8 * 4} FLOP",
    "wide.pt2|99,8 99,4": "wide.pt2, called with (float32 (99, 8), float32 (99, 4)), raised RuntimeError: Expected input at ",
    "sizes.pt2": "sizes.pt2 cannot be loaded: raised PermissionError: ",
    "calls.pt2": "calls.pt2 cannot be loaded: raised SpecViolationError: ",
    "weights.pt2": "weights.pt2 cannot be loaded: raised UnpicklingError: ",
    "samples.pt2|3,8 3,4": "samples.pt2 cannot be loaded: raised PermissionError: ",
    "json.pt2": "json.pt2 cannot be loaded: raised JSONDecodeError: ",
    "cut.pt2": "cut.pt2: it is a zip archive that is cut short",
    "few.pt": "the input x of few.pt is a tensor of any rank: give its size. For example: --input x=1,3,224,224",
    "few.pt|2,8": f"{2 * 5 * 2 * 8 * 8} FLOP",
    "saves.pt|2,8": "0 FLOP",  # what it saves is not written
    "pickle.pt|2,8": "pickle.pt cannot be loaded: raised RuntimeError: ",
    "code.pt|2,8": "code.pt cannot be loaded: raised RuntimeError: ",
    "sized.pt|2,2": "sized.pt takes times: int, which cannot be given on the command line. Write a factory that loads it.",
    "gru_demo.pth": "gru_demo.pth: it is a pickle",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file of gru_demo, and every bad one."""
    return make(tmp_path_factory.mktemp("files"), "gru_demo")


def make(made: Path, *names: str) -> Path:
    def make_in(framework: str) -> str:
        return output_of("-m", f"tests.products.files.making_{framework}", str(made), *names, folder=made)

    with ThreadPoolExecutor() as pool:
        list(pool.map(make_in, ("tf", "torch")))
    return made


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, str]:
    """What became of the files that are not as they should be, all in one process per framework."""
    with ThreadPoolExecutor() as pool:
        tf, torch = pool.map(
            lambda words: found_by("loading", folder, *words), [("tf", *SAID_TF), ("torch", *SAID_TORCH)]
        )
    return {**tf, **torch}


@pytest.mark.parametrize("name", [*SAID_TF, *SAID_TORCH])
def test_what_is_said_of_it(said: dict[str, str], name: str) -> None:
    expected = {**SAID_TF, **SAID_TORCH}[name]
    assert said[name].startswith(expected)
    assert "\n" not in said[name]
    assert len(said[name]) < 400


def test_no_harm_was_done(said: dict[str, str], folder: Path) -> None:
    assert said
    assert not (folder / "exploded").exists()


def test_trusted_they_would_have_done_it(said: dict[str, str], folder: Path) -> None:
    """torch.export.load evaluates sizes and may unpickle sample inputs; TorchScript saves where it likes."""
    assert said
    paths = ("samples.pt2|3,8 3,4", "sizes.pt2|3,8 3,4", "saves.pt|2,8")
    code = f"""
from pathlib import Path
from tests.products.files.loading import load
for path in {paths}:
    load("torch", path, trusted=True)
    print("DONE", Path("exploded").exists())
    Path("exploded").unlink()
"""
    assert output_of("-W", "ignore", "-c", code, folder=folder).count("DONE True") == len(paths)
    assert not (folder / "exploded").exists()


def report(folder: Path, tmp_path: Path, code: int, *args: str) -> dict[str, Any]:
    """``reconcile run ARGS`` among the files, and its JSON report."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = ["-m", "reconcile", "run", "--verbose", "--out", str(tmp_path), *args]
    done = run_program(*command, folder=folder, TMPDIR=str(temporary))
    assert done.returncode == code, done.stdout + done.stderr
    if code == 2:
        return {"refused": done.stderr}
    assert list(temporary.iterdir()) == []  # TensorFlow alone leaves a file there for every function it traces
    if sys.platform.startswith("linux"):
        held = confine.sentence(dict.fromkeys((confine.FILES, confine.CALLS), ""))
        assert done.stderr.count(held) == sum(map(args.count, ("--tf", "--torch", "--onnx")))
    (path,) = tmp_path.glob("*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


Collecting = Callable[..., Collected]


def zoo(collecting: Collecting, name: str) -> tuple[Answer, dict[str, int]]:
    """The zoo's own run of a pair in the files' settings, and what its counters reported."""
    found = collecting(name, **ZOO[name])
    totals = {x.counter: x.total for x in found.ledgers if isinstance(x, Ledger)}
    return settle(found, Conventions(BUILT_IN["matmul"])), totals


def same_work(data: dict[str, Any], result: Answer) -> None:
    """The traces' totals under every convention are the zoo's, and nothing is left unexplained."""
    expected = {t.framework: dict(t.totals) for t in result.traces}
    for trace in data["traces"]:
        assert trace["totals"] == expected[trace["framework"]]
    assert {s["residual"] for s in data["statements"]} <= {0, None}


def totals(data: dict[str, Any]) -> dict[str, Any]:
    return {x["counter"]: x["total"] for x in data["ledgers"]}


def causes(data: dict[str, Any], counter: str) -> set[str]:
    (statement,) = (s for s in data["statements"] if s["from"] == counter and s["to"].startswith("trace@"))
    return {line["cause"] for line in statement["adjustments"]}


SIZES = ("--input", "1,1,20,16")
CALLED_ONCE = {"tf.profiler@function": 0}
KINDS: dict[str, tuple[tuple[str, ...], dict[str, int], str]] = {
    # what is typed, the counters that say another number than of the zoo's model, and the cause of the first of these
    "Keras and an exported program": (("--tf", "gru_demo.keras", "--torch", "gru_demo.pt2"), {"thop": 0}, "call-not-seen"),
    "HDF5": (("--tf", "gru_demo.h5"), {}, ""),
    "a SavedModel": (("--tf", "gru_demo_saved"), CALLED_ONCE, "body-not-entered"),
    "an open batch": (("--tf", "gru_demo_open", *SIZES), CALLED_ONCE, "body-not-entered"),
    "a frozen graph": (("--tf", "gru_demo_frozen.pb"), {}, ""),
}  # fmt: skip
OTHER_GRAPH = {"an open batch": ("tf.profiler@frozen",), "a frozen graph": TF}
"""Kinds that TensorFlow optimises otherwise, and counters of the optimised graph."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_counts_as_its_model(collecting: Collecting, folder: Path, tmp_path: Path, kind: str) -> None:
    """thop hooks classes of torch.nn, and an exported program has none: it says 0, and the statement why."""
    asked, other, cause = KINDS[kind]
    result, own = zoo(collecting, "gru_demo")
    data = report(folder, tmp_path, 0, *asked)
    same_work(data, result)
    assert {t["totals"]["matmul"] for t in data["traces"]} == {2 * MACS}
    found = {
        name: total for name, total in totals(data).items() if name in own and name not in OTHER_GRAPH.get(kind, ())
    }
    assert found == {name: other.get(name, own[name]) for name in found}
    assert [causes(data, name) for name in other] == [{cause}] * len(other)


def test_a_saved_model_in_a_confined_worker(folder: Path, tmp_path: Path) -> None:
    data = report(folder, tmp_path, 0, "--tf", "gru_demo_saved", "--counter", "tf.profiler@frozen")
    assert [t["totals"]["matmul"] for t in data["traces"]] == [2 * MACS]


@pytest.mark.slow
def test_a_lowered_graph_and_torchscript(collecting: Collecting, folder: Path, tmp_path: Path) -> None:
    """No hook can be put on a TorchScript module: thop and fvcore cannot count it, and say what to do."""
    result, own = zoo(collecting, "gru_demo")
    asked = ("--tf", "gru_demo_lowered.pb", "--torch", "gru_demo.pt", "--input", "1,1,20,16")
    data = report(folder, tmp_path, 0, *asked)
    same_work(data, result)
    found = totals(data)
    assert found["tf.profiler@frozen"] == found["tf.profiler@function"] == own["tf.profiler@frozen"]
    assert found["flop_counter"] == own["flop_counter"]
    unable = {x["counter"]: x["reason"] for x in data["ledgers"] if x["state"] == "not_comparable"}
    assert set(unable) == {"thop", "fvcore"}
    assert [x for x, reason in unable.items() if "give the module that it was made of" not in reason] == [], unable
    # The file itself has the recurrent layer's dead first step; pruned to its outputs, the graph has not.
    dead = found["tf.profiler@frozen_pb"] - found["tf.profiler@frozen"]
    assert own["tf.profiler@runmeta"] - found["tf.profiler@runmeta"] == dead > 0
    assert "dead-op" in causes(data, "tf.profiler@frozen_pb")


@pytest.mark.slow
def test_an_onnx_file(collecting: Collecting, folder: Path, tmp_path: Path) -> None:
    """ONNX defines a GRU's new state as (1 - z) * n + z * h: a product more per unit and step than PyTorch's."""
    result, _ = zoo(collecting, "gru_demo")
    (torch,) = (t.totals for t in result.traces if t.framework == "torch")
    (trace,) = report(folder, tmp_path, 0, "--onnx", "gru_demo.onnx")["traces"]
    assert trace["totals"]["matmul"] == 2 * MACS == torch["matmul"]
    assert trace["totals"]["all"] == torch["all"] + 17 * 5
