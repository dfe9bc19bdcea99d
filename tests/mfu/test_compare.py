"""Two setups of one run: factors whose product is the quotient of the two utilisations."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.errors import UsageError
from reconcile.mfu.compare import Compared, compared


def of(folder: Path, first: str, second: str) -> Compared:
    (folder / "a.toml").write_text(first)
    (folder / "b.toml").write_text(second)
    return compared(folder / "a.toml", folder / "b.toml")


def test_a_dtype_is_a_factor(tmp_path: Path) -> None:
    rate = 'device = "A100 SXM4 80GB"\nflops_per_second = "100T"\n'
    found = of(tmp_path, f'{rate}dtype = "tf32"\n', rate)
    assert [factor for factor, _ in found.factors] == [Fraction(1, 2)]
    assert found.closed


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
    assert found.closed


def test_a_claim_that_is_not_the_quotient_leaves_a_remainder(tmp_path: Path) -> None:
    rate = 'device = "A100 SXM4 80GB"\nflops_per_second = "156.0T"\n'
    found = of(tmp_path, f'{rate}claimed = "50.0%"\n', f'{rate}claimed = "40.0%"\n')
    assert not found.closed
    assert "unexplained" in found.text()
    content = json.loads(found.data())
    assert content["state"] == "not explained"
    assert Fraction(content["remainder"]["low"]) < Fraction(4, 5) < Fraction(content["remainder"]["high"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour = 1\n", "has an unknown key 'colour': the keys are claimed, device"),
        ("devices = 0\n", "has 0 devices"),
        ("devices = true\n", "has True devices"),
        ('device = "H100 SXM"\n', "no throughput is stated"),
        ('device = "H100 SXM"\nflops_per_second = "1T"\nclaimed = "430TFLOP/s"\n', "write a utilisation, such as 43%"),
        ("device = \n", "setup"),
    ],
)
def test_a_file_that_is_no_setup_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        of(tmp_path, text, text)
