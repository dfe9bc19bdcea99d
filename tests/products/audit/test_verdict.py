"""What a figure is among the readings of its model, and how much that means."""

from __future__ import annotations

import math
from typing import Any

import pytest

from reconcile.core.records import FLOP, MAC
from reconcile.products.audit.claims import Claim
from reconcile.products.audit.report import describe_audit, tabulate_rows, to_csv, to_html
from reconcile.products.audit.source_inference import Known
from reconcile.products.audit.verdict import State, Verdict, by_chance, chance, verdict, verdicts
from reconcile.products.decode.printed_figure import PARAMETER, figure
from reconcile.products.decode.readings import DERIVED, PART, WORK, Candidate
from reconcile.products.sweep.small_models import HEADLESS, OF_CONFIGURATION
from reconcile.report.document.markdown import to_markdown

MACS = 4_089_184_256
NORMS = 22_328_320


def reading(value: int, rank: int, unit: str, what: str, family: str = "") -> dict[str, Any]:
    return {"value": value, "rank": rank, "unit": unit, "what": what, "how": "", "note": "", "family": family}


READINGS = [
    reading(MACS, WORK, MAC, "macs"),
    reading(2 * MACS, WORK, FLOP, "flops"),
    reading(MACS + NORMS, PART, MAC, "with norms", "fvcore"),
    reading(MACS + 1000, PART, MAC, "with biases"),
    reading(3 * MACS, DERIVED, FLOP, "far-fetched"),
]
RAN: dict[str, Any] = {"refused": {}, "traces": [{"reason": ""}], "readings": READINGS}


def of(text: str, claim: str = "", counter: str = "", outcome: dict[str, Any] | None = None) -> Verdict:
    return verdict(Claim(1, "net:make", figure=text, claim=claim, counter=counter), RAN if outcome is None else outcome)


@pytest.mark.parametrize(
    ("text", "claim", "what", "matches", "numbers"),
    [
        ("4.089", "GMACs", "macs", 2, 2),
        ("4089184256", "", "macs", 1, 1),
        ("4.11", "GMACs", "with norms", 1, 1),
        ("8.178", "GFLOPs", "flops", 1, 1),
        ("12.27", "G", "far-fetched", 1, 1),
    ],
)
def test_the_simplest_reading(text: str, claim: str, what: str, matches: int, numbers: int) -> None:
    found = of(text, claim)
    assert found.best is not None
    assert (found.state, found.best.what, found.matches, found.numbers) == (State.EXPLAINED, what, matches, numbers)
    assert not found.contradicts


def test_the_counter_that_the_source_names_comes_first() -> None:
    near = {**RAN, "readings": [*READINGS, reading(MACS + NORMS + 10, PART, MAC, "another")]}
    wanted = ("4.112", "GMACs")
    assert of(*wanted, "fvcore", near).best == of(*wanted, "", RAN).best
    exact = {**RAN, "readings": [*READINGS, reading(4_112_000_000, PART, MAC, "another")]}
    assert of(*wanted, "", exact).best.what == "another"  # type: ignore[union-attr]
    assert of(*wanted, "FVCore 0.1.5", exact).best.what == "with norms"  # type: ignore[union-attr]


def test_few_digits_meet_totals_and_those_of_the_named_counter() -> None:
    held = {
        **RAN,
        "readings": [reading(582_000_000, WORK, MAC, "macs"), reading(601_000_000, PART, MAC, "norms", "fvcore")],
    }
    assert of("0.60", "GMACs", outcome=held).state is State.OPEN
    assert of("0.60", "GMACs", "thop", held).state is State.OPEN
    found = of("0.60", "GMACs", "fvcore", held)
    assert (found.state, found.best.what) == (State.EXPLAINED, "norms")  # type: ignore[union-attr]
    assert found.chance == pytest.approx((math.log10(6.05 / 5.95) + math.log10(585 / 575) * 1) / 2, rel=1e-6)


def test_not_explained_says_what_is_nearest() -> None:
    found = of("4.15", "GMACs")
    assert (found.state, found.best) == (State.OPEN, None)
    off = 100 * (4.15e9 - (MACS + NORMS)) / (MACS + NORMS)
    near = f"too large by {off:.2g} %: {MACS + NORMS:,} (4.11 GMACs, with norms)"
    assert found.reason == f"{near}, the nearest of 3 readings in MACs"


def test_a_claim_in_flops_is_answered_in_flops() -> None:
    """4.3 is 47 % short of twice the products, and 5.2 % more than the products; 8.6 has FLOPs nearest."""
    reason = of("4.3", "GFLOPs").reason
    short, more = 100 * (1 - 4.3e9 / (2 * MACS)), 100 * (4.3e9 / MACS - 1)
    assert reason.startswith(f"too small by {short:.0f} %: {2 * MACS:,} (8.18 GFLOPs, flops)")
    assert reason.endswith(f"; read as MACs it is too large by {more:.2g} %: {MACS:,} (4.09 GMACs, macs)")
    reason = of("8.6", "GFLOPs").reason
    assert reason.startswith(f"too large by {100 * (8.6e9 / (2 * MACS) - 1):.2g} %: {2 * MACS:,}")
    assert "read as" not in reason


def test_a_model_that_did_not_run_and_a_figure_that_is_none() -> None:
    failed = {"refused": {"torch": "it raised"}, "traces": []}
    assert (of("4.1", "G", outcome=failed).state, of("4.1", "G", outcome=failed).reason) == (State.NOT_RUN, "it raised")
    partly = {"refused": {}, "traces": [{"reason": "", "unknown": {"aten.x": 1}}], "readings": []}
    assert of("4.1", "G", outcome=partly).reason == "the work of aten.x is unknown"
    assert of("four", "G").state is State.NOT_READ
    assert "is not a number" in of("four", "G").reason


WEIGHTS = 25_557_032
"""The parameters of ResNet-50."""


@pytest.mark.parametrize(
    ("text", "claim", "state"),
    [
        ("25.6", "M params", State.EXPLAINED),
        ("25.6M", "#Params", State.EXPLAINED),
        ("26", "Params (M)", State.EXPLAINED),
        ("25557032", "parameters", State.EXPLAINED),
        ("25.5", "M params", State.CUT),
        ("25.7", "M params", State.OPEN),
        ("4.09", "G params", State.OPEN),
    ],
)
def test_a_number_of_parameters_is_compared_with_the_parameters_alone(text: str, claim: str, state: State) -> None:
    held = {**RAN, "readings": [*READINGS, reading(WEIGHTS, WORK, PARAMETER, "parameters")]}
    found = verdict(Claim(1, "net:make", figure=text, claim=claim, counter="fvcore"), held)
    assert (found.state, found.of_parameters, found.macs, found.chance) == (state, True, 0, None)
    assert (found.best is None) == (state is State.OPEN)
    if found.best is None:
        assert f"{WEIGHTS:,}" in found.reason
    (_, _, counts, _) = tabulate_rows([found]).rows[0]
    assert counts == ("differs" if found.best is None else "parameters")
    assert of(text, claim).state is State.NOT_RUN  # its parameters are not known
    assert of("25.6", "GMACs", outcome=held).state is State.OPEN


def test_numbers_of_parameters_say_nothing_of_what_a_source_counts() -> None:
    held = {**RAN, "readings": [*READINGS, reading(WEIGHTS, WORK, PARAMETER, "parameters")]}
    claims = [Claim(i, "net:make", figure="25.56", claim="M params", source="a") for i in range(1, 6)]
    found, sources = verdicts(claims, dict.fromkeys(range(1, 6), held), {})
    assert ([v.state for v in found], sources) == ([State.EXPLAINED] * 5, [])
    assert by_chance(found, dict.fromkeys(range(1, 6), held)) == (0, 0)


def test_remarks_on_a_label_and_on_digits_that_are_cut_off() -> None:
    """4,089,184,256 multiply-adds: 4.09 rounded, 4.08 cut off."""

    def starts(found: Verdict) -> list[str]:
        return [text.partition(":")[0] for text in found.remarks]

    assert starts(of("4.09", "GMACs")) == []
    assert starts(of("4.09", "GFLOPs")) == ["label is wrong"]
    assert starts(of("8.18", "GMACs")) == ["label is wrong"]
    assert starts(of("4.08", "GMACs")) == ["cut off, not rounded"]
    assert starts(of("4.08", "GFLOPs")) == ["label is wrong", "cut off, not rounded"]
    assert of("4.5", "GFLOPs").remarks == ()


def test_the_class_of_a_configuration_is_named() -> None:
    made = f"NetForX{OF_CONFIGURATION}NetConfig(){HEADLESS}Net"
    held = {**RAN, "traces": [{"reason": "", "notes": ["called with x", made]}]}
    assert of("4.09", "GMACs", outcome=held).remarks == (made,)
    assert of("4.5", "GMACs", outcome=held).reason.endswith(made)


def test_a_tiny_reading_is_not_near() -> None:
    """4.012 is further from 8.18 than from 0.0001, but half of it, and 40,000 times the other."""
    small = {**RAN, "readings": [READINGS[0], READINGS[1], reading(10**5, DERIVED, FLOP, "tiny")]}
    assert f"{2 * MACS:,}" in of("4.012", "GFLOPs", outcome=small).reason.partition(";")[0]


def test_the_chance_is_the_share_of_figures_that_a_reading_takes() -> None:
    """A reading takes the numbers printed as it is: of 4.09, those from 4.085 to 4.095."""
    one = [Candidate(MACS, WORK, MAC, "")]
    decades = math.log10(4.095 / 4.085) / 2
    assert chance(one, figure("4.09G"), MACS) == pytest.approx(decades)
    same = [*one, Candidate(4_090_000_000, WORK, MAC, "")]
    assert chance(same, figure("4.09G"), MACS) == pytest.approx(decades)
    two = [*one, Candidate(4_100_000_000, WORK, MAC, "")]
    assert chance(two, figure("4.09G"), MACS) == pytest.approx(math.log10(4.105 / 4.085) / 2)
    far = [*one, Candidate(100 * MACS, WORK, MAC, "")]
    assert chance(far, figure("4.09G"), MACS) == pytest.approx(decades)
    assert chance(one, figure("5.00G"), MACS, cut=True) == pytest.approx(math.log10(4.095 / 4.075) / 2)
    assert chance(one, figure("4089184256"), MACS) < 1e-9


def test_random_figures_are_explained_as_often_as_chance_says() -> None:
    verdicts = [of("4.09", "GMACs")]
    hits, draws = by_chance(verdicts, {1: RAN}, 4000)
    drawn_with = [r for r in READINGS if r["rank"] < PART + 1]
    # to the second decimal of a billion, as the claim: each reading takes 0.01e9, whatever its digits
    expected = sum(
        math.log10((r["value"] + 5e6) / (r["value"] - 5e6)) / 2 for r in drawn_with if r["what"] != "with biases"
    )
    assert draws == 4000
    assert hits / draws == pytest.approx(expected, abs=3 * math.sqrt(expected / draws) + 0.001)
    assert by_chance([], {}) == (0, 0)
    assert by_chance(verdicts, {1: RAN}) == by_chance(verdicts, {1: RAN})


def test_the_text_of_an_error_is_no_formula_and_no_markup() -> None:
    failed = [of("1", outcome={"refused": {"": "=it|raised"}, "traces": []})]
    assert "=it\\|raised" in to_markdown(describe_audit(failed, (7, 1000)))
    assert "'=it|raised" in to_csv(failed)


def test_twice_the_products_come_before_a_nearer_count() -> None:
    """ResNet-50: 2 × 4,089,184,256 rounds to 8.2, and so does 8,206,449,344, which is nearer to it."""
    near = reading(8_206_449_344, WORK, FLOP, "the work that ran, in FLOPs by the convention textbook")
    causal = reading(2 * MACS, WORK, FLOP, "the work that ran, in FLOPs by the convention causal")
    matmul = reading(2 * MACS, WORK, FLOP, "the work that ran, in FLOPs by the convention matmul")
    held = {**RAN, "readings": [READINGS[0], near, causal, matmul]}
    best = of("8.2", "GFLOPs", outcome=held).best
    assert best is not None
    assert (best.value, best.what) == (2 * MACS, matmul["what"])


def test_a_verdict_says_what_its_source_counts() -> None:
    """Four figures of one source, with norms: what is read by the other three says so, on both pages and in the table."""
    claims = [Claim(i, "net:make", figure="4.112", claim="GMACs", source=f"a, row {i}") for i in range(1, 6)]
    found, sources = verdicts(claims, dict.fromkeys(range(1, 6), RAN), {})
    assert [v.evidence for v in found] == ["as the other 4 rows of this source"] * 5
    assert [(one.source, one.rows, one.of) for one in sources] == [("a", 5, 5)]
    page = to_markdown(describe_audit(found, (0, 1), "", sources))
    for text in (page, to_csv(found), to_html(found, (0, 1), "", sources)):
        assert "as the other 4 rows of this source" in text
    assert "| a | with norms | 5 | 5 | 10^" in page


def in_a_table(text: str, claim: str, outcome: dict[str, Any], what: str) -> Verdict:
    """The verdict on a figure whose source counts ``what`` in 20 other rows."""
    return verdict(Claim(1, "net:make", figure=text, claim=claim), outcome, "", (Known(what, 20),))


GPT2 = 145_824_153_600
RESNET101, BESIDE = 7_801_405_440, 32_513_024
"""The multiply-adds of ResNet-101, and 2 for each of the 16,256,512 elements behind its batch norms."""


@pytest.mark.parametrize("what", ["macs", "with biases", "flops"])
def test_a_row_that_its_sources_reading_misses_is_tried_in_the_other_unit(what: str) -> None:
    """GPT-2's 0.29 TFLOPs are 2 × 145,824,153,600, in a table whose other rows are MACs."""
    macs, flops = reading(GPT2, WORK, MAC, "macs"), reading(2 * GPT2, WORK, FLOP, "flops")
    held = {**RAN, "readings": [macs, flops, reading(GPT2 + 10**6, PART, MAC, "with biases")]}
    found = in_a_table("0.29", "TFLOPs", held, what)
    assert found.best is not None
    assert (found.state, found.best.value, found.best.what) == (State.EXPLAINED, 2 * GPT2, "flops")
    simple = in_a_table("0.15", "TFLOPs", held, what)
    assert simple.best.what == "macs"  # type: ignore[union-attr]
    assert ("also fits with biases, as the other 20" in simple.evidence) == (what == "with biases")
    assert in_a_table("0.31", "TFLOPs", held, what).state is State.OPEN


def test_the_other_unit_is_that_of_the_sources_reading() -> None:
    """ResNet-101: 15.7 is twice the products and norms, where 2 × 7,801,405,440 rounds to 15.6; the list of readings lacks it."""
    macs, norms = reading(RESNET101, WORK, MAC, "macs"), reading(RESNET101 + BESIDE, PART, MAC, "with norms", "fvcore")
    held = {**RAN, "readings": [macs, reading(2 * RESNET101, WORK, FLOP, "flops"), norms]}
    for text, value in (("15.7", 2 * (RESNET101 + BESIDE)), ("15.6", 2 * RESNET101), ("7.83", RESNET101 + BESIDE)):
        best = in_a_table(text, "GFLOPs", held, "with norms").best
        assert best is not None
        assert (text, best.value, best.unit) == (text, value, MAC if text == "7.83" else FLOP)
    halved = in_a_table(
        "3.9", "GMACs", {**RAN, "readings": [macs, reading(7_801_405_440, PART, FLOP, "odd")]}, "odd"
    ).best
    assert halved is not None
    assert (halved.value, halved.unit) == (RESNET101 // 2, MAC)
