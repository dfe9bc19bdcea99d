"""Turns records into JSON data (``fields_of``, ``plain``) and that into text: ``layout`` puts what fits on one line.

It makes long lists of records while it writes them. To save time, the text that records of a ``Form`` have in common is made
once; only their own values (``OWN_VALUE``) are inserted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

_quote = json.encoder.encode_basestring_ascii
_encode = json.JSONEncoder(allow_nan=False).encode

MAX_LINE_WIDTH = 200
"""Longest line in characters; a value that is longer is split into lines."""

T = TypeVar("T")
RowMaker = Callable[[Callable[[Any], dict[str, Any]], Sequence[Any]], Any]
"""How rows are made of records: ``rows_at_once``, or one by one as they are written (``late_rows``)."""


def rows_at_once(make: Callable[[T], dict[str, Any]], items: Sequence[T]) -> list[Any]:
    """Rows as a list, all made now."""
    return [make(item) for item in items]


OWN_VALUE = object()
"""Placeholder in a row for one of the record's own values."""


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How records with much in common become rows. ``parts`` splits a record into what it has in common with others, hashable,
    and its own values. ``shared`` makes a row of the first part, with ``OWN_VALUE`` as the placeholder of each value of the
    second."""

    parts: Callable[[T], tuple[tuple[Any, ...], Sequence[Any]]]
    shared: Callable[..., dict[str, Any]]

    def __call__(self, record: T) -> dict[str, Any]:
        common, own = self.parts(record)
        values = iter(own)
        row = {key: next(values) if value is OWN_VALUE else value for key, value in self.shared(*common).items()}
        return {key: list(value) if type(value) is LateRows else value for key, value in row.items()}


def make_form(names: str, own: str, **makers: Callable[[Any], Any]) -> Form[Any]:
    """The form of rows with these fields of a record, in this order. Those in ``own`` are its own values; a maker turns the value
    of a field into JSON data."""
    keys = names.split()
    kept = [name for name in keys if name in own.split()]
    common = [name for name in keys if name not in kept]
    read_common, read_own = attrgetter(*common), attrgetter(*kept)
    to_make = [(index, makers[name]) for index, name in enumerate(kept) if name in makers]

    def split_record(record: Any) -> tuple[tuple[Any, ...], Sequence[Any]]:
        values = list(read_own(record))
        for index, make in to_make:
            values[index] = make(values[index])
        return read_common(record), values

    def make_shared(*values: Any) -> dict[str, Any]:
        made = {name: makers[name](x) if name in makers else x for name, x in zip(common, values, strict=True)}
        return {**dict.fromkeys(keys, OWN_VALUE), **made}

    return Form(split_record, make_shared)


class LateRows(Generic[T]):
    """A list of rows, each made of its record when it is written."""

    def __init__(self, make: Callable[[T], dict[str, Any]], items: Sequence[T]) -> None:
        self.make = make
        self.items = items

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.make, self.items)


def late_rows(make: Callable[[T], dict[str, Any]], items: Sequence[T]) -> Any:
    """Rows that are made late if they are too many for a line, else a list."""
    return LateRows(make, items) if len(items) > MAX_LINE_WIDTH else rows_at_once(make, items)


def layout(value: Any) -> str:
    """JSON data as the text of a report."""
    return "".join(_json_pieces(value, 0, {})) + "\n"


def plain(value: object) -> Any:
    """A value in a form that JSON can hold. JSON has no infinity or NaN, so these become the strings 'inf', '-inf', 'nan'."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value)


def fields_of(record: object, names: str) -> dict[str, Any]:
    """These fields of a record as JSON data, each under its own name (``from_`` without its underscore)."""
    return {name.rstrip("_"): plain(getattr(record, name)) for name in names.split()}


def _json_pieces(value: Any, depth: int, moulds: _Moulds) -> Iterator[str]:
    """JSON text in pieces, one per record; a value that does not fit on a line is split into lines."""
    if not _has_rows(value):
        yield _json_text(value, depth, moulds)
        return
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, LateRows):
        before = "[" + pad
        for text in _rows(value, depth + 1, moulds):
            yield before + text
            before = "," + pad
    else:
        before = ("{" if isinstance(value, dict) else "[") + pad
        children = value.items() if isinstance(value, dict) else (("", child) for child in value)
        for key, child in children:
            yield f"{before}{_quote(key)}: " if isinstance(value, dict) else before
            yield from _json_pieces(child, depth + 1, moulds)
            before = "," + pad
    yield "\n" + " " * depth + ("}" if isinstance(value, dict) else "]")


def _json_text(value: Any, depth: int, moulds: _Moulds) -> str:
    """JSON text of a value, from the inside out, so that nothing is written twice; the report itself is always split into lines.
    Text of one line has no newline: a string's are escaped."""
    kind = type(value)
    if kind is str:
        return _quote(value)
    if kind is int:
        return str(value)
    if kind is LateRows and value.items:
        return _lay_parts(list(_rows(value, depth + 1, moulds)), "[]", depth)
    if kind is not dict and kind is not list:
        return "[]" if kind is LateRows else _encode(value)
    if not value:
        return "{}" if kind is dict else "[]"
    if kind is list:
        return _lay_parts([_json_text(child, depth + 1, moulds) for child in value], "[]", depth)
    return _lay_parts(
        [f"{_quote(key)}: {_json_text(child, depth + 1, moulds)}" for key, child in value.items()], "{}", depth
    )


def _lay_parts(parts: list[str], brackets: str, depth: int) -> str:
    """Parts on a line if they fit, else a line each."""
    opening, closing = brackets[0], brackets[1]
    if depth > 0 and not any("\n" in part for part in parts):
        line = f"{opening}{', '.join(parts)}{closing}"
        if len(line) + depth <= MAX_LINE_WIDTH:
            return line
    pad = "\n" + " " * (depth + 1)
    return f"{opening}{pad}{(',' + pad).join(parts)}\n{' ' * depth}{closing}"


def _rows(rows: LateRows[Any], depth: int, moulds: _Moulds) -> Iterator[str]:
    """The texts of the rows, those of a form by what records of one kind have in common."""
    form = rows.make
    if not isinstance(form, Form):
        yield from (_json_text(row, depth, moulds) for row in rows)
        return
    known = moulds.setdefault((id(form), depth), {})
    for record in rows.items:
        common, own = form.parts(record)
        mould = known.get(common)
        if mould is None:
            if len(known) >= MOST_MOULDS:
                known.clear()
            mould = known[common] = _make_mould(form.shared(*common), depth, moulds)
        texts = [_quote(x) if type(x) is str else _json_text(x, depth + 1, moulds) for x in own]
        yield mould.fill(texts, depth)


MOST_MOULDS = 10_000


class _Mould(NamedTuple):
    """The text of a row without its own values, which stand between the pieces: on a line, if it could fit, and in lines."""

    line: tuple[str, ...]
    length: int
    lines: tuple[str, ...]

    def fill(self, own: list[str], depth: int) -> str:
        """The text with these values."""
        pieces = self.lines
        if self.length + sum(map(len, own)) + depth <= MAX_LINE_WIDTH and not any("\n" in text for text in own):
            pieces = self.line
        mixed = [*pieces, *own]
        mixed[::2], mixed[1::2] = pieces, own
        return "".join(mixed)


_Moulds = dict[tuple[int, int], dict[tuple[Any, ...], _Mould]]
"""By the form (which its rows keep) and the depth, what records have in common -> the text of their rows."""


def _make_mould(row: dict[str, Any], depth: int, moulds: _Moulds) -> _Mould:
    texts = [
        (_quote(key), None if value is OWN_VALUE else _json_text(value, depth + 1, moulds))
        for key, value in row.items()
    ]
    pad = "\n" + " " * (depth + 1)
    line, lines = (
        _split_row(texts, *with_) for with_ in (("{", ", ", "}"), (f"{{{pad}", f",{pad}", f"\n{' ' * depth}}}"))
    )
    fits = not any(text is not None and "\n" in text for _, text in texts)
    return _Mould(line, sum(map(len, line)) if fits else MAX_LINE_WIDTH + 1, lines)


def _split_row(texts: list[tuple[str, str | None]], opening: str, comma: str, closing: str) -> tuple[str, ...]:
    """The text of a row, split where its own values are."""
    pieces = [opening]
    for index, (key, text) in enumerate(texts):
        pieces[-1] += f"{comma if index else ''}{key}: {text or ''}"
        if text is None:
            pieces.append("")
    pieces[-1] += closing
    return tuple(pieces)


def _has_rows(value: Any) -> bool:
    """Whether the value contains late rows."""
    if type(value) is dict:
        return any(map(_has_rows, value.values()))
    return any(map(_has_rows, value)) if type(value) is list else type(value) is LateRows
