"""Two setups of one run: factors whose product is the quotient of the two utilisations."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.errors import UsageError
from reconcile.products.mfu.compare import Compared, compare_files
from reconcile.report.document import Inline, Table


def of(folder: Path, first: str, second: str) -> Compared:
    (folder / "a.toml").write_text(first)
    (folder / "b.toml").write_text(second)
    return compare_files(folder / "a.toml", folder / "b.toml")


def rows_of(found: Compared) -> tuple[tuple[Inline, ...], ...]:
    """The rows of the page's table."""
    (table,) = found.describe().blocks
    assert isinstance(table, Table)
    return table.rows


counts = st.integers(1, 10**6)


@settings(max_examples=25, deadline=None)
@given(counts, counts, counts, counts, counts, counts)
def test_the_factors_are_the_quotient(
    tmp_path_factory: pytest.TempPathFactory, tokens: int, other: int, work: int, more: int, devices: int, peak: int
) -> None:
    first = f'tokens_per_second = {tokens}\nflops_per_token = {work}\ndevices = {devices}\npeak = "7T"\n'
    second = f'tokens_per_second = {other}\nflops_per_token = {more}\npeak = "{peak}T"\n'
    found = of(tmp_path_factory.mktemp("setups"), first, second)
    product = Fraction(1)
    for factor, _ in found.factors:
        product *= factor
    a, b = Fraction(tokens * work, devices * 7 * 10**12), Fraction(other * more, peak * 10**12)
    assert product == b / a
    assert found.is_closed


def test_a_claim_that_is_not_the_quotient_leaves_a_remainder(tmp_path: Path) -> None:
    rate = 'device = "A100 SXM4 80GB"\nflops_per_second = "156.0T"\n'
    found = of(tmp_path, f'{rate}claimed = "50.0%"\n', f'{rate}claimed = "40.0%"\n')
    assert not found.is_closed
    content = json.loads(found.data())
    assert content["state"] == "not explained"
    assert Fraction(content["remainder"]["low"]) < Fraction(4, 5) < Fraction(content["remainder"]["high"])


A100, TF32 = 'device = "A100 SXM4 80GB"\n', 'device = "A100 SXM4 80GB"\ndtype = "tf32"\n'


def test_a_thread_without_a_rate_is_a_quotient(tmp_path: Path) -> None:
    """156 of TF32 to 312: no utilisation is made up."""
    found = of(tmp_path, TF32, A100)
    assert ([factor for factor, _ in found.factors], found.is_closed, found.ends) == (
        [Fraction(1, 2)],
        True,
        (None, None),
    )
    assert rows_of(found)[-2] == ("1/2 MFU", "b")
    assert json.loads(found.data())["to"]["mfu"] is None


def test_a_claim_at_one_end_gives_the_other(tmp_path: Path) -> None:
    assert of(tmp_path, f'{TF32}claimed = "50.0%"\n', A100).ends == (Fraction(1, 2), Fraction(1, 4))
    assert of(tmp_path, TF32, f'{A100}claimed = "25.0%"\n').ends == (Fraction(1, 2), Fraction(1, 4))


def test_two_claims_need_no_peak(tmp_path: Path) -> None:
    """tt-metal#50114: a product that was a look-up, 6Vh of 6N + 12LhT."""
    found = of(
        tmp_path, 'claimed = "35%"\nflops_per_token = 7707586560\n', 'claimed = "33.2%"\nflops_per_token = 7314370560\n'
    )
    assert found.is_closed
    assert not of(tmp_path, 'claimed = "35%"\n', 'claimed = "33.2%"\n').is_closed


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('flops_per_second = "1T"\n', "a.toml states no rate, and .*b.toml does"),
        ("flops_per_token = 5\n", "no FLOPs per token"),
    ],
)
def test_what_one_file_states_alone_is_refused(more: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        of(tmp_path, A100, A100 + more)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour = 1\n", "has an unknown key 'colour': the keys are claimed, device"),
        ("devices = 0\n", "has 0 devices"),
        ("devices = true\n", "has True devices"),
        (
            'device = "H100 SXM"\nflops_per_second = "1T"\nclaimed = "430TFLOP/s"\n',
            "beside a peak: write a utilisation, such as 43%",
        ),
        ("device = \n", "setup"),
    ],
)
def test_a_file_that_is_no_setup_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        of(tmp_path, text, text)
