"""JSON schemas of a saved cell and of an executor's answer: data of another form is refused and never shown on a page.

A number that was edited by hand may still be of this form; one that no longer adds up with those beside it is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from ...core.causes import Cause, State
from ...core.errors import EXIT_CRASHED, EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED, EXIT_USAGE
from ...core.records import FLOP, MAC
from ...core.registry import frameworks
from ...engine.booking import scale
from ...report.reports import FORMATS, TABLE

LARGEST = 10**300
"""No count is larger: a ratio of two such counts is still a number that can be printed."""
SHOWN = 80
"""Characters of a place in a file that a sentence shows."""
REPORTS = (*FORMATS, TABLE)
"""What a model's reports end in: beside the Markdown of many layers lies a table of all."""


class Malformed(Exception):
    """What is wrong, in half a sentence."""


def _record(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _table(values: Mapping[str, Any], keys: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": values,
        **({"propertyNames": {"enum": list(keys)}} if keys else {}),
    }


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string"}
_AMOUNT = {"type": "integer", "minimum": -LARGEST, "maximum": LARGEST}
_COUNT = {"type": "integer", "minimum": 0, "maximum": LARGEST}
_MAYBE = {"type": ["integer", "null"], "minimum": -LARGEST, "maximum": LARGEST}
_WORK = {"type": ["integer", "null"], "minimum": 0, "maximum": LARGEST}
_FRAMEWORK = {"enum": list(frameworks())}
_SETTLED = {
    "state": {"enum": [state.value for state in State]},
    "reason": _TEXT,
    "work": _WORK,
    "residual": _MAYBE,
    "causes": _table(_AMOUNT, tuple(cause.value for cause in Cause)),
}
_TRACE = _record({
    "framework": _FRAMEWORK, "state": _SETTLED["state"], "reason": _TEXT, "work": _WORK, "totals": _table(_COUNT),
    "notes": _list(_TEXT),
}, {"unknown": _table(_COUNT), "unweighed": _table(_COUNT)})  # fmt: skip
_COUNTER = _record({
    "counter": _TEXT, "framework": _FRAMEWORK, "unit": {"enum": [MAC, FLOP]}, "reported": _MAYBE, "normalised": _MAYBE,
    **_SETTLED,
})  # fmt: skip
_BETWEEN = _record({"from": _TEXT, "to": _TEXT, **_SETTLED})
_READING = _record({
    "value": _COUNT, "rank": _COUNT, "unit": {"enum": [MAC, FLOP, ""]}, "what": _TEXT, "how": _TEXT, "note": _TEXT,
    "family": _TEXT,
})  # fmt: skip
_VARIANT = _record({"what": _TEXT, "fused": {"type": "boolean"}, "readings": _list(_READING)})
_REFUSED = _table(_TEXT, ("", *frameworks()))
_SAID = {"refused": _REFUSED, "open": _list(_TEXT)}
_RAN = _record({
    "name": _TEXT, **_SAID, "exit_code": {"enum": [EXIT_OK, EXIT_UNEXPLAINED, EXIT_FAILED]}, "convention": _TEXT,
    "pass": _TEXT, "params": {"type": "object"}, "inputs": _table(_TEXT), "environment": _table(_TEXT),
    "traces": {**_list(_TRACE), "minItems": 1}, "counters": _list(_COUNTER), "between": _list(_BETWEEN),
}, {"readings": _list(_READING), "variants": _list(_VARIANT)})  # fmt: skip
_NOT_RUN = _record({
    "name": _TEXT, "refused": {**_REFUSED, "minProperties": 1}, "open": {"const": []},
    "exit_code": {"enum": [EXIT_USAGE, EXIT_FAILED, EXIT_CRASHED]}, "traces": {"const": []}, "counters": {"const": []},
    "between": {"const": []},
})  # fmt: skip
_OUTCOME = {
    "type": "object",
    "required": ["traces"],
    "if": {"properties": {"traces": {"const": []}}},
    "then": _NOT_RUN,
    "else": _RAN,
}
_COST = _record(
    {}, {"wall_s": {"type": "number", "minimum": 0, "maximum": 1e9}, "peak_bytes": {**_COUNT, "maximum": 1 << 63}}
)
_KEPT = _record({"key": _TEXT, "outcome": _OUTCOME, "cost": _COST, "reports": _list({"enum": list(REPORTS)})})
_ANSWER = _record(
    {"outcome": _OUTCOME, "cost": _COST, "texts": _table(_TEXT, REPORTS), "interrupted": _TEXT}, {"key": _TEXT}
)
_DIED = _record({"died": _TEXT, "log": _TEXT}, {"key": _TEXT})


def parse_json(text: str) -> Any:
    """The data of a JSON text. Raises Malformed where it is none that a sweep writes, however it is damaged."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # also a number of too many digits
        raise Malformed("is not valid JSON") from error


def check_kept(data: Any, name: str) -> None:
    """Raise Malformed for anything but what is kept of the cell of that name."""
    _check("kept", data)
    _adds_up(data["outcome"], name)


def check_answer(data: Any, name: str) -> None:
    """Raise Malformed for anything but an answer to the request for the cell of that name (cell.run_cell)."""
    died = isinstance(data, dict) and "died" in data
    _check("died" if died else "answer", data)
    if not died:
        _adds_up(data["outcome"], name)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


@cache
def _validator(form: str) -> Validator:
    """JSON Schema takes 10.0 for an integer; a count is a Python int here."""
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _checker, value: isinstance(value, int) and not isinstance(value, bool)
    )
    schema = {"kept": _KEPT, "answer": _ANSWER, "died": _DIED}[form]
    made: Validator = extend(Draft202012Validator, type_checker=types)(schema)  # type: ignore[no-untyped-call]
    return made


def _check(form: str, data: Any) -> None:
    try:
        error = next(_validator(form).iter_errors(data), None)
    except RecursionError as deep:
        raise Malformed("is nested too deep") from deep
    if error is not None:
        place = ".".join(map(str, error.absolute_path)) or "its top"
        raise Malformed(f"is damaged at {ascii(place)[1:-1][:SHOWN]}")


def _adds_up(outcome: Mapping[str, Any], name: str) -> None:
    if outcome["name"] != name:
        raise Malformed("is that of another model")
    for one in outcome["counters"]:
        known = [one["normalised"], *one["causes"].values(), one["residual"], one["work"]]
        off = one["residual"] is not None and (None in known or sum(known[:-1]) != one["work"])
        if one["reported"] is not None:
            off = off or one["normalised"] != one["reported"] * scale(one["unit"])
        if off:
            raise Malformed(f"does not add up for {ascii(one['counter'])[1:-1][:SHOWN]}")
