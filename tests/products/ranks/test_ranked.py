"""``reconcile run --ranks`` as it is typed: what it prints, writes and refuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from tests.programs import output_of

pytest.importorskip("torch")
pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("forked")]

BATCH, WIDE, HIDDEN, RANKS = 8, 64, 256, 4
ONE = 2 * 2 * BATCH * WIDE * HIDDEN
NET = f"""
import os
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

def one():
    layers = nn.Linear({WIDE}, {HIDDEN}, bias=False), nn.Linear({HIDDEN}, {WIDE}, bias=False)
    return nn.Sequential(*layers), torch.ones({BATCH}, {WIDE})

def tensor():
    net, x = one()
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),), mesh_dim_names=("tp",))
    return parallelize_module(net, mesh, {{"0": ColwiseParallel(), "1": RowwiseParallel()}}), x

def own():
    net, x = one()
    return net, x[: distributed.get_rank() + 1]

def by_group():
    net, x = one()
    return net, x[: 1 + distributed.group.WORLD.rank() % 2]

def by_variable():
    net, x = one()
    return net, x[: int(os.environ["RANK"]) + 1]

def fails():
    assert distributed.get_rank() < 2, "the third rank has no part"
    return one()

def number():
    return 3

def without_values():
    from torch.distributed.fsdp import fully_shard

    with torch.device("meta"):
        net, x = one()
    return fully_shard(net, mesh=init_device_mesh("cpu", (distributed.get_world_size(),))), x
"""

Typed = Callable[..., Result]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    (tmp_path / "shared.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(cli, ["run", "--out", "out", "--format", "md,json", *words])


def test_a_world_and_one_device(typed: Typed, capfd: pytest.CaptureFixture[str]) -> None:
    done = typed("--torch", "shared:tensor", "--ranks", "4", "--against", "shared:one")
    assert done.exit_code == 0, done.output
    # DTensor asks FakeTensors for sizes: none of them is a model's.
    assert "Warning" not in done.output + capfd.readouterr().err
    (file,) = Path("out").glob("*.ranks.json")
    told = json.loads(file.read_text())
    assert [(each["ranks"], each["totals"]["matmul"]) for each in told["ranks"]] == [([0, 1, 2, 3], ONE // RANKS)]
    assert (told["sum"]["matmul"], told["one_device"]["matmul"], told["exit_code"]) == (ONE, ONE, 0)
    (statement,) = told["statements"]
    assert (statement["from_total"], statement["residual"], statement["state"]) == (ONE, 0, "equal")
    (counter,) = told["ranks"][0]["counters"]
    assert (counter["counter"], counter["total"], counter["state"]) == ("flop_counter", ONE, "explained")
    (passed,) = told["ranks"][0]["collectives"]
    payload = 4 * BATCH * WIDE * 2 * (RANKS - 1) // RANKS
    assert (passed["collective"], passed["calls"], passed["bytes"]) == ("all_reduce", 1, str(payload))
    assert f"global-shape -{ONE - ONE // RANKS:,}" in " ".join(done.output.split())
    page = file.with_suffix(".md").read_text()
    assert f"| 0-3  × 4 | {ONE // RANKS:,} |" in page
    assert "--ranks 4 --against shared:one" in page
    assert len(list(Path("out").glob("*.rank-0.json"))) == 1


@pytest.mark.parametrize("name", ["own", "by_variable"])
@pytest.mark.slow
def test_a_program_that_asks_for_its_number_runs_as_each_rank(typed: Typed, name: str) -> None:
    done = typed("--torch", f"shared:{name}", "--ranks", "3", "--quiet")
    assert done.exit_code == 0, done.output
    told = json.loads(next(Path("out").glob("*.ranks.json")).read_text())
    row = ONE // BATCH
    did = {rank: each["totals"]["matmul"] for each in told["ranks"] for rank in each["ranks"]}
    assert did == {0: row, 1: 2 * row, 2: 3 * row}


@pytest.mark.slow
def test_a_place_that_a_group_tells_is_a_place_asked_for(typed: Typed) -> None:
    """The first and the last rank do equal work, and the one between them does not."""
    done = typed("--torch", "shared:by_group", "--ranks", "3", "--quiet")
    assert done.exit_code == 0, done.output
    told = json.loads(next(Path("out").glob("*.ranks.json")).read_text())
    assert [(each["ranks"], each["totals"]["matmul"] // (ONE // BATCH)) for each in told["ranks"]] == [
        ([0, 2], 1),
        ([1], 2),
    ]


def test_chosen_ranks_have_no_sum(typed: Typed) -> None:
    done = typed("--torch", "shared:tensor", "--ranks", "4", "--rank", "3,1")
    assert done.exit_code == 0, done.output
    told = json.loads(next(Path("out").glob("*.ranks.json")).read_text())
    assert ([each["ranks"] for each in told["ranks"]], told["sum"]) == ([[3], [1]], {})
    assert "there is no sum" in " ".join(done.output.split())


@pytest.mark.slow
def test_a_model_without_values_is_counted_and_says_so(typed: Typed) -> None:
    done = typed("--torch", "shared:without_values", "--ranks", "2", "--against", "shared:one")
    assert done.exit_code == 0, done.output
    assert f"2 ranks do {2 * ONE:,} FLOPs together" in " ".join(done.output.split())
    assert "ran on meta, where tensors have no values" in " ".join(done.output.split())


def test_home_chooses_counters_without_the_framework() -> None:
    code = (
        "import sys; from reconcile.core.registry import frameworks; from reconcile.products.steps.count import chosen_counters; "
        "print(chosen_counters(frameworks()['torch'], ()), 'torch' in sys.modules)"
    )
    assert output_of("-c", code).strip() == "['flop_counter'] False"


REFUSED = {
    "--ranks is about": (
        ["--model", "gru_demo", "--ranks", "2"],
        "--ranks takes one model of your own: --torch MODULE:FUNCTION",
    ),
    "no such rank": (["--torch", "shared:one", "--ranks", "2", "--rank", "2"], "--rank 2 is none of --ranks 2"),
    "no list": (["--torch", "shared:one", "--ranks", "2", "--rank", "x"], "'x' is no list of ranks"),
    "alone": (["--torch", "shared:one", "--rank", "1"], "--rank is about the ranks of a world"),
    "against": (["--torch", "shared:one", "--against", "shared:one"], "--against is about the ranks of a world"),
    "decode": (["--torch", "shared:one", "--ranks", "2", "--pass", "prefill"], "leave --pass prefill"),
    "device": (["--torch", "shared:one", "--ranks", "2", "--device", "meta"], "leave --device meta out"),
    "python": (["--torch", "shared:one", "--ranks", "2", "--python", sys.executable], "--ranks takes no --python"),
    "timeout": (["--torch", "shared:one", "--ranks", "2", "--timeout", "9"], "--ranks takes no --timeout"),
    "fails": (["--torch", "shared:fails", "--ranks", "4"], "the third rank has no part"),
    "no model": (["--torch", "shared:number", "--ranks", "2"], "returned"),
    "many": (["--torch", "shared:own", "--ranks", "100"], "the program asks for its number among all ranks (shared.py:"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.slow
def test_what_cannot_be_used_is_one_sentence(typed: Typed, case: str) -> None:
    words, said = REFUSED[case]
    done = typed(*words)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output
    assert not Path("out").exists()
