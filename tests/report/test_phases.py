"""The work of a training step by layer and phase, and what each report says of it."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import FORWARD, INPUT_GRADIENT, LOSS, OPTIMIZER, WEIGHT_GRADIENT
from reconcile.core.results import Claim
from reconcile.engine.phases import phase_table
from reconcile.report import reports, view
from reconcile.report.csv import to_csv
from reconcile.report.json import to_dict
from reconcile.report.markdown import to_markdown
from reconcile.report.page import to_html
from reconcile.report.terminal import screen as terminal
from tests.report import samples
from tests.report.samples import FIRST, SECOND, STEP_WORK, B, K, N, steps, trained, with_a_hole
from tests.report.tables import amount, read

MATMUL, ALL = BUILT_IN["matmul"], BUILT_IN["all"]
TITLE = "Layer by layer and phase by phase"


@pytest.mark.parametrize("convention", BUILT_IN.values())
def test_every_flop_stands_in_one_cell(convention):
    ran = steps()
    table = phase_table(ran, convention)
    cells = {(row.layer, phase): flops for row in table.rows for phase, flops in row.flops.items() if flops}
    assert cells == {key: convention.flops(work) for key, work in STEP_WORK.items() if convention.flops(work)}
    assert sum(table.total.flops.values()) == ran.totals[convention.name]
    for phase in table.phases:
        assert sum(row.flops.get(phase, 0) for row in table.rows) == table.total.flops[phase]


def test_the_first_layer_has_no_input_gradient_ratio_below_two():
    table = phase_table(steps(), MATMUL)
    first, second = table.rows
    assert (first.layer, first.ratio) == ("first", 1)
    assert (second.layer, second.ratio) == ("second", 2)
    assert table.total.ratio == Fraction(FIRST + 2 * SECOND, FIRST + SECOND)
    assert table.phases == (FORWARD, LOSS, INPUT_GRADIENT, WEIGHT_GRADIENT, OPTIMIZER)


def test_loss_and_optimizer_are_not_the_backward_pass():
    rows = {row.layer: row for row in phase_table(steps(), ALL).rows}
    assert list(rows) == ["first", "relu", "second", "(loss)"]
    assert rows["first"].backward == 2 * FIRST + (B - 1) * N
    assert rows["first"].flops[OPTIMIZER] == 2 * (K * N + N)
    assert (rows["(loss)"].ratio, rows["(loss)"].backward) == (None, 0)
    assert rows["relu"].ratio == 1


def test_a_forward_pass_has_no_such_table():
    assert phase_table(samples.clean().traces[0], MATMUL) is None
    assert view.phase_tables(samples.clean(), MATMUL) == []
    assert TITLE not in to_markdown(samples.clean())


def test_what_is_unknown_is_no_number():
    table = phase_table(with_a_hole().traces[0], MATMUL)
    rows = {row.layer: row for row in table.rows}
    assert rows["first"].ratio == 1
    assert (rows["second"].ratio, table.total.ratio) == (None, None)
    shown = {row[0]: row[1:] for row in under(to_markdown(with_a_hole())).rows}
    assert shown["second"][0] == f"≥ {2 * SECOND}"
    assert shown["second"][-1] == shown["total"][-1] == "unknown"
    assert with_a_hole().by_phase(with_a_hole().traces[0], MATMUL) == {}


def under(text):
    return next(table for table in read(text).tables if table.heading == TITLE)


def test_markdown_adds_up_and_shows_the_rest_under_all():
    text = to_markdown(trained())
    narrow, wide = (table for table in read(text).tables if table.heading == TITLE)
    for table, convention in ((narrow, MATMUL), (wide, ALL)):
        *rows, total = table.rows
        for column in range(1, len(table.header) - 1):
            assert sum(amount(row[column]) for row in rows if row[column]) == amount(total[column])
        assert sum(map(amount, total[1:-1])) == steps().totals[convention.name]
    assert [row[0] for row in narrow.rows] == ["first", "second", "total"]
    assert [row[0] for row in wide.rows] == ["first", "relu", "second", "(loss)", "total"]
    assert f"backward / forward = {2 * FIRST + 4 * SECOND} / {2 * (FIRST + SECOND)} = 1.5714" in read(text).text
    (alone,) = [t for t in read(to_markdown(replace(trained(), convention=ALL))).tables if t.heading == TITLE]
    assert alone.rows == wide.rows


def test_two_frameworks_that_do_the_same_share_a_table():
    ours = replace(steps(), name="trace@tf", framework="tf")
    both = replace(trained(), traces=(ours, steps()))
    assert [names for names, _ in view.phase_tables(both, MATMUL)] == ["tf and torch"]
    other = replace(ours, rows=ours.rows[1:])
    assert [names for names, _ in view.phase_tables(replace(both, traces=(other, steps())), MATMUL)] == ["tf", "torch"]


def test_csv_says_the_phase_of_every_line_and_has_the_work():
    rows = list(csv.DictReader(io.StringIO(to_csv(trained()))))
    (line,) = [row for row in rows if row["cause"] == "formula-differs"]
    assert line["phase"] == WEIGHT_GRADIENT
    work = [row for row in rows if row["cause"] == "work"]
    assert {(row["from"], row["to"]) for row in work} == {("", "trace@torch")}
    sums = Counter()
    for row in work:
        sums[row["phase"]] += int(row["amount"])
    assert sums == Counter(phase_table(steps(), MATMUL).total.flops)
    plain = list(csv.DictReader(io.StringIO(to_csv(samples.clean()))))
    assert {row["phase"] for row in plain} == {"", FORWARD}
    assert not [row for row in plain if row["cause"] == "work"]


def test_json_has_the_layers_phase_by_phase():
    (trace,) = to_dict(trained())["traces"]
    assert trace["phases"][0] == {
        "layer": "first",
        "known": True,
        "flops": {FORWARD: 2 * FIRST, WEIGHT_GRADIENT: 2 * FIRST, OPTIMIZER: 0},
        "forward": 2 * FIRST,
        "backward": 2 * FIRST,
        "ratio": 1.0,
    }
    assert {row["phase"] for row in trace["rows"]} == {phase for _, phase in STEP_WORK}
    json.dumps(trace)


def test_the_terminal_and_the_page_show_it():
    out = io.StringIO()
    terminal.print_run(trained(), Console(file=out, width=100))
    block = out.getvalue().split("Phase by phase (torch)")[1].split("Layer by layer")[0]
    assert [line.split()[0] for line in block.splitlines()[3:6]] == ["first", "second", "total"]
    assert "= 1.5714" in block
    html = to_html(trained())
    assert f'<td class="n" data-label="{WEIGHT_GRADIENT}">{2 * FIRST}</td>' in html
    assert "= 1.5714" in html
    assert 'id="phases"' not in to_html(samples.clean())


def test_its_files_do_not_take_the_place_of_a_forward_pass(monkeypatch):
    monkeypatch.setattr("reconcile.report.pictures.charts.can_draw", lambda: True)
    monkeypatch.setattr("reconcile.report.pictures.charts.draw", lambda *_: {"waterfall.svg": "<svg/>"})
    assert "(steps-training.waterfall.svg)" in reports.render(trained(), ("md", "svg"))["md"]


def test_a_published_backward_stands_beside_the_one_that_ran():
    claims = (
        Claim("7", "forward", "a post", "half of it: 14 / 2 = 7.", 7),
        Claim("9", "backward", "a post", "by subtraction: 16 - 7 = 9.", 9),
        Claim("5e3", "forward and backward", "a post", "", None),
    )
    told = replace(trained(), published=claims)
    page = read(to_markdown(told)).text
    assert "9, said to be backward (a post): by subtraction: 16 - 7 = 9." in page
    backward = 2 * FIRST + 4 * SECOND
    assert f"{backward} FLOP under matmul, +{backward - 9} from 9." in page
    assert page.count("The backward pass that ran") == 1
    assert "5e3, said to be forward and backward (a post): no reading fits it." in page
    assert [claim["value"] for claim in to_dict(told)["published"]] == [7, 9, None]
    assert "published" not in to_dict(trained())
