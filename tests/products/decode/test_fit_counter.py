"""Exact readings of an unknown counter, on cases made by hand."""

from __future__ import annotations

from fractions import Fraction

from reconcile.products.decode.fit_counter import Case, Reading, draft

NAMES = ("mac", "add", "output")
LAYERS = (
    {"mac": 70, "add": 10, "output": 10},
    {"mac": 240, "add": 40, "output": 40},
    {"mac": 240, "add": 0, "output": 40},
    {"mac": 720, "add": 0, "output": 144},
)


def cases(value):
    return [Case(f"case{i}", sizes, value(sizes, i)) for i, sizes in enumerate(LAYERS)]


def terms(made):
    return [dict(reading.terms) for reading in made.readings]


def test_a_sum_is_read_with_coefficients_and_one_case_held_out() -> None:
    made = draft("Linear", cases(lambda sizes, _: 2 * sizes["mac"] + sizes["add"]), NAMES)
    assert terms(made) == [{"mac": 2, "add": 1}]
    assert made.cases == ("case0", "case1", "case2")
    assert made.held_out == "case3"


def test_half_of_a_quantity_is_read_and_no_other_fraction() -> None:
    assert terms(draft("x", cases(lambda sizes, _: sizes["mac"] // 2), NAMES)) == [{"mac": Fraction(1, 2)}]
    assert terms(draft("x", cases(lambda sizes, _: sizes["mac"] // 5), NAMES)) == []


def test_nothing_counted_is_a_reading_without_terms() -> None:
    assert draft("x", cases(lambda *_: 0), NAMES).readings == (Reading(()),)


def test_every_reading_that_fits_is_given_the_simplest_first() -> None:
    layers = [{"a": 6 * n, "b": 2 * n, "c": n * n} for n in (1, 2, 3)]
    made = draft("x", [Case(str(i), sizes, sizes["b"] + sizes["c"]) for i, sizes in enumerate(layers)], ("a", "b", "c"))
    assert terms(made) == [{"b": 1, "c": 1}]  # a third of a is no coefficient that a formula has
    made = draft(
        "x",
        [Case(str(i), sizes, 6 * i * i) for i, sizes in enumerate(({"a": 1, "b": 2}, {"a": 9, "b": 3}))],
        ("a", "b"),
    )
    assert terms(made) == []
    layers = [{"a": 2 * n, "b": n, "c": 7 + n} for n in (1, 2, 3)]
    made = draft("x", [Case(str(i), sizes, 4 * sizes["b"]) for i, sizes in enumerate(layers)], ("a", "b", "c"))
    assert terms(made) == [{"a": 2}, {"b": 4}]


def test_noise_has_no_reading() -> None:
    noise = (100_003, 7, 5_000_011, 31_337)
    made = draft("x", cases(lambda _, i: noise[i]), NAMES)
    assert (made.reading, made.reason) == (None, "no reading fits")


def test_multiples_of_one_layer_confirm_nothing() -> None:
    doubled = [Case(str(n), {"mac": 70 * n, "add": 10 * n, "output": 10 * n}, 70 * n) for n in (1, 2)]
    assert draft("x", doubled, NAMES).reason == "layers that are alike confirm nothing"


def test_a_held_out_case_that_disagrees_refutes_a_reading() -> None:
    values = (70, 240, 240, 721)
    assert draft("x", cases(lambda _, i: values[i]), ("mac",)).reading is None
