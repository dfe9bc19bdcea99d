"""The peak FLOP/s that trainers (training frameworks) hard-code where the datasheet differs (trainers.toml)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...core.user_files import read_toml

TABLE = Path(__file__).with_name("trainers.toml")


@dataclass(frozen=True, slots=True)
class Entry:
    """The FLOP/s that a trainer has for a product, and why; ``host`` says that it depends on the other devices of a host."""

    trainer: str
    product: str
    dtype: str
    flops: int
    why: str
    source: str
    host: bool = False


@cache
def every() -> tuple[Entry, ...]:
    """Every row of trainers.toml, one for each of its products."""
    found = []
    for trainer in read_toml(TABLE, "the table of trainers' peaks")["trainer"]:
        for row in trainer["peaks"]:
            source = f"{trainer['file']} {row.pop('lines')}".strip()
            found += [Entry(trainer["name"], product, source=source, **row) for product in row.pop("products")]
    return tuple(found)


def entries(product: str, dtype: str) -> list[Entry]:
    """What trainers divide by for this product and dtype, each number once."""
    found: dict[int, Entry] = {}
    for entry in every():
        if entry.product == product and entry.dtype == dtype:
            found.setdefault(entry.flops, entry)
    return list(found.values())
