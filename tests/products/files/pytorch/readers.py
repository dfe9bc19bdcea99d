"""Python's reader of archives beside PyTorch's, on mutated ones: in the archive that is made anew, PyTorch finds the names and
bytes that Python found."""

from __future__ import annotations

import io
import random
import struct
import zipfile

import torch

from reconcile.products.files import archive as archives
from tests.products.files.hostile import Stream, archive, long_end

MEMBERS = {"version": b"3\n", "byteorder": b"little", "data/0": bytes(range(64)), "code/a.py": b"x = 1\n" * 9}
MARKS = (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08")
LIMIT = 1 << 16


def bases() -> list[bytes]:
    """Archives as PyTorch, Python and a stream write them."""
    made = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(made)
    for name, data in MEMBERS.items():
        if name not in ("version", "byteorder"):  # it writes these itself
            writer.write_record(name, data, len(data))
    writer.write_end_of_file()
    stream = Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in MEMBERS.items():
            file.writestr(f"a/{name}", data)
    return [made.getvalue(), archive(MEMBERS), long_end(archive(MEMBERS)), stream.written]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The archive with one to three changes."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at, other = chance.randrange(len(made)), chance.randrange(len(made))
        near = made.find(chance.choice(MARKS), at)
        if near >= 0 and chance.random() < 0.7:  # in a header rather than in data
            at = min(len(made) - 4, near + chance.randrange(50))
        kind = chance.randrange(6)
        if kind == 0:
            made[at] = chance.randrange(256)
        elif kind == 1:
            made[at] ^= 0x20  # another case
        elif kind == 2 and at + 4 <= len(made):
            struct.pack_into("<I", made, at, chance.choice((0, 1, 0xFFFFFFFF, len(made), other)))
        elif kind == 3:
            del made[at : at + chance.randrange(1, 40)]
        elif kind == 4:
            made[at:at] = made[other : other + chance.randrange(1, 200)]
        else:
            made[at:at] = chance.choice(MARKS)
    return bytes(made)


def found(data: bytes) -> dict[str, bytes]:
    """What PyTorch's reader finds, below the archive's folder."""
    reader = torch._C.PyTorchFileReader(io.BytesIO(data))
    return {name: reader.get_record(name) for name in reader.get_all_records()}


def passes(data: bytes) -> bool:
    """Whether an archive passes; both readers agree then about what is made of it."""
    try:
        held = {
            name.partition("/")[2]: content
            for name, content in archives.contents(
                io.BytesIO(data), LIMIT, lambda name: name.partition("/")[2] in MEMBERS
            )
        }
    except archives.Hostile:
        return False
    made = archives.pack_members((f"archive/{name}", content) for name, content in held.items()).getvalue()
    try:
        others = found(made)
    except RuntimeError:  # it lacks what PyTorch asks of every archive
        return True
    assert others == held, (data, others, held)
    return True


def count_passing(seed: int, number: int) -> int:
    """How many of this number of mutated archives pass; those that are not mutated do."""
    chance = random.Random(seed)
    first = bases()
    assert [data for data in first if not passes(data)] == []
    return sum(passes(mutated(chance.choice(first), chance)) for _ in range(number))
