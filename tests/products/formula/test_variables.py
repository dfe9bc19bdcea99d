"""What --at, --input and --set say of the sizes that vary; what cannot be read is one sentence."""

from __future__ import annotations

import itertools

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.formula.variables import HELD_OUT, Template, held_out, nodes, read_variables, texts_of


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("T=3..6", [3, 4, 5, 6]),
        ("T=32..128/32", [32, 64, 96, 128]),
        ("T=64,16,32,16", [16, 32, 64]),
        (" T = 1 .. 3 ", [1, 2, 3]),
    ],
)
def test_a_range_and_a_list_are_their_sizes(text: str, values: list[int]) -> None:
    (variable,) = read_variables([text])
    assert (variable.name, list(variable.values)) == ("T", values)


def test_a_huge_range_takes_no_memory() -> None:
    (variable,) = read_variables([f"T=1..{2**60}"])
    assert nodes([variable]) == ((1, 2, 3, 4, 5, 6),)
    assert held_out([variable], [])[0] == (2**60,)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([], "name a size that varies"),
        (["T"], "it has no ="),
        (["T=1..9", "T=1..9"], "gives 'T' twice"),
        (["2T=1..9"], "'2T' is not a name"),
        (["T=a..9"], "'a' is not a size"),
        (["T=1..9/0"], "'0' is not a size"),
        (["T=1..2"], "it has 2 sizes"),
        (["T=1,2,"], "'' is not a size"),
    ],
)
def test_a_range_that_cannot_be_read_is_refused(texts: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_variables(texts)


def test_names_stand_for_sizes_of_inputs_and_for_parameters() -> None:
    variables = read_variables(["B=1..9", "T=16..96"])
    at = Template(variables, ("ids=B,T:int64", "T"), {"units": "T", "bins": "8"}).point((2, 40))
    assert [tuple(given) for given in at.inputs] == [("ids", (2, 40), "int64"), ("", (40,), "")]
    assert at.overrides == {"units": "40", "bins": "8"}


def test_a_scalar_stays_one() -> None:
    at = Template(read_variables(["B=1..9"]), ("x=B,3", "()"), {}).point((4,))
    assert [given.shape for given in at.inputs] == [(4, 3), ()]


@pytest.mark.parametrize(
    ("inputs", "overrides", "says"),
    [
        (("ids=B,T:int64",), {}, "T has no sizes; give them with --at T=LO..HI"),
        (("ids=1,16",), {}, "neither --input nor --set uses B"),
        (("ids=B,4:int63",), {}, "'int63' is not one of"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(inputs: tuple[str, ...], overrides: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Template(read_variables(["B=1..9"]), inputs, overrides)


@pytest.mark.parametrize("ranges", [["T=1..9"], ["B=1..3", "T=16..96"], ["B=1..3", "T=1..3", "H=1..3"]])
def test_points_that_are_held_out_are_no_fitted_ones(ranges: list[str]) -> None:
    variables = read_variables(ranges)
    fitted = set(itertools.product(*(list(v.values)[:2] for v in variables)))
    outside = held_out(variables, fitted)
    assert len(set(outside)) == HELD_OUT
    assert set(outside) & fitted == set()
    assert outside[0] == tuple(v.values[-1] for v in variables)
    assert [at for at in outside if any(x not in v.values for x, v in zip(at, variables, strict=True))] == []


def test_ranges_that_leave_nothing_to_check_with_are_refused() -> None:
    variables = read_variables(["B=1..3", "T=1..3"])
    with pytest.raises(UsageError, match="leaves fewer than 3 to check it with"):
        held_out(variables, set(itertools.product((1, 2, 3), (1, 2, 3))))
    with pytest.raises(UsageError, match="give at least 5"):
        nodes(read_variables(["T=1..4"]))


def test_a_range_of_python_is_the_same_words() -> None:
    ranges = {"A": range(1, 6), "B": range(32, 257, 32), "C": (16, 64, 32), "D": "1..9", "E": range(4, 4)}
    assert texts_of(ranges) == ("A=1..5", "B=32..256/32", "C=16,64,32", "D=1..9", "E=")
