"""The bytes of a zip archive around its members: whether every reader would find the same members in it.

Readers disagree about archives that are not as APPNOTE.TXT says: Python's zipfile looks for the zip64 record where it
must stand, miniz (PyTorch's) where a locator points to; both take for the directory's place what stands before the end,
and for a member's name what the directory says, whatever its own header says. Here an archive has one reading: its
members follow each other from the first byte without a gap, their headers say what the directory says, the directory
follows, then its one end.
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
"""The flag of a member whose sum and sizes follow its data (4.4.4, bit 3)."""
FOLDER = 0x10
"""The external attribute of a folder (4.4.15): miniz reads no bytes of such a member, and gives back what was in memory."""
UNKNOWN = 0xFFFFFFFF
"""A size that is in the zip64 extra field."""
ZIP64, TIMES, OWNER, PADDING = 0x0001, 0x5455, 0x7875, 0x4246
"""Extra fields: sizes of 64 bits (4.5.3); Info-ZIP's times and owner; what PyTorch aligns tensors with."""


class Unclear(Exception):
    """An archive that readers may read differently; the message says where."""


class End(NamedTuple):
    """What an archive's end says: members, the directory's length and its place."""

    members: int
    length: int
    offset: int


def check(file: BinaryIO, size: int, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise Unclear unless these members, as zipfile found them, are what any reader would find in the archive."""
    end = _end(file, size)
    if end.members != len(members):
        raise Unclear(f"its end counts {end.members} members, its directory has {len(members)}")
    place = 0
    for member in sorted(members, key=lambda m: m.header_offset):
        if member.header_offset != place:
            raise Unclear(f"there are other bytes before its member {member.filename!r}")
        place = _after(file, member, end.offset)
    if place != end.offset:
        raise Unclear("there are other bytes before its directory")


def _end(file: BinaryIO, size: int) -> End:
    """The end records, which are the archive's last bytes and agree with each other."""
    long = END64.size + LOCATOR.size + END.size
    file.seek(max(0, size - long))
    tail = file.read(long)
    mark, disk, first, here, count, length, offset, comment = END.unpack(tail[-END.size :])
    if mark != b"PK\x05\x06" or comment:
        raise Unclear("something follows its end")
    said = End(count, length, offset)
    start = size - END.size
    if tail[-END.size - LOCATOR.size :].startswith(b"PK\x06\x07"):
        found = _end64(tail, size - long)
        if any(
            short not in (whole, top) for short, whole, top in zip(said, found, (0xFFFF, UNKNOWN, UNKNOWN), strict=True)
        ):
            raise Unclear("its two ends disagree")
        said, start = found, size - long
    if disk or first or here != count or said.offset + said.length != start:
        raise Unclear("its end does not follow its directory")
    return said


def _end64(tail: bytes, at: int) -> End:
    """The zip64 record, which the locator says is where it must be."""
    if len(tail) < END64.size + LOCATOR.size + END.size:
        raise Unclear("its zip64 record is missing")
    _, disk, offset, disks = LOCATOR.unpack_from(tail, END64.size)
    mark, rest, _, _, here, first, mine, count, length, place = END64.unpack_from(tail)
    if (
        disk
        or disks != 1
        or offset != at
        or mark != b"PK\x06\x06"
        or rest != END64.size - 12
        or here
        or first
        or mine != count
    ):
        raise Unclear("its zip64 locator does not point to the record before it")
    return End(count, length, place)


def _after(file: BinaryIO, member: zipfile.ZipInfo, limit: int) -> int:
    """Where a member ends, its own header saying of it what the directory says."""
    name = member.filename
    if bool(member.external_attr & FOLDER) != member.is_dir():
        raise Unclear(f"its member {name!r} is said to be a folder, or a folder to be none")
    file.seek(member.header_offset)
    header = file.read(LOCAL.size)
    if len(header) < LOCAL.size or not header.startswith(b"PK\x03\x04"):
        raise Unclear(f"there is no header of its member {name!r}")
    _, _, flags, method, _, _, crc, packed, unpacked, names, extras = LOCAL.unpack(header)
    spelled = file.read(names)
    extra = _extra(name, file.read(extras))
    _extra(name, member.extra)
    if ZIP64 in extra and UNKNOWN in (packed, unpacked):
        unpacked, packed = _sizes64(name, extra[ZIP64])
    said = (crc, packed, unpacked)
    known = (member.CRC, member.compress_size, member.file_size)
    allowed = {known, (0, 0, 0)} if flags & DESCRIBED else {known}
    if (
        said not in allowed
        or spelled != name.encode()
        or (flags, method) != (member.flag_bits, member.compress_type)
        or member.volume
        or member.comment
    ):
        raise Unclear(f"the header of its member {name!r} says something else than its directory")
    end = file.tell() + member.compress_size
    return _described(file, end, known, limit, name) if flags & DESCRIBED else end


def _described(file: BinaryIO, end: int, known: tuple[int, int, int], limit: int, name: str) -> int:
    """Where the data descriptor ends that follows a member (4.3.9): of 4 or 8 bytes per size."""
    file.seek(end)
    found = file.read(min(24, max(0, limit - end)))
    for form in ("<4sIII", "<4sIQQ"):
        if found.startswith(
            struct.pack(form, b"PK\x07\x08", *known) if max(known[1:]) <= UNKNOWN or "Q" in form else b"?"
        ):
            return end + struct.calcsize(form)
    raise Unclear(f"what follows its member {name!r} says something else than its directory")


def _extra(name: str, data: bytes) -> dict[int, bytes]:
    """The extra fields of a header, each known and there once."""
    found: dict[int, bytes] = {}
    while data:
        if len(data) < 4:
            raise Unclear(f"the header of its member {name!r} is damaged")
        kind, length = struct.unpack_from("<HH", data)
        if kind in found or kind not in (ZIP64, TIMES, OWNER, PADDING) or len(data) < 4 + length:
            raise Unclear(f"the header of its member {name!r} holds what no model's does")
        found[kind] = data[4 : 4 + length]
        data = data[4 + length :]
    return found


def _sizes64(name: str, data: bytes) -> tuple[int, int]:
    if len(data) != 16:
        raise Unclear(f"the header of its member {name!r} is damaged")
    unpacked, packed = struct.unpack("<QQ", data)
    return unpacked, packed
