"""Reader of the outermost fields of a protobuf message, by which kinds.py tells the kinds of model files apart.

It reads the wire format alone (protobuf.dev/programming-guides/encoding), without parsing the message; this also detects one that
is cut short.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

FIELDS = 2_000_000
"""The most fields that are read: a graph has one per node."""

Field = tuple[int, int, int, int]
"""Number, wire type, and the offsets where its value starts and ends."""


class NotWire(Exception):
    """Raised where the bytes are not a protobuf message."""


class Truncated(Exception):
    """A field continues past the end; the message says where."""


@contextmanager
def map_file(path: Path) -> Iterator[mmap.mmap]:
    """The file's bytes, memory-mapped: only the bytes that are used are read."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def fields(data: mmap.mmap, start: int, end: int) -> list[Field]:
    """The outermost fields between two offsets. Raises NotWire or Truncated."""
    results: list[Field] = []
    at = start
    while at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 1 << 29 or len(results) > FIELDS:
            raise NotWire
        if kind == BYTES:
            length, at = _varint(data, at, end)
        elif kind == VARINT:
            length = _varint(data, at, end)[1] - at
        elif kind in (FIXED32, FIXED64):
            length = 4 if kind == FIXED32 else 8
        else:
            raise NotWire
        if at + length > end:
            if not results and number > 20:
                raise NotWire
            raise Truncated(f"a part of {length:,} bytes starts {end - at:,} bytes before its end")
        results.append((number, kind, at, at + length))
        at += length
    return results


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise Truncated("it ends in the middle of a number")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise NotWire
