"""The page of ``reconcile formula``, and the polynomials as text, LaTeX, a Python module and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from ...core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED
from ...core.escaping import escape_latex, escape_line
from ...core.number_format import number
from ...core.registry import known_counters
from ...report import reports
from ...report.document import Document, Items, Text, section, tabulate, terminal
from ...report.json_text import fields_of, layout
from .fit import name_point
from .formula import Formula, NotPolynomial
from .polynomial import Polynomial, Powers, format_fraction

SCHEMA = 1
FORMATS = ("json", "txt", "tex", "py")
WIDTH = 120
"""Columns of the text file."""
ANSWERS = {
    EXIT_OK: "Every count is a polynomial.",
    EXIT_UNEXPLAINED: "Not every count is a polynomial, or what it counts is not explained.",
    EXIT_FAILED: "A counter failed.",
}


def stem(formula: Formula) -> str:
    """The name of the files, without what follows the dot."""
    return f"{reports.stem(formula.model, pass_=formula.pass_)}-formula"


def render(formula: Formula, formats: Iterable[str]) -> dict[str, str]:
    """The text of each file, by its format: ``json``, ``txt``, ``tex`` or ``py``."""
    made: Mapping[str, Callable[[Formula], str]] = {"json": _json, "txt": to_text, "tex": _latex, "py": _python}
    return {name: made[name](formula) for name in formats}


def describe_formula(formula: Formula, *, layers: bool = True) -> Document:
    """The page: a row per count, with rows for its layers if requested, and the counts that are not polynomials."""
    rows = []
    for name, counted in formula.polynomials.items():
        rows.append((name, "no polynomial; see below" if counted.total is None else plain(counted.total)))
        rows += [(f"  {layer}", plain(found)) for layer, found in counted.layers.items()] if layers else []
    names = ", ".join(v.name for v in formula.variables)
    return Document(
        f"{formula.model}: FLOPs ({formula.convention}, {formula.pass_}) as polynomials of {names}, for {_ranges(formula)}",
        ANSWERS[formula.exit_code],
        (
            *([tabulate("count|polynomial", rows)] if rows else []),
            *section(f"No polynomials for {_ranges(formula)}", Items(tuple(_list_refused(formula.not_polynomial)))),
            Text(describe_checks(formula), "dim"),
        ),
        formula.exit_code == EXIT_OK,
    )


def to_text(formula: Formula) -> str:
    """The page as text, with every layer."""
    return terminal.to_text(describe_formula(formula), WIDTH)


def describe_checks(formula: Formula) -> str:
    """How the polynomials were found and checked, in a sentence."""
    points = "; ".join(name_point(formula.variables, at) for at in formula.held_out)
    fitted = f"Fitted to the counts at {_points(len(formula.fitted))}, and checked at {formula.checked} that were not fitted to"
    ran, all_ = len(formula.ran), formula.points
    where = f"at all {number(all_)} points of the ranges" if ran >= all_ else (
        f"at {number(ran)} of the {number(all_)} points of the ranges, and nothing is known of the others"
    )  # fmt: skip
    every = len(formula.fitted) + formula.checked
    without = "" if ran <= every else f" The counters ran at {number(every)} of these" + (
        "; at the others, every op in these polynomials ran as often, and with as much work, as its own polynomial predicts."
        if any(name in known_counters() for name in formula.polynomials) else "."
    )  # fmt: skip
    return f"{fitted}, among them {points}. The work that ran was checked {where}.{without}"


def _points(count: int) -> str:
    return "1 point" if count == 1 else f"{count} points"


def _list_refused(refused: Iterable[NotPolynomial]) -> Iterator[str]:
    """A line per layer, op and reason, with all counts there."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for none in refused:
        together.setdefault((none.layer, none.op, none.reason), []).append(none.of)
    for (layer, op, reason), names in together.items():
        where = f"{layer} ({op})" if op else layer or "the total"
        yield f"{where}, in {', '.join(dict.fromkeys(names))}: {reason}"


def _ranges(formula: Formula) -> str:
    ranges = ", ".join(f"{v.name} = {v.text}" for v in formula.variables)
    ran, every = len(formula.ran), formula.points
    return ranges if ran >= every else f"{ranges} ({number(ran)} of these {number(every)} points)"


def plain(polynomial: Polynomial) -> str:
    """A polynomial as text: ``512 B T^2 - 3 T + 1/2``."""
    return _sum(polynomial, lambda name, power: name if power == 1 else f"{name}^{power}", format_fraction, " ")


def _sum(
    polynomial: Polynomial, power_of: Callable[[str, int], str], shown: Callable[[Fraction], str], times: str
) -> str:
    """The terms with their signs; a coefficient of 1 is shown only if nothing follows it."""
    parts: list[str] = []
    for powers, coefficient in polynomial.terms_in_order:
        factors = [power_of(name, power) for name, power in zip(polynomial.variables, powers, strict=True) if power]
        size = abs(coefficient)
        term = times.join([*([shown(size)] if size != 1 or not factors else []), *factors])
        sign = "-" if coefficient < 0 else "+"
        parts.append(f" {sign} {term}" if parts else term if coefficient > 0 else f"-{term}")
    return "".join(parts) or "0"


def _latex(formula: Formula) -> str:
    head = f"{formula.model}: FLOPs ({formula.convention}, {formula.pass_}), for {_ranges(formula)}."
    lines = [
        *(f"% {escape_line(text)}" for text in (head, describe_checks(formula))),
        *_align_rows((n, p.total) for n, p in formula.polynomials.items() if p.total),
    ]
    for name, counted in formula.polynomials.items():
        if counted.layers:
            lines += [f"% layers of {escape_line(name)}", *_align_rows(counted.layers.items())]
    return "\n".join(lines) + "\n"


def _align_rows(rows: Iterable[tuple[str, Polynomial]]) -> list[str]:
    equations = [f"  \\text{{{escape_latex(name)}}} &= {_typeset(p)}" for name, p in rows]
    return [r"\begin{align*}", " \\\\\n".join(equations), r"\end{align*}"] if equations else []


def _typeset(polynomial: Polynomial) -> str:
    def power_of(name: str, power: int) -> str:
        letter = name if len(name) == 1 else f"\\mathit{{{escape_latex(name)}}}"
        return letter if power == 1 else f"{letter}^{{{power}}}"

    def show_value(value: Fraction) -> str:
        top, bottom = (number(n).replace(",", "{,}") for n in (value.numerator, value.denominator))
        return top if value.denominator == 1 else f"\\frac{{{top}}}{{{bottom}}}"

    return _sum(polynomial, power_of, show_value, r"\,")


def _python(formula: Formula) -> str:
    names = ", ".join(v.name for v in formula.variables)
    about = f"FLOPs of {formula.model} ({formula.convention}, {formula.pass_}), for {_ranges(formula)}."
    totals = {name: p.total for name, p in formula.polynomials.items() if p.total is not None}
    lines = [
        _docstring_of(f"{about}\n\n{describe_checks(formula)}\n"), "", "",
        f"def total({names}):", f"    {_docstring_of('The total of what ran, of each counter and of each cause.')}",
        "    return {", *_entries(totals, 8), "    }", "", "",
        f"def layers({names}):", f"    {_docstring_of('The same by layer; a layer that counts 0 is left out.')}", "    return {",
    ]  # fmt: skip
    for name, counted in formula.polynomials.items():
        lines += [f"        {json.dumps(name)}: {{", *_entries(counted.layers, 12), "        },"]
    return "\n".join([*lines, "    }"]) + "\n"


def _docstring_of(sentence: str) -> str:
    escaped = sentence.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{escaped}"""'


def _entries(polynomials: Mapping[str, Polynomial], indent: int) -> list[str]:
    return [f"{' ' * indent}{json.dumps(name)}: {code(p)}," for name, p in polynomials.items()]


def code(polynomial: Polynomial) -> str:
    """A Python expression in whole numbers: rational coefficients share a denominator, which divides the sum."""
    below = polynomial.denominator
    whole = Polynomial(polynomial.variables, {powers: c * below for powers, c in polynomial.terms.items()})
    summed = _sum(whole, lambda name, power: name if power == 1 else f"{name}**{power}", str, " * ")
    return summed if below == 1 else f"({summed}) // {below}"


def _json(formula: Formula) -> str:
    names = [v.name for v in formula.variables]
    data = {
        "schema": SCHEMA,
        "model": formula.model,
        "convention": formula.convention,
        "pass": formula.pass_,
        "ranges": {v.name: v.text for v in formula.variables},
        "variables": {name: sorted({at[i] for at in formula.fitted}) for i, name in enumerate(names)},
        "held_out": [dict(zip(names, at, strict=True)) for at in formula.held_out],
        "points": formula.points,
        "ran": [dict(zip(names, at, strict=True)) for at in formula.ran],
        "polynomials": {
            name: {
                "total": None if counted.total is None else _terms(counted.total),
                "layers": {layer: _terms(found) for layer, found in counted.layers.items()},
            }
            for name, counted in formula.polynomials.items()
        },
        "not_polynomial": [fields_of(none, "of layer op reason") for none in formula.not_polynomial],
    }
    return layout(data)


def _terms(polynomial: Polynomial) -> list[dict[str, object]]:
    def powers_of(powers: Powers) -> dict[str, int]:
        return {name: power for name, power in zip(polynomial.variables, powers, strict=True) if power}

    return [{"coefficient": str(c), "powers": powers_of(powers)} for powers, c in polynomial.terms_in_order]
