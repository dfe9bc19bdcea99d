"""A zip archive's directory: sizes, names and offsets of its members, checked before anything is unpacked.

This rejects paths that point outside the archive, members that overlap or unpack to implausible sizes (a "zip bomb":
https://www.bamsoftware.com/hacks/zipbomb/), and encrypted members. Readers disagree about archives that break the rules: what a
framework's own reader then finds, it loads in a process that is confined.
"""

from __future__ import annotations

import os
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

END, RECORD, LOCATOR, COMMENT = 22, 56, 20, 0xFFFF
"""Bytes of what an archive ends in (APPNOTE.TXT 4.3.14 to 4.3.16): the end record; before it the zip64 record and its locator,
where zipfile looks for them; behind it the longest comment."""
DIRECTORY = 32 << 20
"""The longest directory in bytes that is read: a quarter of a million members."""
RATIO = 100
"""The highest compression ratio of a member. Weights compress to 0.9 of their size, text to 0.1."""
SMALL = 1 << 20
"""Below this size in bytes the ratio means nothing."""


class Hostile(Exception):
    """An archive that must not be opened; the message says why."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Names of the members, and their total unpacked size in bytes."""

    names: frozenset[str]
    size: int


def inspect(path: Path, limit: int | None) -> Contents:
    """The members of an archive. Raises Hostile; ``limit`` is the unpacked size in bytes, None for a trusted archive."""
    with path.open("rb") as file:
        members = _members(file, limit)
    return Contents(frozenset(member.filename for member in members), sum(member.file_size for member in members))


def _members(file: BinaryIO, limit: int | None) -> list[zipfile.ZipInfo]:
    length = file.seek(0, os.SEEK_END)
    _directory(file, length)
    try:
        members = zipfile.ZipFile(file).infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        raise Hostile(f"it is not a complete zip archive: {error}") from error
    for member in members:
        _check(member, limit is None)
    _apart(members, length)
    size = sum(member.file_size for member in members)
    if limit is not None and size > limit:
        raise Hostile(
            f"it unpacks to {size:,} bytes, more than the limit of {limit:,}; pass --trust-file to open it anyway"
        )
    return members


def _directory(file: BinaryIO, size: int) -> None:
    """Reject an archive whose directory is missing or too long."""
    file.seek(max(0, size - RECORD - LOCATOR - END - COMMENT))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < END:
        raise Hostile("it is a zip archive that is cut short: its directory, which comes last, is missing")
    (length,) = struct.unpack_from("<I", tail, at + 12)
    if at >= RECORD + LOCATOR and tail[at - LOCATOR :].startswith(b"PK\x06\x07"):
        (length,) = struct.unpack_from("<Q", tail, at - LOCATOR - RECORD + 40)
    if length > min(size, DIRECTORY):
        raise Hostile(f"its directory claims to be {length:,} bytes long, which is too long for a model")


def _check(member: zipfile.ZipInfo, trusted: bool) -> None:
    name = member.filename
    parts = name.replace("\\", "/").split("/")
    if os.path.isabs(name) or name.startswith("\\") or ".." in parts or ":" in parts[0] or "\0" in name:
        raise Hostile(f"its member {name!r} points outside the archive")
    if member.flag_bits & 1:
        raise Hostile(f"its member {name!r} is encrypted")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Hostile(f"its member {name!r} uses a compression method that no model file uses")
    if member.file_size > max(SMALL, RATIO * member.compress_size) and not trusted:
        raise Hostile(
            f"its member {name!r} is {member.compress_size:,} bytes that unpack to {member.file_size:,}: a zip bomb, or "
            "nothing but zeros; pass --trust-file to open it anyway"
        )


def _apart(members: list[zipfile.ZipInfo], size: int) -> None:
    """Reject members that share bytes: one compressed stream that unpacks many times over."""
    end = 0
    for member in sorted(members, key=lambda m: m.header_offset):
        if member.header_offset < end or member.header_offset + member.compress_size > size:
            raise Hostile(f"its member {member.filename!r} overlaps another or the end of the file")
        end = member.header_offset + 30 + member.compress_size
