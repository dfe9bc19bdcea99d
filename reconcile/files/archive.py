"""A zip archive's own directory: sizes, names and places of its members, before anything in it is unpacked.

What is refused: paths that lead out of the archive, two members of one name, members that overlap or unpack to more than
they can hold honestly (a "zip bomb": https://www.bamsoftware.com/hacks/zipbomb/), encrypted ones, links.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path

END = struct.Struct("<4sHHHHIIH")
"""End of central directory record, APPNOTE.TXT 4.3.16: signature, 4 numbers, directory size, its offset, comment length."""
TAIL = END.size + 0xFFFF

DIRECTORY = 32 << 20
"""Bytes of directory that are read: a quarter of a million members."""
RATIO = 100
"""How much smaller a member may be packed. Weights are packed to 0.9 of their size, text to 0.1."""
SMALL = 1 << 20
"""Bytes below which the ratio says nothing."""


class Hostile(Exception):
    """An archive that is not to be opened; the message says why."""


@dataclass(frozen=True, slots=True)
class Held:
    """Names of the members, and bytes that they unpack to."""

    names: frozenset[str]
    size: int


def inspect(path: Path, limit: int | None) -> Held:
    """The members of an archive. Raises Hostile; ``limit`` is in bytes unpacked, None for any size."""
    _directory(path)
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, struct.error) as error:
        raise Hostile(f"it is no whole zip archive: {error}") from error
    seen: set[str] = set()
    for member in members:
        _check(member, seen, limit is None)
        seen.add(member.filename)
    _apart(members, path.stat().st_size)
    size = sum(member.file_size for member in members)
    if limit is not None and size > limit:
        raise Hostile(
            f"it unpacks to {size:,} bytes, more than the {limit:,} that are opened without asking; --trust-file opens it "
            "all the same"
        )
    return Held(frozenset(seen), size)


def _directory(path: Path) -> None:
    """Refuse an archive whose directory is missing or too long to be read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - TAIL))
        tail = file.read(TAIL)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < END.size:
        raise Hostile("it is a zip archive that is cut short: its directory, which comes last, is missing")
    length = END.unpack_from(tail, at)[5]
    if length == 0xFFFFFFFF:  # zip64: the directory ends where the record of 76 bytes and its locator begin
        length = 0
        at64 = tail.rfind(b"PK\x06\x06", 0, at)
        if at64 >= 0 and len(tail) - at64 >= 48:
            (length,) = struct.unpack_from("<Q", tail, at64 + 40)
    if length > min(size, DIRECTORY):
        raise Hostile(f"its directory is said to be {length:,} bytes long, which no model's is")


def _check(member: zipfile.ZipInfo, seen: set[str], trusted: bool) -> None:
    name = member.filename
    if name in seen:
        raise Hostile(f"it has two members called {name!r}")
    parts = name.replace("\\", "/").split("/")
    if os.path.isabs(name) or name.startswith("\\") or ".." in parts or ":" in parts[0] or "\0" in name:
        raise Hostile(f"its member {name!r} leads out of the archive")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise Hostile(f"its member {name!r} is a link")
    if member.flag_bits & 1:
        raise Hostile(f"its member {name!r} is encrypted")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Hostile(f"its member {name!r} is packed in a way that no model's is")
    if member.compress_type == zipfile.ZIP_STORED and member.file_size != member.compress_size:
        raise Hostile(f"its member {name!r} is said to be {member.file_size:,} and {member.compress_size:,} bytes long")
    if member.file_size > max(SMALL, RATIO * member.compress_size) and not trusted:
        raise Hostile(
            f"its member {name!r} is {member.compress_size:,} bytes that unpack to {member.file_size:,}: a zip bomb, or "
            "nothing but zeros; --trust-file opens it all the same"
        )


def _apart(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse members that share bytes: one packed stream that unpacks many times over."""
    end = 0
    for member in sorted(members, key=lambda m: m.header_offset):
        if member.header_offset < end or member.header_offset + member.compress_size > size:
            raise Hostile(f"its member {member.filename!r} overlaps another or the end of the file")
        end = member.header_offset + 30 + member.compress_size
