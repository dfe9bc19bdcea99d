"""Conventions of users: weights by which no work comes to less than nothing, and a sentence for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.conventions import load_conventions
from reconcile.core.errors import UsageError
from reconcile.work import COMPONENTS, Work
from reconcile.work.contraction import dots


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "weights.toml"


def test_weights_as_they_are_meant(file: Path) -> None:
    file.write_text('[mine]\nmac = 2\naccumulators = -2\nspecial = 1_000_000_000\nmeaning = "K - 1 of each"\n')
    mine = load_conventions(file)["mine"]
    assert [mine.flops(dots(5, k)) for k in (1, 2, 9)] == [0, 10, 80]
    assert mine.flops(Work(special=3)) == 3 * 10**9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((f"[mine]\n{name} = -1\n", f"{name} must be 0 or more, not -1") for name in COMPONENTS if name != "accumulators"),
        ("[mine]\naccumulators = -1\n", "accumulators must be at least 0, not -1"),
        ("[mine]\nmac = 2\naccumulators = -3\n", "accumulators must be at least -2, not -3"),
        ("[mine]\nmac = true\n", "mac must be an integer weight, not True"),
        ("[mine]\nmac = 2.0\n", "mac must be an integer weight, not 2.0"),
        ("[mine]\nmac = nan\n", "mac must be an integer weight, not nan"),
        ("[mine]\nmac = 1_000_000_001\n", "mac must be a weight of at most 1,000,000,000"),
        (f"[mine]\nmac = {'9' * 5000}\n", "is not valid TOML: a number has more than 100 digits."),
        ("[mine]\nmeaning = 5\n", "meaning must be text, not 5"),
        (f"[mine]\nmac = {'[' * 5000}{']' * 5000}\n", "is not valid TOML: lists and tables are nested more than 64 levels deep"),
        (f"[{'.'.join('a' * 1100)}]\nmac = 2\n", "is not valid TOML: lists and tables are nested more than 64 levels deep"),
        (f"[mine]\nmac = [{'1, ' * 5000}]\n", "mac must be an integer weight, not [1, 1,"),
        ("[mine]\nmac = 1\nmac = 2\n", "is not valid TOML: "),
        ('["a\\nb"]\nmac = 2\n', "a name must have 1 to 100 printable characters"),
        ('[" "]\nmac = 2\n', "a name must have 1 to 100 printable characters"),
        (f"[{'a' * 101}]\nmac = 2\n", "a name must have 1 to 100 printable characters"),
        ("mine = 2\n", "expected a table such as"),
        ("[all]\nmac = 2\n", "this name is built in"),
        ("[mine]\nmacs = 2\n", "Did you mean 'mac'?"),
    ],
)  # fmt: skip
def test_what_is_no_convention_is_refused(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        load_conventions(file)
    assert said in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400 + len(str(file))


def test_a_byte_order_mark_is_no_fault(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf[mine]\r\nmac = 2\r\n")
    assert load_conventions(file)["mine"].mac == 2


def test_a_file_that_is_no_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe[\0")
    with pytest.raises(UsageError, match=r"the convention file .* is not text in UTF-8\.$"):
        load_conventions(file)


def test_whatever_is_read_makes_no_product_less_than_nothing(file: Path) -> None:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-2, 5), st.integers(0, 9), st.integers(1, 9))
    def check(mac: int, accumulators: int, add: int, count: int, k: int) -> None:
        file.write_text(f"[mine]\nmac = {mac}\naccumulators = {accumulators}\nadd = {add}\n")
        try:
            mine = load_conventions(file)["mine"]
        except UsageError:
            assert mac < 0 or add < 0 or mac + accumulators < 0
        else:
            assert mine.flops(dots(count, k) + Work(add=count)) >= 0

    check()
