"""``reconcile ranks``: what several processes wrote of one step, added up, or why there is no sum."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.products.steps.command import name_reports, name_run
from tests.programs import output_of


def report(
    total: int | None, reason: str = "", code: int = 0, convention: str = "matmul", run: str = "a run"
) -> dict[str, Any]:
    trace = {
        "complete": total is not None,
        "totals": {} if total is None else {"matmul": total, "all": total + 1},
        "reason": reason,
    }
    ledger = {"counter": "flop_counter", "total": total, "state": "equal", "reason": ""}
    verdict = {"counters": [{"counter": "flop_counter", "reason": "", "causes": []}]}
    told = {"convention": convention, "traces": [trace], "ledgers": [ledger], "verdict": verdict, "exit_code": code}
    return {**told, "run": run} if run else told


def write(folder: Path, *reports: dict[str, Any] | None, stem: str = "train", world: int = 0, pipes: int = 0) -> Path:
    for rank in range(pipes):
        os.mkfifo(folder / f"{stem}.rank-{rank}-of-{pipes}.json")
    for rank, each in enumerate(reports):
        if each is not None:
            (folder / f"{stem}.rank-{rank}-of-{world or len(reports)}.json").write_text(json.dumps(each))
    return folder


def run(folder: Path) -> Result:
    return CliRunner().invoke(cli, ["ranks", str(folder)])


def said(done: Result) -> str:
    return " ".join(done.output.split())


def test_ranks_are_added_up(tmp_path: Path) -> None:
    done = run(write(tmp_path, report(5), report(5), report(7)))
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "train.ranks.json").read_text())
    assert [(each["ranks"], each["totals"]["matmul"]) for each in told["ranks"]] == [([0, 1], 5), ([2], 7)]
    assert (told["sum"], told["missing"], told["world"]) == ({"matmul": 5 + 5 + 7, "all": 6 + 6 + 8}, [], 3)
    assert "3 ranks do 17 FLOPs together" in said(done)
    assert run(tmp_path).exit_code == 0  # its own file is none of a rank's


def test_a_rank_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run(write(tmp_path, report(5), None, report(7), None))
    assert done.exit_code == 1
    assert "Ranks 1, 3 of 4 left no report, so there is no sum." in said(done)
    assert json.loads((tmp_path / "train.ranks.json").read_text())["sum"] == {}


def test_a_number_that_is_withheld_has_no_sum(tmp_path: Path) -> None:
    done = run(write(tmp_path, report(5), report(None, "an op has no formula", 1)))
    assert done.exit_code == 1
    assert "Withheld on rank 1: an op has no formula." in said(done)
    assert "so there is no sum" in said(done)


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        (("old", "new", "new"), "The reports are of 2 runs (rank 0; ranks 1, 2), so there is no sum"),
        (("", "new", "new"), "Nothing shows of which run rank 0 wrote, so there is no sum"),
        (("", "", ""), "Nothing shows of which run ranks 0, 1, 2 wrote, so there is no sum"),
    ],
)
def test_reports_of_several_runs_are_named(tmp_path: Path, runs: tuple[str, ...], sentence: str) -> None:
    done = run(write(tmp_path, *(report(5, run=each) for each in runs)))
    assert done.exit_code == 1
    assert sentence in said(done)
    assert json.loads((tmp_path / "train.ranks.json").read_text())["sum"] == {}


def test_a_run_is_known_by_what_its_processes_share() -> None:
    launched = {"TORCHELASTIC_RUN_ID": "5", "TORCHELASTIC_RESTART_COUNT": "0"}
    assert name_run("met", launched) == "met"
    assert name_run("", launched) != name_run("", {**launched, "TORCHELASTIC_RESTART_COUNT": "1"})
    assert name_run("", {}) == name_run("", {"TORCHELASTIC_RUN_ID": "none"}) == ""


@pytest.mark.parametrize("code", [1, 3])
def test_a_rank_that_is_not_reconciled_is_not_hidden(tmp_path: Path, code: int) -> None:
    done = run(write(tmp_path, report(5), report(5, code=code)))
    assert done.exit_code == code
    assert "Not reconciled" in said(done)


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    for number, (make, expected) in enumerate(
        (
            (lambda folder: folder / "none", "is no folder"),
            (lambda folder: folder, "has no reports of ranks: write them with torchrun"),
            (
                lambda folder: write(write(folder, report(1), report(1)), report(1), report(1), stem="other"),
                "a folder of its own",
            ),
            (lambda folder: write(folder, report(1), report(1, convention="all")), "use one convention"),
            (lambda folder: write(folder, report(1), report(1), world=1), "ranks count from 0"),
            (lambda folder: write(folder, report(1), {"a": 1}), "rank-1-of-2.json is damaged at its top"),
            (lambda folder: write(folder, report(1), world=30_000_000), "reports of 30,000,000 ranks"),
            (lambda folder: write(folder, stem="pipe", pipes=1), "it is neither a file nor a folder"),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run(make(folder))
        assert (done.exit_code, expected in said(done)) == (2, True), done.output


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("exit_code",), 99),
        (("convention",), None),
        (("run",), 3),
        (("traces",), {}),
        (("traces", 0, "totals"), [1]),
        (("traces", 0, "totals", "matmul"), -5),
        (("traces", 0, "totals", "matmul"), 1407.5),
        (("traces", 0, "totals", "matmul"), True),
        (("traces", 0, "complete"), "yes"),
        (("traces", 0, "reason"), None),
        (("ledgers", 0, "state"), "fine"),
        (("ledgers", 0, "total"), "5"),
        (("verdict",), []),
        (("verdict", "counters", 0), {}),
        (("verdict", "counters", 0, "causes"), [{"cause": "first-add", "amount": 0.5}]),
    ],
)
def test_a_report_of_another_shape_is_refused_by_the_place(tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    wrong = item = report(5)
    for key in place[:-1]:
        item = item[key]
    item[place[-1]] = value
    done = run(write(tmp_path, report(5), wrong))
    assert done.exit_code == 2, done.output
    assert f"rank-1-of-2.json is damaged at {'.'.join(map(str, place))}" in said(done)
    assert not (tmp_path / "train.ranks.json").exists()


def test_a_process_that_is_alone_has_no_rank_in_its_files() -> None:
    assert name_reports("train", {}) == name_reports("train", {"RANK": "0", "WORLD_SIZE": "1"}) == "train"
    assert name_reports("train", {"RANK": "3", "WORLD_SIZE": "8"}) == "train.rank-3-of-8"


SCRIPT = """
import torch
from torch import distributed, nn

distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 16)))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.ones(4 + 4 * distributed.get_rank(), 64)).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.frameworks
@pytest.mark.slow
def test_real_processes_are_watched_each_by_itself(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(SCRIPT)
    started = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = [*started, "-m", "reconcile", "watch", "--quiet", "--out", "ranks", "train.py"]
    output_of(*words, folder=tmp_path)
    assert run(tmp_path / "ranks").exit_code == 0
    told = json.loads((tmp_path / "ranks" / "train.ranks.json").read_text())
    row = 2 * (2 * 64 * 32 + 3 * 32 * 16)  # no gradient of the input
    assert {rank: each["totals"]["matmul"] for each in told["ranks"] for rank in each["ranks"]} == {
        0: 4 * row,
        1: 8 * row,
    }
    assert told["sum"]["matmul"] == 12 * row
    shutil.copytree(tmp_path / "ranks", tmp_path / "earlier")
    output_of(*words, folder=tmp_path)
    shutil.copy(tmp_path / "earlier" / "train.rank-1-of-2.json", tmp_path / "ranks")
    done = run(tmp_path / "ranks")
    assert (done.exit_code, "of 2 runs (rank 0; rank 1)" in said(done)) == (1, True), done.output
