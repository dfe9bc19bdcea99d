"""Files that mean harm or are damaged, made by hand: no framework is needed to make these."""

from __future__ import annotations

import functools
import io
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ZOO = {"gru_demo": {"frames": "20", "bins": "16", "filters": "3", "units": "5", "classes": "4"}}
"""The network that is written to files, small."""

BIG = 3 << 30
"""Bytes of the files that are larger than any model that is opened without asking. They are sparse."""


class Bomb:
    """Unpickling this makes a file, which a test looks for."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.mark,)


def zipped(path: Path, members: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    """A zip archive of these members."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def keras(path: Path, **more: bytes) -> Path:
    """What looks like a Keras file."""
    return zipped(path, {"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": b"", **more})


def cut(source: Path, path: Path, keep: float = 0.6) -> Path:
    """The first part of a file."""
    data = source.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    return path


def sparse(path: Path, head: bytes = b"", tail: bytes = b"") -> Path:
    """A file of BIG bytes that takes no room: zeros between a head and a tail."""
    with path.open("wb") as file:
        file.write(head)
        file.seek(BIG - len(tail) - 1)
        file.write(b"\0" + tail)
    return path


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def part(number: int, data: bytes) -> bytes:
    """One field of a protobuf message, of bytes."""
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def renamed(path: Path, old: bytes, new: bytes) -> Path:
    """The same archive with a name in it changed, in both of its places."""
    assert len(old) == len(new)
    path.write_bytes(path.read_bytes().replace(old, new))
    return path


def directory_of(path: Path, length: int) -> Path:
    """The same archive whose end says that its directory is this long."""
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rfind(b"PK\x05\x06") + 12, length)
    path.write_bytes(bytes(data))
    return path


def overlapping(path: Path, copies: int = 50) -> Path:
    """One member that the directory names many times: each unpacks to all of it."""
    zipped(path, {"config.json": bytes(1000)}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    start = data.find(b"PK\x01\x02")
    end = data.rfind(b"PK\x05\x06")
    entries = b""
    for i in range(copies):
        entries += data[start:end].replace(b"config.json", b"conf%03djson" % i)
    tail = bytearray(data[end:])
    struct.pack_into("<HHII", tail, 8, copies, copies, len(entries), start)
    path.write_bytes(data[:start] + entries + bytes(tail))
    return path


def encrypted(path: Path) -> Path:
    """An archive whose member says that it is encrypted."""
    data = bytearray(keras(path).read_bytes())
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
        data[at + 8] |= 1
    path.write_bytes(bytes(data))
    return path


@functools.cache
def _bomb() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("config.json", "w") as member:
        for _ in range(300):
            member.write(bytes(1_000_000))
    return made.getvalue()


def bomb(path: Path) -> Path:
    """A zip bomb: 300 million zeros in 300 thousand bytes. It is made once in a process."""
    path.write_bytes(_bomb())
    return path


def large_zip(path: Path) -> Path:
    """An archive with one stored member of nearly BIG bytes: sparse, its sums not right."""
    name, size = b"model.weights.h5", BIG - 10_000
    common = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0, 0, size, size, len(name), 0)
    local = b"PK\x03\x04" + common + name
    central = b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(central), BIG - len(central) - 22, 0)
    return sparse(path, local, central + end)


def pickled(path: Path, mark: Path, protocol: int = 2) -> Path:
    """A pickle that does something."""
    path.write_bytes(pickle.dumps(Bomb(mark), protocol=protocol))
    return path


def pickled_zip(path: Path, mark: Path) -> Path:
    """What torch.save writes, of something that does something."""
    buffer = io.BytesIO()
    pickle.dump(Bomb(mark), buffer, protocol=2)
    return zipped(path, {"archive/data.pkl": buffer.getvalue(), "archive/version": b"3\n", "archive/data/0": b""})


Members = dict[str, bytes]


def archive(held: Members) -> bytes:
    """An archive like PyTorch's with these members, as any program may write it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, data in held.items():
            file.writestr(zipfile.ZipInfo(f"a/{name}"), data)
    return made.getvalue()


def end64(count: int, size: int, place: int) -> bytes:
    """A zip64 end of central directory record (APPNOTE.TXT 4.3.14)."""
    return struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, place)


def long_end(data: bytes) -> bytes:
    """The same archive with a zip64 end."""
    end = data.rfind(b"PK\x05\x06")
    count, size, place = struct.unpack_from("<HII", data, end + 10)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
    last = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:end] + end64(count, size, place) + locator + last


class Stream(io.RawIOBase):
    """What can only be written to, so that zipfile puts sums and sizes after the data."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.written += bytes(data)
        return len(data)
