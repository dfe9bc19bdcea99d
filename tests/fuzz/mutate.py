"""Mutations of bytes, of trees (JSON) and of protobuf messages, from a ``random.Random`` alone: the same seed, the same input.

No coverage guides them. atheris (libFuzzer) would, but it has no wheel for every Python that reconcile supports and takes the
process over, pytest's and hypothesis' parts in it included; the formats here are known, so mutations of their structure
reach what coverage would have to find.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, -(2**63))

RAW = (
    "NaN", "Infinity", "-Infinity", "1e999", "-0", "-0.0", "2.5", "1e3", "9" * 5000, "-" + "9" * 400, "1" + "0" * 80,
    "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, '"\\ud800"', '"\\u0000"', '"\\u001b]0;t\\u0007"',
    '"' + "x" * 3000 + '"',
)  # fmt: skip
"""JSON that no Python value gives: what is larger, deeper or odder than most readers expect."""

JUNK = (
    None, True, False, 0, 1, -1, 2.5, 2**63, -(2**63), 10**30, "", "x", "../../escaped", "=1+1", [], {}, [[]], [None],
)  # fmt: skip


def words(text: str) -> list[str]:
    """The words of a text: how a long list of them is written."""
    return text.split()


def some(rng: Random, most: int = 8) -> range:
    """How many mutations to make: often one, seldom many."""
    return range(1 + min(most - 1, int(rng.expovariate(0.8))))


def blob(rng: Random, data: bytes, words: Sequence[bytes] = ()) -> bytes:
    """Bytes with a few of them changed, moved, cut out, or replaced by one of these words."""
    found = bytearray(data)
    for _ in some(rng):
        at, size = rng.randrange(len(found) + 1), 1 << rng.randrange(8)
        kind = rng.randrange(7)
        if kind == 0 and found:
            found[at % len(found)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            found[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 2:
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice(NUMBERS) & ((1 << 8 * width) - 1)
            found[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
        elif kind == 3:
            del found[at : at + size]
        elif kind == 4:
            found[at:at] = found[at : at + size] * rng.choice((1, 1, 2, 50))
        elif kind == 5:
            start = rng.randrange(len(found) + 1)
            found[at:at] = found[start : start + size]
        elif words:
            word = rng.choice(words)
            found[at : at + rng.choice((0, len(word)))] = word
    return bytes(found)


def text(rng: Random, base: str, words: Sequence[str] = ()) -> str:
    """Text with a few of its lines or parts changed."""
    lines = base.split("\n")
    for _ in some(rng, 5):
        at = rng.randrange(len(lines))
        kind = rng.randrange(6)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, rng.choice(lines))
        elif kind == 2:
            lines[at] = blob(rng, lines[at].encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
        elif words:
            before = lines[at].split(" ")
            before[rng.randrange(len(before))] = rng.choice(words)
            lines[at] = " ".join(before)
    return "\n".join(lines)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a tree of dicts and lists that holds something: (container, key)."""
    found, pending = [], [value]
    while pending:
        item = pending.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            found.append((item, key))
            pending.append(item[key])
    return found


def tree(rng: Random, value: Any, words: Sequence[Any] = (), raw: bool = True) -> str:
    """JSON text of a tree with a few of its members replaced, renamed, moved, doubled or taken away."""
    made, parts = copy.deepcopy(value), []
    for _ in some(rng, 5):
        there = places(made)
        if not there:
            break
        holder, key = rng.choice(there)
        kind = rng.randrange(8)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            other, place = rng.choice(there)
            holder[key] = copy.deepcopy(other[place])
        elif kind == 2 and isinstance(holder, list):
            holder += [copy.deepcopy(holder[key])] * rng.choice((1, 2, 30))
        elif kind == 3 and isinstance(holder, dict):
            holder[str(rng.choice((*JUNK, *words)))] = holder.pop(key)
        elif kind == 4:
            holder[key] = rng.choice(([holder[key]], {"a": holder[key]}, str(holder[key])))
        elif kind == 5 and raw:
            parts.append(rng.choice(RAW))
            holder[key] = f"@raw{len(parts) - 1}@"
        elif kind == 6 and isinstance(holder[key], (int, float)):
            holder[key] = rng.choice((-holder[key], holder[key] + 1, holder[key] * 2**62, holder[key] / 2, 0))
        else:
            holder[key] = copy.deepcopy(rng.choice((*JUNK, *words)))
    said = json.dumps(made)
    for index, part in enumerate(parts):
        said = said.replace(f'"@raw{index}@"', part)
    return said


def _messages(message: Any) -> list[Any]:
    """A message and all in it."""
    found, pending = [], [message]
    while pending:
        item = pending.pop()
        found.append(item)
        for field, value in item.ListFields():
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                pending += [v for v in value.values() if hasattr(v, "ListFields")]
            else:
                pending += [value] if hasattr(value, "ListFields") else list(value)
    return found


def message(
    rng: Random, base: Any, words: Sequence[Any] = (), more: Callable[[Random, Any], None] | None = None
) -> Any:
    """A copy of a protobuf message with a few fields changed, doubled, exchanged or cleared, at any depth.

    ``words`` are texts and numbers that mean something there; ``more`` is a mutation that the format's own fuzzer adds.
    """
    made = type(base)()
    made.CopyFrom(base)
    for _ in some(rng, 6):
        if more is not None and rng.random() < 0.4:
            more(rng, made)
            continue
        there = _messages(made)
        item = rng.choice(there)
        fields = list(item.DESCRIPTOR.fields)
        if not fields:
            continue
        field = rng.choice([f for f, _ in item.ListFields()] or fields) if rng.random() < 0.7 else rng.choice(fields)
        try:
            _change(rng, item, field, there, words)
        except (ValueError, TypeError, UnicodeEncodeError, OverflowError):
            continue  # the value does not go there
    return made


def _change(rng: Random, item: Any, field: Any, there: Sequence[Any], words: Sequence[Any]) -> None:
    value = getattr(item, field.name)
    nested = field.message_type is not None
    if rng.random() < 0.15:
        item.ClearField(field.name)
    elif nested and field.message_type.GetOptions().map_entry:
        key = rng.choice(list(value) or ["x"])
        same = [m for m in there if hasattr(value[key], "DESCRIPTOR") and m.DESCRIPTOR is value[key].DESCRIPTOR]
        if same:
            _copy(rng.choice(same), value[key])
    elif nested:
        same = [m for m in there if m.DESCRIPTOR is field.message_type and m is not item]
        into = value.add() if hasattr(value, "add") and rng.random() < 0.5 else value
        into = rng.choice(value) if into is value and hasattr(value, "add") and len(value) else into
        if same and hasattr(into, "CopyFrom"):
            _copy(rng.choice(same), into)
    elif hasattr(value, "append"):
        if len(value) and rng.random() < 0.5:
            value[rng.randrange(len(value))] = _scalar(rng, field, value[0], words)
        else:
            value.append(_scalar(rng, field, value[0] if len(value) else None, words))
    else:
        setattr(item, field.name, _scalar(rng, field, value, words))


def _copy(source: Any, into: Any) -> None:
    """Copy a message into another, which may be a part of it: protobuf would copy that without end."""
    other = type(into)()
    other.CopyFrom(source)
    into.CopyFrom(other)


def _scalar(rng: Random, field: Any, old: Any, words: Sequence[Any]) -> Any:
    kind = field.cpp_type
    if kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return rng.choice((0.0, -1.0, 0.5, 1e30, float("inf"), float("nan")))
    if kind == field.CPPTYPE_BOOL:
        return not old
    if kind == field.CPPTYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    if kind == field.CPPTYPE_STRING:
        known = [w for w in words if isinstance(w, str)]
        said = rng.choice((*known, "", "x", "../../escaped", "a" * 200))
        return said.encode() if field.type == field.TYPE_BYTES else said
    return rng.choice((*NUMBERS, *[w for w in words if isinstance(w, int)]))
