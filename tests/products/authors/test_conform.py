"""The conformance kit where a case's model cannot be made."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.core.causes import State
from reconcile.core.records import FLOP, Entry, Ledger, Trace
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.products.authors import conform
from reconcile.products.authors.conform import (
    Check,
    _check_case,
    explain_nothing_counted,
)

NO_LAYER = "AttributeError: module 'keras.layers' has no attribute 'RMSNormalization'"


def missing(name: str, reason: str) -> Missing:
    return Missing(name, "tf", State.FAILED, reason, "FLOP", "graph")


@pytest.mark.parametrize(
    ("elsewhere", "traced", "counted", "marks"),
    [
        (True, NO_LAYER, NO_LAYER, (False, True)),  # the environment's Keras has no such layer: nothing is wrong
        (False, NO_LAYER, NO_LAYER, (True, False)),  # here, every model of the zoo can be made
        (True, NO_LAYER, "KeyError: 3", (True, False)),  # the counter fails in its own way
    ],
)
def test_a_model_that_another_environment_cannot_make_is_skipped(
    elsewhere: bool, traced: str, counted: str, marks: tuple[bool, bool]
) -> None:
    collected = SimpleNamespace(ledgers=[missing("mine", counted)], traces=[missing("trace@tf", traced)])
    (check,) = _check_case("family_norm", collected, elsewhere)  # type: ignore[arg-type]
    assert (bool(check.problem), bool(check.skipped)) == marks
    assert NO_LAYER in check.problem + check.skipped


REFUSED = Check("conv1x1", "reports", skipped="it takes no bytes")
ZEROES = Check("conv1x1", "entries add up to the total")
COUNTED = Check("conv1x1", "entries add up to the total", counted=True)


@pytest.mark.parametrize(
    ("done", "chosen", "says"),
    [
        ([REFUSED, COUNTED], True, ""),
        ([ZEROES, COUNTED], False, ""),
        ([REFUSED, REFUSED], True, "cannot show whether it conforms. The reasons are above: choose other cases."),
        ([ZEROES], True, "cannot show whether it conforms. Its numbers are all 0 there: choose other cases."),
        ([ZEROES, REFUSED], True, "It cannot count some of them, and counts 0 in the others: choose other cases."),
        ([ZEROES, REFUSED], False, "mine counted nothing in any case, so it does not conform."),
    ],
)
def test_cases_in_which_nothing_is_counted_show_nothing(done: list[Check], chosen: bool, says: str) -> None:
    sentence = explain_nothing_counted("mine", done, chosen)
    assert (sentence.endswith(says), bool(sentence)) == (True, bool(says))


@pytest.mark.parametrize(("values", "counted"), [((), False), ((0, 0), False), ((0, 3), True)])
def test_a_ledger_of_zeroes_counts_nothing(
    values: tuple[int, ...], counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = tuple(Entry(str(index), "", "MatMul", value, 1) for index, value in enumerate(values))
    ledger = Ledger("thop", "tf", FLOP, "graph", {}, sum(values), entries, (), {}, ())
    for check in ("_describe_unexplained", "_find_unfounded_amount", "_find_fitted_entry", "settle"):
        monkeypatch.setattr(conform, check, lambda *_: "")
    collected = Collected({}, (Trace("tf", {}, "graph", (), (), (), (), ()),), (ledger,))
    assert bool([check for check in _check_case("conv1x1", collected, False) if check.counted]) is counted


def test_a_problem_is_told_once_with_the_checks_that_met_it(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Check(case, name, "6 entries differ") for case in ("conv1x1", "gru_demo") for name in ("matmul", "all")]
    monkeypatch.setattr(conform, "_check_case", lambda title, *_: iter(c for c in checks if c.case == title))
    monkeypatch.setattr("reconcile.launch.environments.runs.collect_in", lambda *_: lambda *_: None)
    asked = ["counter", "conform", "thop", "--case", "conv1x1", "--case", "gru_demo", "--pass", "forward", "--quiet"]
    lines = CliRunner().invoke(cli, asked).stdout.splitlines()
    assert lines[:3] == ["FAILED [4] 6 entries differ", "  conv1x1: matmul, all", "  gru_demo: matmul, all"]


@pytest.mark.parametrize(("version", "passes"), [("thop", True), ("mien", False)])
def test_a_ledger_without_the_version_that_selects_the_rules_fails(
    version: str, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger("thop", "torch", FLOP, "cpu", {version: "1"}, 0, (), (), {}, ())
    for check in ("_describe_unexplained", "_find_unfounded_amount", "_find_fitted_entry", "settle"):
        monkeypatch.setattr(conform, check, lambda *_: "")
    collected = Collected({}, (Trace("torch", {}, "cpu", (), (), (), (), ()),), (ledger,))
    wrong = [check.problem for check in _check_case("conv1x1", collected, False) if check.problem]
    assert (wrong == [], all("'thop'" in problem for problem in wrong)) == (passes, True)


@pytest.mark.parametrize(("arguments", "exit_code"), [(("--pass", "training"), 0), (("--case", "conv1x1"), 0), ((), 1)])
def test_its_exit_code(arguments: tuple[str, ...], exit_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that refuses: no failure of cases that a user chose, and no conformance of one that refuses everything."""
    monkeypatch.setattr(
        conform, "_check_case", lambda title, *_: iter([Check(title, "reports", skipped="it takes no bytes")])
    )
    monkeypatch.setattr("reconcile.launch.environments.runs.collect_in", lambda *_: lambda *_: None)
    monkeypatch.setattr(conform, "families", lambda _counter: ("conv1x1",))
    done = CliRunner().invoke(cli, ["counter", "conform", "thop", *arguments])
    assert (done.exit_code, done.stderr) == (exit_code, "")
    assert done.stdout.splitlines()[-1].startswith("thop counted nothing in ")
    assert "SKIPPED" in done.stdout


@pytest.mark.parametrize(("counts", "cases"), [("family_dense", 4), ("conv_only", 16)])
def test_a_counter_of_no_family_gets_networks(counts: str, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each at two batches and in two passes: of one family alone, or of it and three networks."""

    def checked(title: str, *_: object) -> Iterator[Check]:
        counted = title.startswith(counts)
        yield Check(title, "reports", skipped="" if counted else "it takes no bytes", counted=counted)

    monkeypatch.setattr(conform, "_check_case", checked)
    monkeypatch.setattr("reconcile.launch.environments.runs.collect_in", lambda *_: lambda *_: None)
    monkeypatch.setattr(conform, "families", lambda _counter: ("family_dense",))
    done = CliRunner().invoke(cli, ["counter", "conform", "thop"])
    assert (done.exit_code, done.stdout.splitlines()[-1].endswith(f"skipped in {cases} cases")) == (0, True), (
        done.stdout
    )
