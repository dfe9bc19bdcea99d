"""What functions of one's own count of a configuration's step, each as a Quote: its number, its differences from what ran, and
the residual.

A function is called at other sizes than the user's, and its polynomial follows from that alone. Its number at the user's sizes
enters once: what it differs by from the polynomial there is the residual.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from ....adapters.counters.formulas.config_fields import FIELDS
from ....core.causes import ORDER, Cause
from ....core.errors import UsageError, describe_error
from ....core.number_format import number
from ....core.records import Trace
from ..comparison import Quote
from .differences import Difference, find_differences, find_predictions
from .free_sizes import LETTERS, Sizes, read_sizes
from .function import NoCount, call_function, make_exact
from .interpolate import NotPolynomial, find_polynomial
from .trace_terms import Product, describe_unsized, find_products

VALUES = 24
"""The values of a size at which a function that returns whole numbers may be called."""
FEW = 8
"""Those at which one that returns numbers of floating point may be: more would be too large to be exact."""
MOST_FLOPS = 10**30
"""No step has more."""
NO_POLYNOMIAL = "it is no polynomial of the configuration's sizes: it rounds, reads a table or branches on them"
TakeTrace = Callable[[Mapping[str, Any], int, int], Trace]
"""Traces the model of a configuration's settings, called with a batch of sequences of so many tokens."""


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions that are explained beside the built-in formulas.

    Attributes:
        functions: The functions, by the names that a page shows.
        settings: What stands in the config.json of the model.
        batch: Sequences of the step.
        seq: Tokens of each.
        training: Whether the step is a training step.
        per_token: Whether the functions return FLOPs per token, and not per step.
        take: Traces the model of other settings, with a batch of sequences of so many tokens.
        make_config: The configuration of settings, which a function is given.
    """

    functions: Mapping[str, Callable[..., Any]]
    settings: Mapping[str, Any]
    batch: int
    seq: int
    training: bool
    per_token: bool
    take: TakeTrace
    make_config: Callable[[Mapping[str, Any]], Any]


def explain_functions(asked: Functions, own: Trace) -> list[Quote]:
    """A Quote for each function, beside the trace of the step. Raises UsageError if the model cannot be made at other sizes."""
    sizes, others, unpredicted = _trace_elsewhere(asked)
    names = [size.name for size in sizes.free]
    products = find_products(own, others, names, sizes.own)
    config = asked.make_config(asked.settings)
    layers = next(
        (value for name in FIELDS["L"] if isinstance(value := getattr(_get_text(config), name, None), int)), 0
    )
    quotes = []
    for name, function in asked.functions.items():

        def call(at: Sequence[int], fields: Mapping[str, int], function: Callable[..., Any] = function) -> Fraction:
            varied = asked.make_config(_vary(asked.settings, {**sizes.settings(at), **fields}, at[-1]))
            return make_exact(call_function(function, varied, at[-2], at[-1], asked.per_token))

        try:
            value = call_function(function, config, asked.batch, asked.seq, asked.per_token)
            shown = _read_number(value)
            near = isinstance(value, (int, Fraction))
            points = sizes.near(VALUES) if near else sizes.small(FEW)
            formula, held = find_polynomial(partial(call, fields={}), names, points, sizes.own)
        except (NoCount, NotPolynomial) as error:
            quotes.append(Quote(name, None, {}, None, str(error) or NO_POLYNOMIAL, terms=()))
            continue
        plain = formula
        if unpredicted:
            with suppress(NoCount, NotPolynomial):  # a function may know no model without such layers
                found, also_held = find_polynomial(partial(call, fields=unpredicted), names, points, sizes.own)
                plain = found if also_held == held else formula
        differences = find_differences(plain, products, sizes, layers, asked.training, held)
        if plain is not formula:
            differences = (*find_predictions(formula, plain, sizes), *differences)
        quotes.append(_make_quote(name, shown, products, differences, held))
    return quotes


def refuse_functions(asked: Functions) -> tuple[Quote, ...]:
    """A Quote for each function that has no number for the step; nothing is traced."""
    refused = []
    for name, function in asked.functions.items():
        try:
            config = asked.make_config(asked.settings)
            _read_number(call_function(function, config, asked.batch, asked.seq, asked.per_token))
        except NoCount as error:
            refused.append(Quote(name, None, {}, None, str(error), terms=()))
    return tuple(refused)


def _read_number(value: Any) -> int:
    """A returned number of FLOPs as a whole number. Raises NoCount for one that is far from it, and for none."""
    whole: int = round(value)
    if whole <= 0:
        raise NoCount(f"it returns {whole} FLOPs: it does not know this model")
    if whole > MOST_FLOPS:
        raise NoCount(f"it returns more than {number(MOST_FLOPS)} FLOPs")
    if abs(Fraction(value) - whole) > max(Fraction(1, 1000), Fraction(whole, 10**12)):
        raise NoCount(f"it returns {value!r} FLOPs for the step, which is no whole number")
    return whole


def _make_quote(
    name: str, step: int, products: Sequence[Product], differences: Sequence[Difference], held: Sequence[str]
) -> Quote:
    """The quote of a function that gives ``step`` where these products ran. What no difference leads to is the residual."""
    amounts: dict[Cause, Fraction] = {}
    for each in differences:
        amounts[each.cause] = amounts.get(each.cause, Fraction(0)) + each.amount
    causes = {cause.value: int(amounts[cause]) for cause in sorted(amounts, key=ORDER.__getitem__)}
    lines = [*describe_unsized(products), *(f"{each.cause.value}: {each.text}" for each in differences)]
    if held:
        lines.append(f"its coefficients hold at this {', '.join(held)} alone: it rounds or branches there")
    ran = sum(product.flops for product in products)
    return Quote(name, step, causes, ran - step - sum(causes.values()), terms=tuple(lines))


class _Elsewhere(NamedTuple):
    """The model at other sizes.

    Attributes:
        sizes: The sizes that vary.
        traces: Two traces, each after the values of these sizes.
        unpredicted: The fields of layers that predict further tokens, as 0, if the model has the same layers without them.
    """

    sizes: Sizes
    traces: list[tuple[tuple[int, ...], Trace]]
    unpredicted: Mapping[str, int]


def _trace_elsewhere(asked: Functions) -> _Elsewhere:
    """The model at two points of the sizes that vary. A field of which no model can be made alone keeps its value; if several are
    such, those vary that do beside the ones before them."""
    text = {**_list_defaults(asked), **_text_of(asked.settings)}
    names = tuple(read_sizes(text, asked.batch, asked.seq).fields)
    further = {name: 0 for name in FIELDS["nextn"] if isinstance(text.get(name), int) and text[name]}

    def take(only: frozenset[str], number: int) -> _Elsewhere:
        sizes = read_sizes(text, asked.batch, asked.seq, only)

        def trace(at: Sequence[int], fields: Mapping[str, int]) -> Trace:
            return asked.take(_vary(asked.settings, {**sizes.settings(at), **fields}, at[-1]), at[-2], at[-1])

        first, *rest = sizes.primes(number)
        traces = [(first, trace(first, {})), *((at, trace(at, further)) for at in rest)]
        if further and any(set(each.layers) != set(traces[0][1].layers) for _, each in traces):
            return _Elsewhere(sizes, [traces[0], *((at, trace(at, {})) for at in rest)], {})
        return _Elsewhere(sizes, traces, further)

    for left in (frozenset[str](), *(frozenset({name}) for name in names)):
        with suppress(UsageError):
            return take(frozenset(names) - left, 2)
    varied = frozenset[str]()
    for name in names:
        with suppress(UsageError):
            take(varied | {name}, 1)
            varied |= {name}
    return take(varied, 2)


def _list_defaults(asked: Functions) -> dict[str, int]:
    """The sizes that the settings do not state and that the configuration has all the same, whatever the other sizes are."""
    stated = _text_of(asked.settings)
    sizes = read_sizes(stated, asked.batch, asked.seq)
    varied = _vary(asked.settings, sizes.settings(sizes.primes(1)[0]), asked.seq)
    try:
        first, second = (_get_text(asked.make_config(each)) for each in (asked.settings, varied))
    except NoCount:  # some size cannot vary
        return {}
    names = {name for letter in LETTERS.values() for name in letter if not set(letter) & set(stated)}
    both = {name: (_read_size(first, name), _read_size(second, name)) for name in names}
    return {name: one for name, (one, two) in both.items() if isinstance(one, int) and one == two}


def _read_size(config: Any, name: str) -> Any:
    """The size that a configuration has; None if it has none, or says that each layer has its own."""
    try:
        return getattr(config, name, None)
    except Exception:  # transformers' own
        return None


def _get_text(config: Any) -> Any:
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _text_of(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the language model."""
    inner = settings.get("text_config")
    return inner if isinstance(inner, Mapping) else settings


def _vary(settings: Mapping[str, Any], fields: Mapping[str, int], seq: int) -> dict[str, Any]:
    """The settings with other values in these fields, and no fewer positions than tokens."""
    varied = copy.deepcopy(dict(settings))
    inner = varied.get("text_config")
    text = inner if isinstance(inner, dict) else varied
    text.update(fields)
    text.update({name: max(text[name], seq) for name in FIELDS["positions"] if isinstance(text.get(name), int)})
    return varied


def make_transformers_config(settings: Mapping[str, Any]) -> Any:
    """The configuration of transformers that these settings are."""
    from transformers import AutoConfig

    rest = {name: value for name, value in settings.items() if name not in ("model_type", "auto_map")}
    try:
        return AutoConfig.for_model(str(settings["model_type"]), **rest)
    except Exception as error:
        raise NoCount(f"transformers makes no configuration of other sizes: {describe_error(error)}") from error
