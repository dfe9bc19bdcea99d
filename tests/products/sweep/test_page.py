"""The summary of a sweep: it adds up, names stay names, and what is missing says why."""

from __future__ import annotations

import csv
import io
import re

import pytest

from reconcile.core.atomic import safe
from reconcile.products.sweep.engine import Finished
from reconcile.products.sweep.page import costs, describe_sweep, to_csv, verdict
from reconcile.report.document.markdown import to_markdown
from tests.core.test_table import FORMULA, ODD, SHOWN, cells
from tests.products.sweep.fakes import BETWEEN, LOST, counter, outcome

COST = {"wall_s": 12.34, "peak_bytes": 3 << 29}
CLEAN = Finished(outcome("a.Net", counter(), counter("thop", 5), between=[BETWEEN]), COST)
OPEN = Finished(
    outcome("b|Net", counter(), counter("thop", 7, residual=-3), exit_code=1, open=["thop to trace@torch: -3"]), COST
)
FAILED = Finished(outcome("c", counter("thop"), counter() | LOST, exit_code=3), COST)
THREE = Finished(
    outcome(
        "f",
        traces=[{**outcome("f")["traces"][0], "framework": name} for name in ("tf", "torch", "jax")],
        between=[BETWEEN, BETWEEN | {"to": "trace@jax"}, BETWEEN | {"from": "trace@torch", "to": "trace@jax"}],
    ),
    COST,
)
HALF = Finished(outcome("d", refused={"tf": "the factory raised ValueError."}), {}, kept=True)
GONE = Finished(
    {"name": "e", "refused": {"": "its process was killed"}, "exit_code": 3, "traces": [], "counters": [], "between": [],
     "open": []}, {},
)  # fmt: skip
ALL = [CLEAN, OPEN, FAILED, HALF, GONE]


def table(text: str, place: int = 0) -> list[list[str]]:
    """The page's tables in order: the models, the causes."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)[place]
    rows = [re.split(r"(?<!\\) *\| *", line)[1:-1] for line in found.splitlines()]
    return [rows[0], *rows[2:]]


def test_a_row_per_model_and_sums_that_add_up() -> None:
    text = to_markdown(describe_sweep(ALL, "reconcile sweep x"))
    head, *rows = table(text)
    assert len(rows) == len(ALL)
    assert [row for row in rows if len(row) != len(head)] == []
    total, *parts = map(int, re.findall(r"\d+", text[text.index("5 models") : text.index("totals of counters")])[:5])
    assert (total, sum(parts)) == (5, 5)
    assert parts == [2, 1, 1, 1]
    counters = text[text.index("totals of counters") - 3 :]
    total, exact, off, open_, without = map(int, re.findall(r"\d+", counters)[:5])
    assert total == sum(len(one.outcome["counters"]) for one in ALL) == exact + off + open_ + without
    assert (exact, off, open_, without) == (4, 1, 1, 1)
    assert "1 model ran in both frameworks: 1 with the same work in either, 0 with another." in text
    assert "Of those that ran, 1 are refused in one framework" in text


def test_what_a_row_says() -> None:
    _, clean, open_, failed, half, gone = table(to_markdown(describe_sweep(ALL)))
    assert clean == ["[a.Net](a.Net.md)", "10", "1", "0.500", "0", "reconciled", "12.3", "1.50"]
    assert open_[0] == rf"[b\|Net]({safe('b|Net')}.md)"
    assert open_[3:6] == ["0.700 unexplained", "-3", "not reconciled: thop to trace@torch: -3"]
    assert failed[2:6] == ["failed", "1", "0", "a counter failed: died"]
    assert half[5] == "reconciled; refused in TensorFlow: the factory raised ValueError."
    assert half[6:] == ["", ""]
    assert gone == ["e", "", "", "", "", "not run: its process was killed", "", ""]
    assert verdict(GONE) == "not run: its process was killed"
    assert verdict(Finished({**CLEAN.outcome, "counters": []}, COST)) == "traced"  # an audit runs no counter


def test_what_ran_in_three_frameworks_names_them() -> None:
    other = Finished({**THREE.outcome, "between": [b | {"causes": {"x": 0}} for b in THREE.outcome["between"]]}, COST)
    text = to_markdown(describe_sweep([THREE, other, CLEAN]))
    assert "2 models ran in TensorFlow, PyTorch and JAX: 1 with the same work in each, 1 with another." in text
    assert "both frameworks" not in text
    assert table(to_markdown(describe_sweep([THREE])))[1][1:] == ["10", "1", "0", "reconciled", "12.3", "1.50"]
    work = {"tf": 10, "torch": 10, "jax": 12}
    apart = [{**trace, "work": work[trace["framework"]]} for trace in THREE.outcome["traces"]]
    rest = BETWEEN | {"from": "trace@torch", "to": "trace@jax", "residual": 2}
    _, row = table(
        to_markdown(describe_sweep([Finished({**THREE.outcome, "traces": apart, "between": [BETWEEN, rest]}, COST)]))
    )
    assert row[1:4] == ["TensorFlow 10<br>PyTorch 10<br>JAX 12", "1", "2"]


def test_causes_by_how_many_models_they_are_in() -> None:
    off = [outcome(f"m{i}", counter("thop", total), counter("fvcore", 12)) for i, total in enumerate((5, 9, 10))]
    rows = table(to_markdown(describe_sweep([Finished(one, COST) for one in off])), 1)
    assert rows[1:] == [
        ["thop", "op-not-counted", "2", "+10.0 %", "+50.0 %"],
        ["fvcore", "op-not-counted", "3", "-20.0 %", "-20.0 %"],
    ]
    mixed = [outcome(f"m{i}", counter(total=total, work=10 if i else 0)) for i, total in enumerate((3, 7, 15, 11))]
    rows = table(to_markdown(describe_sweep([Finished(one, COST) for one in mixed])), 1)
    assert rows[1:] == [["fvcore", "op-not-counted", "4", "-10.0 %", "-50.0 %"]]  # one has no work to be a share of
    rows = table(to_markdown(describe_sweep([Finished(mixed[0], COST)])), 1)
    assert rows[1:] == [["fvcore", "op-not-counted", "1", "", ""]]
    exact = to_markdown(describe_sweep([Finished(outcome("m", counter()), COST)]))
    assert "cause by cause" not in exact


def test_versions_once_or_for_how_many_models() -> None:
    def page(*environments: dict[str, str]) -> str:
        return to_markdown(
            describe_sweep([Finished(outcome(f"m{i}", environment=e), {}) for i, e in enumerate(environments)])
        )

    new, old = {"torch": "2.13.0", "keras": "3.15.1"}, {"torch": "1.3.1"}
    assert "All on keras 3.15.1, torch 2.13.0." in page(new, new)
    assert "2 models on keras 3.15.1, torch 2.13.0.\n- 1 model on torch 1.3.1." in page(new, old, new)


def test_the_tables_hold_every_total_and_every_cost_apart() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(ALL))))
    assert len(rows) == sum(
        len(o.outcome["traces"]) + len(o.outcome["counters"]) + len(o.outcome["refused"]) for o in ALL
    )
    thop = next(row for row in rows if (row["model"], row["counter"]) == ("b|Net", "thop"))
    assert int(thop["normalised"]) + int(thop["residual"]) + 6 == int(thop["work"])
    assert [row["reason"] for row in rows if row["state"] in ("refused", "failed")] == [
        "died", "the factory raised ValueError.", "its process was killed",
    ]  # fmt: skip
    assert "12.3" not in to_csv(ALL)
    assert [row["wall_s"] for row in csv.DictReader(io.StringIO(costs(ALL)))] == ["12.34", "12.34", "12.34", "", ""]


def test_unknown_ops_by_how_many_models_they_are_in() -> None:
    """Once per model, however often it runs them; those that leave this convention open come first."""
    trace = {**outcome("x")["traces"][0], "unknown": {"aten.odd": 3}, "unweighed": {"aten.b": 1}}
    other = {**trace, "unknown": {}, "unweighed": {"aten.b": 2, "aten.c": 1}}
    text = to_markdown(
        describe_sweep([CLEAN, *(Finished(outcome(str(n), traces=[t]), {}) for n, t in enumerate([trace, other]))])
    )
    rows = next(t for t in (table(text, n) for n in range(3)) if t[0][0] == "op")[1:]
    assert rows == [["aten.odd", "1", "0"], ["aten.b", "0", "2"], ["aten.c", "0", "1"]]
    assert "Ops whose work is unknown" not in to_markdown(describe_sweep([CLEAN]))


def test_a_reason_once_with_all_the_models_that_it_is_true_of() -> None:
    missing = "ImportError: it requires a library"
    gone = [
        Finished({**GONE.outcome, "name": f"lib.{name}", "refused": {"": f"the factory {name} raised {missing}."}}, {})
        for name in ("B", "A")
    ]
    rows = next(
        t for t in (table(to_markdown(describe_sweep([*ALL, *gone])), n) for n in range(4)) if t[0][0] == "reason"
    )[1:]
    assert rows[0] == [f"not run: {missing}.", "2", "A, B"]
    assert sorted(row[2] for row in rows[1:]) == [r"b\|Net", "c", "e"]
    assert "not reconciled:" not in to_markdown(describe_sweep([CLEAN]))


@pytest.mark.parametrize(
    ("name", "why", "shown"), [(FORMULA, "+1", (f"'{FORMULA}", "'+1")), (ODD, ODD, (SHOWN, SHOWN))]
)
def test_a_sweep_names_nothing_that_is_a_formula(name: str, why: str, shown: tuple[str, str]) -> None:
    outcome = {"name": name, "refused": {"": why}, "traces": [], "counters": [], "exit_code": 2}
    row = cells(to_csv([Finished(outcome, {})]))[1]
    assert (row[0], row[-1]) == shown
