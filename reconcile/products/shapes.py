"""Shapes of JSON data from outside, declared or a dataclass's: refuses other data, naming the place, makes the dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from ..core.errors import UsageError, brief
from ..core.user_files import read_json

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Schema = Mapping[str, Any]
LARGEST = 10**300
"""No count is larger: a ratio of two such counts is still a number that can be printed."""
SHOWN = 120
"""Characters of a place, and of what is wrong there, that a sentence shows."""

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
AMOUNT: Schema = {"type": "integer", "minimum": -LARGEST, "maximum": LARGEST}
COUNT: Schema = {**AMOUNT, "minimum": 0}


def or_null(schema: Schema) -> Schema:
    """The shape of data that are null, or have this shape."""
    return {**schema, "type": [schema["type"], "null"]}


def record(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    """The shape of a table with these fields; others are not looked at."""
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def table(values: Schema) -> Schema:
    """The shape of a table of such values, by any keys."""
    return {"type": "object", "additionalProperties": values}


def list_of(items: Schema) -> Schema:
    """The shape of a list of such items."""
    return {"type": "array", "items": items}


PLAIN: Mapping[Any, Schema] = {
    str: TEXT, bool: FLAG, int: AMOUNT, float: {"type": "number"}, type(None): {"type": "null"},
    object: {"type": ["boolean", "number", "string"]},
}  # fmt: skip
"""The shapes of the types that are written as they are; an object is one of these."""


hints_of: Any = cache(get_type_hints)
"""The types of the fields of a dataclass."""


def schema_of(kind: Any) -> Schema:
    """The shape in JSON of a dataclass, or of a type in its annotations."""
    inside = get_args(kind)
    if is_dataclass(kind):
        needed = [one.name for one in fields(kind) if one.default is one.default_factory is MISSING]
        made = record({name: schema_of(hint) for name, hint in hints_of(kind).items()})
        return {**made, "required": needed, "additionalProperties": False}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if not inside:
        return PLAIN[kind]
    if get_origin(kind) is tuple:
        return list_of(schema_of(inside[0]))
    return table(schema_of(inside[1])) if get_origin(kind) is Mapping else {"anyOf": [*map(schema_of, inside)]}


def make(kind: Any, data: Any) -> Any:
    """Build a value of this dataclass, enum or annotated type from JSON data of its shape."""
    inside = get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return kind(**{name: make(hints_of(kind)[name], value) for name, value in data.items()})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if get_origin(kind) is tuple:
        return tuple(make(inside[0], value) for value in data)
    return {name: make(inside[1], value) for name, value in data.items()} if get_origin(kind) is Mapping else data


class Shape:
    """A shape that data are held to.

    Args:
        schema: What they have to be, as JSON Schema.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @cached_property
    def _validator(self) -> Validator:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend

        # JSON Schema takes 10.0 for an integer; a count is a Python int here.
        types = Draft202012Validator.TYPE_CHECKER.redefine(
            "integer", lambda _checker, value: isinstance(value, int) and not isinstance(value, bool)
        )
        made: Validator = extend(Draft202012Validator, type_checker=types)(self.schema)  # type: ignore[no-untyped-call]
        return made

    def find_fault(self, data: Any) -> str:
        """The first place where data are of another shape, and what is wrong there; '' if they are of this shape."""
        error = next(self._validator.iter_errors(data), None)
        if error is None:
            return ""
        place = ".".join(map(str, error.absolute_path)) or "its top"
        return ": ".join(ascii(text)[1:-1][:SHOWN] for text in (place, error.message))

    def read(self, path: Path, label: str, remedy: str) -> Any:
        """The data in a JSON file, which ``label`` names in messages. Raises UsageError, which ends with the ``remedy``, for a
        file that cannot be read, and for data of another shape."""
        data = read_json(path, label, remedy)
        fault = self.find_fault(data)
        if fault:
            raise UsageError(f"{label} {brief(path)} is damaged at {fault}. {remedy}")
        return data
