"""Validation of baseline files: every field is there, has its type and adds up. A file that is not valid is refused.

A number that was edited by hand, in an entry and in the total, is still valid: it shows as a change at its layer, not as damage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

from ..core.causes import State
from ..core.errors import short
from ..core.records import Entry, Ledger, Op, Problem, Sighting, Trace
from ..core.registry import frameworks


class Malformed(Exception):
    """Says what is wrong, and where, in half a sentence."""


WHOLE, COUNT, TEXT, TABLE, LIST, TRUTH = (
    "a whole number", "a whole number of at least 0", "text", "a table", "a list", "true or false",
)  # fmt: skip
TEXTS, VERSIONS, COUNTS = "a list of texts", "a table of texts", "a table of whole numbers of at least 0"
_TYPES: Mapping[str, type] = {
    WHOLE: int, COUNT: int, TEXT: str, TABLE: dict, LIST: list, TRUTH: bool, TEXTS: list, VERSIONS: dict, COUNTS: dict
}  # fmt: skip
_MEMBERS: Mapping[str, str] = {TEXTS: TEXT, VERSIONS: TEXT, COUNTS: COUNT}
_KINDS: Mapping[Any, str] = {
    int: COUNT, str: TEXT, Op: TABLE, bool: TRUTH, tuple[str, ...]: TEXTS, dict[str, str]: VERSIONS, dict[str, int]: COUNTS
}  # fmt: skip

SIZE = 2**63
"""No framework has a dimension of this many elements."""
ELEMENTS = 10**30
"""No tensor has this many; beyond it, products of shapes have more digits than Python prints."""

_TOP = {
    "tool": TEXT, "model": TEXT, "environment": TEXT, "params": TABLE, "layers": LIST, "frameworks": TEXTS,
    "source": TEXT, "versions": VERSIONS, "missing": LIST, "traces": LIST, "ledgers": LIST,
}  # fmt: skip


def _form(record: type) -> dict[str, str]:
    """The fields of a record and their kinds, from its annotations. A number in a record is a count, so it is never negative."""
    kinds = {}
    for name, hint in get_type_hints(record).items():
        plain = (get_origin(hint) or hint)[get_args(hint)] if get_args(hint) else hint
        kinds[name] = _KINDS.get(plain) or {dict: TABLE, tuple: LIST}[get_origin(hint)]
    return kinds


_RECORDS = {"trace": _form(Trace), "ledger": _form(Ledger)}
_DEFAULTS = {"trace": Trace._field_defaults, "ledger": Ledger._field_defaults}
_OP, _ENTRY, _SIGHTING, _PROBLEM = _form(Op), _form(Entry), _form(Sighting), _form(Problem)
_MISSING = {"name": TEXT, "framework": TEXT, "state": TEXT}


def check_baseline(data: Mapping[str, Any], schema: int, records: int) -> None:
    """Raise Malformed for anything but a baseline of this ``schema`` whose records have the format ``records``."""
    _is(data.get("schema"), WHOLE, "schema")
    if data["schema"] != schema:
        raise Malformed(f"schema is {data['schema']}, and no such format exists")
    _fields(data, _TOP, "", extra=("kind", "schema", "training"))
    _is(data.get("training", ""), TEXT, "training")
    for index, layer in enumerate(data["layers"]):
        where = f"layers[{index}]"
        if not isinstance(layer, list) or not 3 <= len(layer) <= 4:
            raise Malformed(f"{where} is not a name with a path for each framework")
        _is(layer[0], TEXT, where)
        others = layer[3] if len(layer) > 3 else {}
        _is(others, TABLE, where)
        for path in [*layer[1:3], *others.values()]:
            for part in path if isinstance(path, list) else [path]:
                _is(part, TEXT, where)
    for index, missing in enumerate(data["missing"]):
        _fields(missing, _MISSING, f"missing[{index}]")
        if missing["state"] not in {s.value for s in State}:
            raise Malformed(f"missing[{index}].state is {short(missing['state'])}")
    for kind in ("trace", "ledger"):
        for index, record in enumerate(data[f"{kind}s"]):
            check_record(record, kind, records, f"{kind}s[{index}]")


def check_record(data: Any, kind: str, schema: int, where: str = "it") -> None:
    """Raise Malformed for anything but a trace or ledger record of this format."""
    _is(data, TABLE, where)
    if data.get("kind") != kind:
        raise Malformed(f"{where} is not a {kind}")
    if data.get("schema") != schema or isinstance(data.get("schema"), bool):
        raise Malformed(f"{where} has record format {short(data.get('schema'))}; this reconcile reads {schema}")
    _fields({**_DEFAULTS[kind], **data}, _RECORDS[kind], where, extra=("kind", "schema"))
    for index, op in enumerate(data.get("ops", ())):
        _op(op, f"{where}.ops[{index}]")
    for index, problem in enumerate(data.get("problems", ())):
        _fields(problem, _PROBLEM, f"{where}.problems[{index}]")
    for index, entry in enumerate(data.get("entries", ())):
        _fields(entry, _ENTRY, f"{where}.entries[{index}]")
    for index, sighting in enumerate(data.get("sightings", ())):
        _fields(sighting, _SIGHTING, f"{where}.sightings[{index}]")
        _op(sighting["op"], f"{where}.sightings[{index}].op")
    if data["framework"] not in frameworks():
        raise Malformed(
            f"{where}.framework is {short(data['framework'])}, which is not one of {', '.join(frameworks())}"
        )
    if kind == "ledger" and data["unit"] not in ("MAC", "FLOP"):
        raise Malformed(f"{where}.unit is {short(data['unit'])}, neither MAC nor FLOP")
    if kind == "ledger" and (held := sum(entry["value"] for entry in data["entries"])) != data["total"]:
        raise Malformed(f"{where}.total is {short(data['total'])}, and its entries add up to {short(held)}")


def _op(data: Any, where: str) -> None:
    _fields(data, _OP, where)
    for name in ("inputs", "outputs"):
        for index, tensor in enumerate(data[name]):
            at = f"{where}.{name}[{index}]"
            if not isinstance(tensor, list) or len(tensor) != 2 or not isinstance(tensor[1], str):
                raise Malformed(f"{at} is not a shape with a dtype")
            if tensor[0] is not None:
                _is(tensor[0], LIST, at)
                _shape(tensor[0], at)


def _shape(sizes: list[Any], where: str) -> None:
    elements = 1
    for size in sizes:
        if size is not None:
            _is(size, COUNT, where)
            elements *= max(size, 1)
            if size >= SIZE or elements >= ELEMENTS:
                raise Malformed(f"{where} is larger than any tensor")


def _fields(data: Any, form: Mapping[str, str], where: str, extra: tuple[str, ...] = ()) -> None:
    _is(data, TABLE, where)
    dot = f"{where}." if where else ""
    for name, kind in form.items():
        if name not in data:
            raise Malformed(f"{dot}{name} is missing")
        _is(data[name], kind, f"{dot}{name}")
    for name in data:
        if name not in form and name not in extra:
            raise Malformed(f"{where or 'it'} has a field {short(name)}, which does not belong there")


def _is(value: Any, kind: str, where: str) -> None:
    fits = isinstance(value, _TYPES[kind])
    if kind in (WHOLE, COUNT):
        fits = fits and not isinstance(value, bool) and (kind == WHOLE or value >= 0)
    if not fits:
        raise Malformed(f"{where} is not {kind}")
    member = _MEMBERS.get(kind)
    if member:
        named = isinstance(value, dict)
        for name, item in value.items() if named else enumerate(value):
            _is(item, member, f"{where}.{name}" if named else f"{where}[{name}]")
