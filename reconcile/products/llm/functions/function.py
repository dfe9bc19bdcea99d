"""Reads a function of one's own that returns the FLOPs of a step, and calls it with what its parameters name."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from ....adapters.counters.formulas.config_fields import FIELDS
from ....core.errors import UsageError, describe_error, short
from ....model_zoo.loading import import_file
from .interpolate import NotPolynomial

NAMES = {
    "config": ("config", "cfg", "hf_config", "model_config"),
    "batch": ("batch", "batch_size", "bs", "gbs", "global_batch_size", "micro_batch_size", "num_sequences"),
    "seq": ("seq", "seq_len", "seqlen", "seq_length", "sequence_length", "max_seq_len", "t"),
    "tokens": ("tokens", "num_tokens", "tokens_sum", "total_tokens"),
}
"""What a parameter of a function gets, by its names. Any other name is that of a field of the configuration."""
FRACTIONS = 8
"""The denominators that a count may have: halves of pairs, quarters of a head."""
DIGITS = 1e-9
"""How far a number of floating point may be from such a fraction, of its size."""


class NoCount(Exception):
    """A function gives no number of FLOPs; the message says why."""


def load_function(text: str) -> Callable[..., Any]:
    """The function that ``package.module:function`` or ``file.py:function`` names. Raises UsageError if there is none."""
    where, _, name = text.rpartition(":")
    if not where or not name.isidentifier():
        raise UsageError(
            f"--formula {short(text)} names no function: write package.module:function or file.py:function."
        )
    try:
        if where.endswith(".py"):
            if not Path(where).is_file():
                raise UsageError(f"--formula {short(text)}: there is no file {short(where)}.")
            with contextlib.redirect_stdout(sys.stderr):
                module = import_file(where, "_reconcile_formula_")
        else:
            module = importlib.import_module(where)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"--formula {short(text)}: {short(where)} cannot be imported: {describe_error(error)}."
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        raise UsageError(f"--formula {short(text)}: {short(where)} has no function {short(name)}.")
    return cast("Callable[..., Any]", found)


def call_function(function: Callable[..., Any], config: Any, batch: int, seq: int, per_token: bool) -> Any:
    """What the function returns for a step of ``batch`` x ``seq`` tokens; per step also where it returns FLOPs per token.

    Raises:
        NoCount: It asks for something that neither the step nor the configuration has, it raises, or it returns no number.
    """
    given = {"config": config, "batch": batch, "seq": seq, "tokens": batch * seq}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            places, names = _list_arguments(function, given)
            value = function(*places, **names)
        value = value.item() if hasattr(value, "item") else value  # a scalar of numpy or of PyTorch
    except NoCount:
        raise
    except (Exception, SystemExit) as error:
        raise NoCount(f"it raised {describe_error(error)}") from error
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        raise NoCount(f"it returns {short(repr(value))}, which is no number of FLOPs")
    if isinstance(value, float) and not math.isfinite(value):
        raise NoCount(f"it returns {value}, which is no number of FLOPs")
    return value * batch * seq if per_token else value


def _list_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, by place and by name: by the names of the parameters; three of unknown names are (config, batch,
    seq)."""
    made: dict[str, Any] = {}
    parameters = [
        p for p in inspect.signature(function).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    required = [p for p in parameters if p.default is p.empty]
    unknown = ""
    for parameter in parameters:
        what = next((what for what, names in NAMES.items() if parameter.name.lower() in names), "")
        aliases = next((names for names in FIELDS.values() if parameter.name in names), (parameter.name,))
        stated = [getattr(given["config"], name) for name in aliases if hasattr(given["config"], name)]
        if what:
            made[parameter.name] = given[what]
        elif stated:
            made[parameter.name] = stated[0]
        elif parameter.default is parameter.empty:
            unknown = unknown or parameter.name
    if unknown and len(required) == 3 and all(p.kind is not p.KEYWORD_ONLY for p in required):
        return [given["config"], given["batch"], given["seq"]], {}
    if unknown:
        raise NoCount(
            f"it takes {unknown!r}, which is neither config, batch, seq or tokens nor a field of the configuration: "
            "write a function around it that takes (config, batch, seq)"
        )
    places = [made.pop(p.name) for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name in made]
    return places, made


def make_exact(value: Any) -> Fraction:
    """A returned number as a fraction of at most ``FRACTIONS`` parts.

    Raises:
        NotPolynomial: A number of floating point is none.
    """
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    exact = Fraction(round(value * FRACTIONS), FRACTIONS)
    if abs(float(exact) - value) > DIGITS * max(abs(value), 1):
        raise NotPolynomial
    return exact
