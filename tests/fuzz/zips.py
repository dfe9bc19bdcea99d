"""Zip archives in which readers disagree: two directories, two names of one member, offsets that only some readers believe.

By PKWARE's APPNOTE.TXT 4.3: local headers with data, the central directory, the zip64 end and its locator, the end.  Python's
zipfile looks for the zip64 end right before its locator and takes what lies before the first member for a prefix; miniz, with
which PyTorch reads, goes where the locator points, knows no prefix, and finds names whatever their case.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

STORED, DEFLATED = 0, 8
UTF8, DESCRIPTOR, ENCRYPTED = 1 << 11, 1 << 3, 1


@dataclass(frozen=True)
class Entry:
    """A member as it is written: the names, sizes and flags in its local header and in the directory may differ."""

    name: bytes
    data: bytes
    method: int = STORED
    flags: int = 0
    local_name: bytes | None = None
    size: int | None = None
    local_size: int | None = None
    packed: int | None = None
    crc: int | None = None
    extra: bytes = b""
    local_extra: bytes = b""
    offset: int | None = None
    attributes: int = 0
    listed: bool = True

    @property
    def stream(self) -> bytes:
        """The data as it is packed."""
        if self.method != DEFLATED:
            return self.data
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(self.data) + packer.flush()


def local(entry: Entry) -> bytes:
    """A member's local header and data."""
    name = entry.name if entry.local_name is None else entry.local_name
    size = len(entry.data) if entry.local_size is None else entry.local_size
    head = struct.pack(
        "<4sHHHHHIIIHH", b"PK\x03\x04", 20, entry.flags, entry.method, 0, 33, zlib.crc32(entry.data),
        len(entry.stream), size & 0xFFFFFFFF, len(name), len(entry.local_extra),
    )  # fmt: skip
    return head + name + entry.local_extra + entry.stream


def central(entry: Entry, offset: int) -> bytes:
    """A member's line in the directory."""
    size = len(entry.data) if entry.size is None else entry.size
    packed = len(entry.stream) if entry.packed is None else entry.packed
    crc = zlib.crc32(entry.data) if entry.crc is None else entry.crc
    at = offset if entry.offset is None else entry.offset
    head = struct.pack(
        "<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 20, 20, entry.flags, entry.method, 0, 33, crc, packed & 0xFFFFFFFF,
        size & 0xFFFFFFFF, len(entry.name), len(entry.extra), 0, 0, 0, entry.attributes, at & 0xFFFFFFFF,
    )  # fmt: skip
    return head + entry.name + entry.extra


def end(count: int, size: int, offset: int, comment: bytes = b"", disk: int = 0) -> bytes:
    """The end of the central directory."""
    numbers = (disk, disk, count & 0xFFFF, count & 0xFFFF, size & 0xFFFFFFFF, offset & 0xFFFFFFFF, len(comment))
    return struct.pack("<4sHHHHIIH", b"PK\x05\x06", *numbers) + comment


def end64(count: int, size: int, offset: int) -> bytes:
    """The zip64 end of the central directory, without its locator."""
    return struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, offset)


def locator(at: int) -> bytes:
    """What says where the zip64 end is."""
    return struct.pack("<4sIQI", b"PK\x06\x07", 0, at, 1)


def directory(entries: Sequence[Entry], base: int) -> tuple[bytes, bytes]:
    """The members' bytes from ``base`` on, and the directory that goes with them."""
    body, lines = b"", b""
    for entry in entries:
        if entry.listed:
            lines += central(entry, base + len(body))
        body += local(entry)
    return body, lines


def archive(entries: Sequence[Entry], prefix: bytes = b"", comment: bytes = b"") -> bytes:
    """An archive as usually written, behind a prefix that its offsets include."""
    body, lines = directory(entries, len(prefix))
    count = sum(entry.listed for entry in entries)
    return prefix + body + lines + end(count, len(lines), len(prefix) + len(body), comment)


def entries_of(members: Mapping[str, bytes], rng: Random) -> list[Entry]:
    """Members as entries, now and then packed or in another order."""
    found = [Entry(name.encode(), data) for name, data in members.items()]
    if rng.random() < 0.2:
        found = [replace(entry, method=DEFLATED) for entry in found]
    if rng.random() < 0.2:
        rng.shuffle(found)
    return found


SPELLED = (
    bytes.upper, bytes.title, bytes.swapcase, lambda name: b"./" + name, lambda name: name.replace(b"/", b"//", 1),
    lambda name: name.replace(b"/", b"\\"), lambda name: b"/" + name, lambda name: name + b"\0x", lambda name: name + b" ",
    lambda name: b"other/" + name.partition(b"/")[2], lambda name: name.replace(b"/", b"/./", 1), lambda name: name + b"/",
    lambda name: name.replace(b"o", b"\xc3\xb6", 1), lambda name: name[:1].upper() + name[1:], lambda name: b"a/../" + name,
    lambda name: name.replace(b"s", b"\xc5\xbf", 1), lambda name: name.replace(b"k", b"\xe2\x84\xaa", 1), lambda name: name,
    lambda name: name.replace(b"/", b"/\0", 1), lambda name: name.rpartition(b".")[0] + b"." + name.rpartition(b".")[2].upper(),
)  # fmt: skip
"""Other ways to write a name; \\u017f and \\u212a are equal to s and k under casefold."""


def unicode_path(name: bytes, other: bytes) -> bytes:
    """Info-ZIP's extra field with another name (APPNOTE.TXT 4.6.9), which Python's zipfile takes from 3.12 on."""
    return struct.pack("<HHBI", 0x7075, 5 + len(other), 1, zlib.crc32(name)) + other


def zip64_field(*numbers: int) -> bytes:
    """The zip64 extra field: sizes and offset of 8 bytes, for those that are 0xFFFFFFFF."""
    return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *[n & (2**64 - 1) for n in numbers])


def _second(rng: Random, good: list[Entry], evil: Entry) -> bytes:
    """The good member and an evil one of another spelling."""
    name = rng.choice(SPELLED)(evil.name)
    other = replace(evil, name=name, flags=UTF8 if max(name, default=0) > 127 else 0)
    at = rng.choice((0, len(good)))
    return archive([*good[:at], other, *good[at:]])


def _names(rng: Random, good: list[Entry], evil: Entry) -> bytes:
    """A member that its local header, its directory line or an extra field name differently."""
    innocent = b"archive/extra/" + evil.name.rpartition(b"/")[2]
    kind = rng.randrange(3)
    if kind == 0:
        other = replace(evil, name=innocent, local_name=evil.name)
    elif kind == 1:
        other = replace(evil, name=innocent, extra=unicode_path(innocent, evil.name), flags=UTF8)
    else:
        other = replace(evil, local_name=innocent)
        good = [entry for entry in good if entry.name != evil.name or rng.random() < 0.5]
    return archive([*good, other])


def _two_directories(rng: Random, good: list[Entry], evil: Entry) -> bytes:
    """A good directory and an evil one: which of them counts is the reader's choice."""
    first, lines = directory(good, 0)
    bad = [evil if entry.name == evil.name else replace(entry) for entry in good]
    second, more = directory(bad, len(first))
    at = len(first) + len(second)
    body, count = first + second + lines + more, len(good)
    wrong_end = end64(count, len(more), at + len(lines))
    right_end = end64(count, len(lines), at)
    kind = rng.randrange(6)
    plain = end(count, len(lines), at)
    other = end(count, len(more), at + len(lines))
    if kind == 0:  # the locator points to the one, the other stands before it
        tail = wrong_end + right_end + locator(len(body)) + end(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    elif kind == 1:
        tail = wrong_end + locator(len(body)) + plain
    elif kind == 2:
        return body + other + plain
    elif kind == 3:
        return body + plain[:-2] + struct.pack("<H", len(other)) + other
    elif kind == 4:
        tail = right_end + locator(len(body)) + other
    else:
        tail = wrong_end + right_end + locator(rng.choice((len(body), len(body) + 56, 0, 2**63))) + plain
    return body + tail


def _prefixed(rng: Random, good: list[Entry], evil: Entry) -> bytes:
    """Bytes before the archive that offsets count in for one reader, not for the other."""
    whole = archive(good)
    bad = archive([evil if entry.name == evil.name else entry for entry in good])
    return rng.choice(
        (bad + whole, whole + bad, b"x" * rng.randrange(200) + whole, bad[: rng.randrange(len(bad))] + whole)
    )


def _fields(rng: Random, good: list[Entry], evil: Entry) -> bytes:
    """Sizes, offsets, flags and sums that do not agree."""
    at = rng.randrange(len(good))
    entry = good[at]
    start = len(directory(good[:at], 0)[0])
    body = len(directory(good, 0)[0])
    change = rng.choice((
        {"size": rng.choice((0, 1, len(entry.data) // 2, 2**31, 2**32 - 1))},
        {"packed": rng.choice((0, 1, len(entry.data) + 40, 2**32 - 1))},
        {"local_size": rng.choice((0, 2**32 - 1))},
        {"crc": rng.choice((0, 1))},
        {"flags": rng.choice((DESCRIPTOR, ENCRYPTED, UTF8, 1 << 13, 0xFFFF))},
        {"method": rng.choice((1, 9, 12, 14, 93, 99))},
        {"size": 2**32 - 1, "packed": 2**32 - 1, "extra": zip64_field(len(entry.data), len(entry.data))},
        {"offset": 2**32 - 1, "extra": zip64_field(start)},
        {"offset": 2**32 - 1, "extra": zip64_field(body)},
        {"offset": body},
        {"extra": b"\x01\x00\xff\xff"},
        {"local_extra": b"x" * 30},
        {"attributes": rng.choice((0o120777, 0o040755, 0o020666)) << 16},
        {"listed": False},
    ))  # fmt: skip
    made = [*good[:at], replace(entry, **change), *good[at + 1 :]]
    hidden = [replace(evil, listed=False)] if "offset" in change else []
    return archive([*made, *hidden], comment=rng.choice((b"", b"c" * 9)))


SHAPES = (_second, _second, _names, _two_directories, _two_directories, _prefixed, _fields)


def mutated(rng: Random, members: Mapping[str, bytes], evil: Mapping[str, bytes]) -> bytes:
    """An archive of these members in which readers may find one of the evil ones instead."""
    good = entries_of(members, rng)
    name = rng.choice(sorted(evil))
    bad = Entry(name.encode(), evil[name], method=rng.choice((STORED, STORED, DEFLATED)))
    return rng.choice(SHAPES)(rng, good, bad)
