"""``reconcile check``, of a run and of two files: what it prints, writes and ends with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.core.causes import State
from reconcile.core.records import to_json
from reconcile.drift import baselines
from reconcile.drift import check as checking
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.launch.environments import runs
from reconcile.launch.environments.definitions import Environment
from reconcile.launch.environments.interpreters import EnvironmentError_
from reconcile.launch.request import RunRequest
from tests.drift import takes
from tests.drift.takes import CONV, DENSE, GRU, NEW, OLD, take


class Bench:
    """A command line whose runner hands out ``found``, and remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: Collected = take()
        self.requests: list[RunRequest] = []
        self.known: list[str] = []

    def collect(self, request: RunRequest, progress: Callable[..., None]) -> Collected:
        self.requests.append(request)
        return self.found

    @property
    def path(self) -> Path:
        return self.folder / "toy" / "current.json"

    def check(self, *args: str) -> Result:
        return self.call("check", "--model", "toy", "--baselines", str(self.folder), *args)

    def call(self, *args: str) -> Result:
        return CliRunner().invoke(cli, args, prog_name="reconcile")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path / "b")
    monkeypatch.setattr(checking, "collect", made.collect)
    monkeypatch.setattr(checking, "checked_pair_path", made.known.append)  # every name is a model's
    return made


def test_without_a_baseline_it_says_how_to_take_one(bench: Bench) -> None:
    result = bench.check()
    assert result.exit_code == 2
    assert f"there is no baseline {bench.path}. Take one with: reconcile check --model toy" in result.stderr
    assert result.stderr.strip().endswith("--update")
    assert bench.requests == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gru_dem", "Error: unknown model 'gru_dem'. Did you mean gru_demo?\n"),
        ("gone.py", "Error: there is no pair file gone.py.\n"),
    ],
)
def test_a_name_that_is_no_model_is_not_sent_to_take_a_baseline(tmp_path: Path, name: str, sentence: str) -> None:
    result = CliRunner().invoke(cli, ["check", "--model", name, "--baselines", str(tmp_path)], prog_name="reconcile")
    assert (result.exit_code, result.stderr) == (2, sentence)


def test_the_command_of_a_baseline_has_the_options_that_decide(bench: Bench) -> None:
    """A baseline is of all counters, and under no convention."""
    shown = ("--convention", "all", "--counter", "thop", "--timeout", "60", "--quiet")
    result = bench.check("--set", "units=3", "--device", "meta", "--formulas", "f.py", "--pass", "training", *shown)
    wanted = f"reconcile check --model toy --set units=3 --pass training --baselines {bench.folder} --device meta"
    assert result.stderr.strip().endswith(f"Take one with: {wanted} --formulas f.py --update")


def test_taken_then_unchanged_is_one_line(bench: Bench) -> None:
    taken = bench.check("--update")
    assert (taken.exit_code, taken.stdout) == (0, f"accepted: {bench.path} (thop {NEW}, torch 2.0.0)\n")
    result = bench.check()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"toy: unchanged: 1 counter and 1 trace as in {bench.path}\n"
    again = bench.check("--update")
    assert (again.exit_code, again.stdout.count("\n")) == (0, 1)
    assert "accepted" not in again.stdout


def test_totals_alone_within_a_tolerance(bench: Bench) -> None:
    """The older thop has no GRU, and counts a dense layer twice: each entry moves, and the total by a known share."""
    bench.found = take(NEW)
    bench.check("--update")
    assert bench.check("--total", "0").exit_code == 0
    bench.found = take(OLD)
    share = 100 * (GRU - DENSE) / (CONV + GRU + DENSE)
    assert [bench.check("--total", str(share * by)).exit_code for by in (0, 0.999, 1.001)] == [1, 1, 0]
    assert bench.check("--total", "1", "--update").exit_code == 2
    named = (f" {2 * (CONV + 2 * DENSE):,} FLOPs", "--update", "gru")  # the total, how to accept it, a layer
    for asked, shown in (("0", (True, True, False)), ("99", (True, False, False)), ("0 --verbose", (True, True, True))):
        said = bench.check("--total", *asked.split()).stdout
        assert tuple(word in said for word in named) == shown, asked


def test_what_moved_is_said_and_accepted_only_when_asked(bench: Bench) -> None:
    bench.found = take(OLD)
    bench.check("--update")
    before = bench.path.read_text()
    bench.found = take(NEW)
    moved = bench.check()
    assert moved.exit_code == 1
    assert bench.path.read_text() == before
    assert moved.stdout.startswith(f"toy: not as in {bench.path}: thop moved, at dense, gru\nthop {OLD} -> {NEW}\n")
    assert f"gru  torch.nn.modules.rnn.GRU: no entry -> {GRU:,}" in moved.stdout
    assert "op-not-counted" in moved.stdout
    assert "accept it with: reconcile check --model toy --baselines" in moved.stdout
    quiet = bench.check("-q")
    assert (quiet.exit_code, quiet.stdout.count("\n")) == (1, 2)
    accepted = bench.check("--update")
    assert accepted.exit_code == 0
    assert f"no entry -> {GRU:,}" in accepted.stdout
    assert f"kept: {bench.path.with_name(f'current@thop-{OLD}+torch-2.0.0.json')}" in accepted.stdout
    assert bench.check().exit_code == 0


def test_against_a_given_file(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    baselines.save(file, take(OLD))
    result = bench.check("--against", str(file))
    assert result.exit_code == 1
    assert "accept it" not in result.stdout
    assert bench.check("--against", str(file), "--update").exit_code == 2
    assert bench.check("--against", str(tmp_path / "none.json")).exit_code == 2


OLD_TORCH = "torch-1.10.1-thop-2001"


def test_environments_have_baselines_of_their_own(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ensure(env: Environment, say: object) -> Path:
        asked.append(env.name)
        return Path("python-of-it")

    monkeypatch.setattr(runs, "ensure", ensure)
    monkeypatch.setattr(runs, "collect", bench.collect)
    bench.found = take(OLD)
    assert f"--environment {OLD_TORCH} --update" in bench.check("--environment", OLD_TORCH).stderr
    assert bench.check("--environment", OLD_TORCH, "--update").exit_code == 0
    assert bench.path.with_name(f"{OLD_TORCH}.json").exists()
    assert not bench.path.exists()
    assert bench.check("--environment", OLD_TORCH).exit_code == 0
    made = bench.check("--with", "thop==0.1.1.post2209072238", "--python", "3.11", "--update")
    assert made.exit_code == 0
    assert len(list(bench.path.parent.iterdir())) == 2
    assert asked[:2] == [OLD_TORCH, OLD_TORCH]
    assert asked[2].startswith("thop")
    assert {r.python for r in bench.requests} == {"python-of-it"}
    unknown = bench.check("--environment", "torch-1.10")
    assert (unknown.exit_code, "unknown environment 'torch-1.10'" in unknown.stderr) == (2, True)
    assert bench.check("--environment", OLD_TORCH, "--with", "torch").exit_code == 2


def test_an_upgrade_is_held_against_the_baseline_that_is_there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ensure", lambda env, say: Path("python-of-it"))
    monkeypatch.setattr(runs, "collect", bench.collect)
    bench.found = take(OLD)
    assert bench.check("--update").exit_code == 0
    bench.found = take(NEW)
    moved = bench.check("--with", f"thop=={NEW}")
    assert moved.exit_code == 1
    assert moved.stdout.startswith(f"toy: not as in {bench.path}: thop moved, at dense, gru\nthop {OLD} -> {NEW}\n")
    note = " ".join(moved.stdout.split())
    assert (
        f"there is no baseline of thop-{NEW} yet: compared with the one of the current environment, taken on thop"
        in note
    )
    gone = bench.check("--with", f"thop=={NEW}", "--against", str(bench.folder / "toy" / "gone.json"))
    assert (gone.exit_code, "there is no baseline" in gone.stderr) == (2, True)


def test_an_environment_that_cannot_be_made_is_said(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure(env: Environment, say: object) -> Path:
        raise EnvironmentError_("there is no uv")

    monkeypatch.setattr(runs, "ensure", ensure)
    result = bench.check("--environment", "tf-1.12", "--update")
    assert (result.exit_code, "tf-1.12 cannot be used: there is no uv" in result.stderr) == (2, True)


def test_an_environment_without_a_tracer_borrows_the_trace(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    too_old = Missing("trace", "torch", State.FAILED, "no dispatch modes")

    def collect(request: RunRequest, progress: object = None) -> Collected:
        return replace(take(OLD), traces=(too_old,)) if request.python else take(NEW)

    monkeypatch.setattr(runs, "ensure", lambda env, say: Path("old"))
    monkeypatch.setattr(runs, "collect", collect)
    assert bench.check("--environment", OLD_TORCH, "--update").exit_code == 0
    old = bench.path.with_name(f"{OLD_TORCH}.json")
    assert baselines.load(old).collected.traces[0].ops == takes.trace().ops  # type: ignore[union-attr]
    assert baselines.load(old).collected.ledgers == take(OLD).ledgers
    moved = bench.check("--against", str(old))
    assert moved.exit_code == 1
    assert "op-not-counted" in moved.stdout


@pytest.mark.parametrize("args", [(), ("--update",)])
def test_a_damaged_baseline_is_neither_read_nor_replaced(bench: Bench, args: tuple[str, ...]) -> None:
    bench.check("--update")
    text = bench.path.read_text()[:-100]
    bench.path.write_text(text)
    result = bench.check(*args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "damaged" in result.stderr
    assert bench.path.read_text() == text


def test_a_counter_that_fails_ends_with_3_and_is_not_accepted(bench: Bench) -> None:
    bench.check("--update")
    text = bench.path.read_text()
    bench.found = replace(take(), ledgers=(Missing("thop", "torch", State.FAILED, "it crashed", "MAC", "cpu"),))
    for args in ((), ("--update",)):
        result = bench.check(*args)
        assert result.exit_code == 3
        assert "it crashed" in result.stdout
        assert bench.path.read_text() == text


def test_a_counter_that_fails_at_once_makes_no_baseline(bench: Bench) -> None:
    bench.found = replace(take(), ledgers=(Missing("thop", "torch", State.FAILED, "it crashed", "MAC", "cpu"),))
    result = bench.check("--update")
    assert (result.exit_code, bench.path.exists()) == (3, False)
    assert "nothing was accepted" in result.stdout


def test_the_baselines_counters_run_unless_told_otherwise(bench: Bench) -> None:
    bench.check("--update")
    bench.check()
    bench.check("--counter", "thop", "--set", "units=96", "--timeout", "5", "--device", "cuda")
    first, second, third = bench.requests
    assert (first.counters, second.counters, third.counters) == ((), ("thop",), ("thop",))
    assert (third.overrides, third.timeout, third.device) == ({"units": "96"}, 5.0, "cuda")
    result = bench.check("--counter", "fvcore")
    assert result.exit_code == 2
    assert "holds no ledger of fvcore; it holds thop" in result.stderr
    assert bench.check("--counter", "fvcore", "--update").exit_code == 2


def test_another_models_baseline_is_refused(bench: Bench) -> None:
    bench.check("--update")
    bench.found = replace(take(), meta={**takes.META, "name": "other"})
    result = bench.check()
    assert (result.exit_code, "is a baseline of toy, not of other" in result.stderr) == (2, True)


def test_two_baselines(bench: Bench, tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    baselines.save(a, take(OLD))
    baselines.save(b, take(NEW))
    moved = bench.call("check", str(a), str(b))
    assert moved.exit_code == 1
    assert f"no entry -> {GRU:,}" in moved.stdout
    assert "op-not-counted" in moved.stdout
    same = bench.call("check", str(a), str(a))
    assert (same.exit_code, same.stdout.count("\n")) == (0, 1)
    assert bench.requests == []


def test_two_ledgers_and_of_what_does_not_compare(bench: Bench, tmp_path: Path) -> None:
    a, b, c = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"
    a.write_text(to_json(takes.ledger(OLD)))
    b.write_text(to_json(takes.ledger(NEW)))
    c.write_text(to_json(takes.ledger(NEW)._replace(counter="fvcore")))
    moved = bench.call("check", str(a), str(b))
    assert moved.exit_code == 1
    assert "the causes cannot be derived" in moved.stdout
    apart = bench.call("check", str(a), str(c))
    assert (apart.exit_code, "no counter is in both" in apart.stderr) == (2, True)
    assert bench.call("check", str(a), str(tmp_path / "none.json")).exit_code == 2


def test_for_a_pull_request(bench: Bench) -> None:
    """The comment alone is on standard output, the annotations are on standard error."""
    bench.found = take(OLD)
    bench.check("--update")
    same = bench.check("--format", "github")
    assert (same.exit_code, same.stderr) == (0, "")
    assert same.stdout == f"✅ **toy: unchanged: 1 counter and 1 trace as in {bench.path}**\n"
    bench.found = take(NEW)
    moved = bench.check("--format", "github")
    assert moved.exit_code == 1
    assert moved.stdout.startswith("❌ **toy: not as in ")
    assert f"reconcile check --model toy --baselines {bench.folder} --update" in moved.stdout
    assert [line.partition("title=")[2].partition("::")[0] for line in moved.stderr.splitlines()] == [
        "toy%3A dense moved",
        "toy%3A gru moved",
    ]


WORK = 2 * (32 * 97 * 127 * 16 + 97 * 3 * 96 * (4064 + 96) + DENSE)  # FLOPs: MACs of the three layers, twice


def test_for_services_that_keep_numbers(bench: Bench) -> None:
    """MACs of thop are FLOPs there, and every total of the model has a name."""
    bench.found = take(NEW)
    totals = {"trace@torch": WORK, "thop": 2 * (CONV + GRU + DENSE)}
    taken = json.loads(bench.check("--update", "--format", "bencher").stdout)
    assert taken == {"toy": {"trace-torch": {"value": WORK}, "thop": {"value": totals["thop"]}}}
    again = bench.check("--format", "github-action-benchmark")
    assert again.exit_code == 0
    assert json.loads(again.stdout) == [
        {"name": f"toy: {name}", "unit": "FLOP", "value": total} for name, total in totals.items()
    ]


def test_for_readers_of_junit(bench: Bench) -> None:
    bench.found = take(OLD)
    none = bench.check("--format", "junit")
    (error,) = ElementTree.fromstring(none.stdout).iter("error")
    assert (none.exit_code, "--update" in (error.get("message") or "")) == (2, True)
    bench.check("--update")
    bench.found = take(NEW)
    moved = bench.check("--format", "junit")
    assert moved.exit_code == 1
    suite = ElementTree.fromstring(moved.stdout)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    cases = {case.get("name"): case for case in suite}
    assert [*cases] == ["trace@torch", "thop"]
    assert len(cases["trace@torch"]) == 0
    assert "op-not-counted" in (cases["thop"].findtext("failure") or "")
    missing = Missing("thop", "torch", State.FAILED, "it crashed <here>", "MAC")
    bench.found = Collected(take().meta, take().traces, (missing,))
    failed = ElementTree.fromstring(bench.check("--format", "junit").stdout)
    (error,) = failed.iter("error")
    assert error.get("message") == "it crashed <here>"
