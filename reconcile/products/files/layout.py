"""A check of a zip archive's bytes around its members: every zip reader must find the same members in it (used by archive.py).

Readers disagree about archives that break the rules of APPNOTE.TXT: Python's zipfile looks for the zip64 record at its fixed
offset, miniz (PyTorch's) where a locator points to; both expect the directory right before the end record, and both take a
member's name from the directory, not from the member's own header. An archive that passes here has one reading: its members
follow each other from the first byte without a gap, their headers agree with the directory, the directory follows, and then
its only end record.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple

END = struct.Struct("<4sHHHHIIH")
"""End of central directory record, APPNOTE.TXT 4.3.16: signature, 4 numbers, directory size, its offset, comment length."""
END64 = struct.Struct("<4sQHHIIQQQQ")
"""Zip64 end of central directory record, 4.3.14: signature, length of the rest, 2 versions, 2 disks, 2 counts, size, offset."""
LOCATOR = struct.Struct("<4sIQI")
"""Zip64 end of central directory locator, 4.3.15: signature, disk, offset of the record, number of disks."""
LOCAL = struct.Struct("<4sHHHHHIIIHH")
"""Local file header, 4.3.7: signature, version, flags, method, time, date, CRC, packed, unpacked, lengths of name and extra."""

DESCRIBED = 8
"""The flag of a member whose checksum and sizes follow its data (4.4.4, bit 3)."""
FOLDER = 0x10
"""The external attribute of a folder (4.4.15): miniz reads no bytes of such a member and returns uninitialised memory."""
UNKNOWN = 0xFFFFFFFF
"""A size that is in the zip64 extra field."""
ZIP64, TIMES, OWNER, PADDING = 0x0001, 0x5455, 0x7875, 0x4246
"""Extra fields: 64-bit sizes (4.5.3); Info-ZIP's times and owner; PyTorch's padding that aligns tensors."""


class Unclear(Exception):
    """An archive that readers may read differently; the message says where."""


class End(NamedTuple):
    """The contents of an end record: number of members, the directory's length and its offset."""

    members: int
    length: int
    offset: int


def check(file: BinaryIO, end: End, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise Unclear unless every reader would find the members that zipfile found, before the end that ``end_of`` read."""
    if end.members != len(members):
        raise Unclear(f"its end record counts {end.members} members, but its directory has {len(members)}")
    offset = 0
    for member in sorted(members, key=lambda m: m.header_offset):
        if member.header_offset != offset:
            raise Unclear(f"there are unexpected bytes before its member {member.filename!r}")
        offset = _after(file, member, end.offset)
    if offset != end.offset:
        raise Unclear("there are unexpected bytes before its directory")


def end_of(file: BinaryIO, size: int) -> End:
    """The end record; it must be at the very end of the archive, and both end records must agree. Raises Unclear.

    It is read before zipfile reads the archive: which ends that refuses, and in which words, differs between Pythons.
    """
    long = END64.size + LOCATOR.size + END.size
    file.seek(max(0, size - long))
    tail = file.read(long)
    mark, disk, first, here, count, length, offset, comment = END.unpack(tail[-END.size :])
    if mark != b"PK\x05\x06" or comment:
        raise Unclear("there is data after its end record")
    stated = End(count, length, offset)
    start = size - END.size
    if tail[-END.size - LOCATOR.size :].startswith(b"PK\x06\x07"):
        stated64 = _end64(tail, size - long)
        tops = (0xFFFF, UNKNOWN, UNKNOWN)
        if any(short not in (long_, top) for short, long_, top in zip(stated, stated64, tops, strict=True)):
            raise Unclear("its two end records disagree")
        stated, start = stated64, size - long
    if disk or first or here != count or stated.offset + stated.length != start:
        raise Unclear("its end record does not follow its directory")
    return stated


def _end64(tail: bytes, at: int) -> End:
    """The zip64 record; the locator must point to its fixed offset."""
    if len(tail) < END64.size + LOCATOR.size + END.size:
        raise Unclear("its zip64 record is missing")
    _, disk, offset, disks = LOCATOR.unpack_from(tail, END64.size)
    mark, rest, _, _, here, first, here_count, count, length, directory = END64.unpack_from(tail)
    if (
        disk
        or disks != 1
        or offset != at
        or mark != b"PK\x06\x06"
        or rest != END64.size - 12
        or here
        or first
        or here_count != count
    ):
        raise Unclear("its zip64 locator does not point to the record before it")
    return End(count, length, directory)


def _after(file: BinaryIO, member: zipfile.ZipInfo, limit: int) -> int:
    """The offset where a member ends; its own header must agree with the directory."""
    name = member.filename
    if bool(member.external_attr & FOLDER) != member.is_dir():
        raise Unclear(f"its member {name!r} is marked as a folder but is a file, or the reverse")
    file.seek(member.header_offset)
    header = file.read(LOCAL.size)
    if len(header) < LOCAL.size or not header.startswith(b"PK\x03\x04"):
        raise Unclear(f"its member {name!r} has no header")
    _, _, flags, method, _, _, crc, packed, unpacked, names, extras = LOCAL.unpack(header)
    spelled = file.read(names)
    extra = _extra(name, file.read(extras))
    _extra(name, member.extra)
    if ZIP64 in extra and UNKNOWN in (packed, unpacked):
        unpacked, packed = _sizes64(name, extra[ZIP64])
    stated = (crc, packed, unpacked)
    known = (member.CRC, member.compress_size, member.file_size)
    allowed = {known, (0, 0, 0)} if flags & DESCRIBED else {known}
    if (
        stated not in allowed
        or spelled != name.encode()
        or (flags, method) != (member.flag_bits, member.compress_type)
        or member.volume
        or member.comment
    ):
        raise Unclear(f"the header of its member {name!r} disagrees with its directory")
    end = file.tell() + member.compress_size
    return _skip_descriptor(file, end, known, limit, name) if flags & DESCRIBED else end


def _skip_descriptor(file: BinaryIO, end: int, known: tuple[int, int, int], limit: int, name: str) -> int:
    """The offset where the data descriptor after a member ends (4.3.9); its sizes have 4 or 8 bytes."""
    file.seek(end)
    descriptor = file.read(min(24, max(0, limit - end)))
    for form in ("<4sIII", "<4sIQQ"):
        if descriptor.startswith(
            struct.pack(form, b"PK\x07\x08", *known) if max(known[1:]) <= UNKNOWN or "Q" in form else b"?"
        ):
            return end + struct.calcsize(form)
    raise Unclear(f"the data descriptor after its member {name!r} disagrees with its directory")


def _extra(name: str, data: bytes) -> dict[int, bytes]:
    """The extra fields of a header; each must be known and appear once."""
    extra_fields: dict[int, bytes] = {}
    while data:
        if len(data) < 4:
            raise Unclear(f"the header of its member {name!r} is damaged")
        kind, length = struct.unpack_from("<HH", data)
        if kind in extra_fields or kind not in (ZIP64, TIMES, OWNER, PADDING) or len(data) < 4 + length:
            raise Unclear(f"the header of its member {name!r} has a field that no model file uses")
        extra_fields[kind] = data[4 : 4 + length]
        data = data[4 + length :]
    return extra_fields


def _sizes64(name: str, data: bytes) -> tuple[int, int]:
    if len(data) != 16:
        raise Unclear(f"the header of its member {name!r} is damaged")
    unpacked, packed = struct.unpack("<QQ", data)
    return unpacked, packed
