"""Claims of training compute, each made by hand in one of the known ways; and the committed pages, made again."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.mfu.claims import parse_claim, read_claims
from reconcile.products.mfu.closed_forms import FORMS, Shape
from reconcile.products.mfu.table_report import describe_table
from reconcile.products.mfu.table_verdicts import State, Verdict, verdicts
from reconcile.report.document.markdown import to_markdown

REPORTS = Path(__file__).resolve().parents[3] / "reports" / "mfu"
HEAD = "params,active_params,training_tokens,device_hours,peak_stated,utilisation,base_flops,claimed,claimed_kind"
N, ACTIVE, D, HOURS, BASE = 70 * 10**9, 13 * 10**9, 15 * 10**12, 7 * 10**6, 3.25e23
ALL, SOME, HARDWARE = 6 * N * D, 6 * ACTIVE * D, HOURS * 3600 * 989 * 10**12 * 3 // 10
WAYS = {
    "6ND of every parameter": ALL,
    "6ND of active parameters": SOME,
    "hardware x utilisation": HARDWARE,
    "geometric mean of 6ND of active parameters and hardware x utilisation": sqrt(SOME * HARDWARE),
    "6ND of active parameters, and the base model": SOME + BASE,
    "the base model alone": BASE,
}


def read(folder: Path, claimed: float) -> Verdict:
    """The verdict on a training that states everything and claims so many FLOPs."""
    path = folder / "claims.csv"
    path.write_text(f"{HEAD}\n{N},{ACTIVE},{D},{HOURS},989,0.3,{BASE:.2e},{claimed:.5e},FLOP\n")
    (found,) = verdicts(read_claims(path))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_claim_is_made_in_one_way(way: str, tmp_path: Path) -> None:
    found = read(tmp_path, WAYS[way])
    assert (found.state, found.convention, found.factor) == (State.EXPLAINED, way, Fraction(1))


def test_a_claim_that_no_way_gives_is_contradicted_by_the_nearest(tmp_path: Path) -> None:
    found = read(tmp_path, 1.02 * SOME)
    assert (found.state, found.convention) == (State.CONTRADICTED, "6ND of active parameters")
    assert found.factor == pytest.approx(Fraction(102, 100), rel=1e-4)


def test_a_claim_of_one_digit_or_without_figures_is_not_explained(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(f"params,training_tokens,claimed,claimed_kind\n{10**11},{10**12},6e23,FLOP\n{N},,4e24,FLOP\n")
    assert [v.state for v in verdicts(read_claims(path))] == [State.TOO_LITTLE] * 2


def test_a_rate_may_state_its_error() -> None:
    figure = parse_claim("199.12 ± 0.05", "TFLOP/s/GPU").figure
    assert (figure.low, figure.high) == (Fraction(19907 * 10**10), Fraction(19917 * 10**10))
    with pytest.raises(UsageError, match="twentieth"):
        parse_claim("199 ± 10", "TFLOP/s/GPU")


def test_heads_may_be_wider_than_the_layer_and_a_router_is_left_out() -> None:
    shape = Shape(params=1000, layers=3, hidden=20, vocab=50, seq=16, heads=4, head_dim=8, router=12)
    (form,) = (form for form in FORMS if form.name == "megatron-router")
    made = form.of(shape)
    assert made is not None
    assert made.total == 6 * (1000 - 50 * 20 - 12) + 6 * 3 * 4 * 8 * 16


@pytest.mark.parametrize("name", ["cards", "training"])
def test_a_page_is_what_its_command_writes(name: str) -> None:
    found = verdicts(read_claims(REPORTS / name / "claims.csv"))
    command = f"reconcile mfu --table claims.csv --out {name}"
    assert (REPORTS / name / "README.md").read_text() == to_markdown(describe_table(found, command))
