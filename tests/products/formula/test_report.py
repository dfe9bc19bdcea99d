"""Symbolic counts as text, LaTeX, Python and JSON say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

from reconcile.products.formula.formula import Formula, NotPolynomial, Polynomials
from reconcile.products.formula.polynomial import Polynomial
from reconcile.products.formula.report import (
    code,
    plain,
    render,
    stem,
)
from reconcile.products.formula.variables import read_variables

TRIANGLE = Polynomial(("B", "T"), {(1, 2): Fraction(1, 2), (1, 1): Fraction(-3, 4), (0, 0): Fraction(12345)})
ONE = Polynomial(("B", "T"), {(1, 0): Fraction(-1)})
ZERO = Polynomial(("B", "T"), {})
FORMULA = Formula(
    model="net",
    pass_="forward",
    convention="matmul",
    variables=read_variables(["B=1..3", "T=16..96"]),
    fitted=((1, 16), (2, 16)),
    held_out=((3, 96), (2, 69), (1, 49)),
    checked=5,
    polynomials={
        "trace@torch": Polynomials(TRIANGLE, {'a_b"c': ONE}),
        "thop": Polynomials(ZERO, {}),
        "fvcore": Polynomials(None, {"head": ONE}),
    },
    not_polynomial=(NotPolynomial("fvcore", "conv", "aten.convolution", "it repeats"),),
    exit_code=1,
)


def test_a_term_shows_what_it_has() -> None:
    assert plain(TRIANGLE) == "1/2 B T^2 - 3/4 B T + 12,345"
    assert plain(ONE) == "-B"
    assert plain(ZERO) == "0"


def test_python_computes_the_same_in_whole_numbers() -> None:
    points = [(4 * b, t) for b in range(3) for t in (0, 1, 17)]
    wrong = [(b, t) for b, t in points if eval(code(TRIANGLE), {"B": b, "T": t}) != TRIANGLE.at((b, t))]
    assert wrong == []
    assert type(eval(code(TRIANGLE), {"B": 4, "T": 3})) is int


def test_the_module_runs_and_keeps_every_name() -> None:
    module: dict[str, object] = {}
    exec(render(FORMULA, ["py"])["py"], module)
    total, layers = module["total"], module["layers"]
    assert callable(total)
    assert callable(layers)
    assert total(4, 2) == {"trace@torch": 8 - 6 + 12345, "thop": 0}
    assert layers(4, 2) == {"trace@torch": {'a_b"c': -4}, "thop": {}, "fvcore": {"head": -4}}


def test_json_has_exact_fractions() -> None:
    data = json.loads(render(FORMULA, ["json"])["json"])
    assert data["polynomials"]["trace@torch"] == {
        "total": [
            {"coefficient": "1/2", "powers": {"B": 1, "T": 2}},
            {"coefficient": "-3/4", "powers": {"B": 1, "T": 1}},
            {"coefficient": "12345", "powers": {}},
        ],
        "layers": {'a_b"c': [{"coefficient": "-1", "powers": {"B": 1}}]},
    }
    assert data["polynomials"]["thop"] == {"total": [], "layers": {}}
    assert data["polynomials"]["fvcore"]["total"] is None
    assert data["not_polynomial"] == [
        {"of": "fvcore", "layer": "conv", "op": "aten.convolution", "reason": "it repeats"}
    ]
    assert data["variables"] == {"B": [1, 2], "T": [16]}
    assert data["held_out"] == [{"B": 3, "T": 96}, {"B": 2, "T": 69}, {"B": 1, "T": 49}]


def test_latex_escapes_names_and_typesets_fractions() -> None:
    written = render(FORMULA, ["tex"])["tex"]
    assert r"\text{trace@torch} &= \frac{1}{2}\,B\,T^{2} - \frac{3}{4}\,B\,T + 12{,}345 \\" in written
    assert r'\text{a\_b"c} &= -B' in written


def test_no_name_is_a_command_to_a_terminal() -> None:
    written = render(replace(FORMULA, model="\x1b[31m\u202e\nnet"), ["tex", "txt"])
    assert {name for name, text in written.items() if set("\x1b\u202e") & set(text)} == set()
    assert [line[:1] for line in written["tex"].splitlines()[:2]] == ["%", "%"]


def test_a_training_step_does_not_replace_the_files_of_a_call() -> None:
    assert (stem(FORMULA), stem(replace(FORMULA, pass_="training"))) == ("net-formula", "net-training-formula")
