"""Reader of the CSV of ``reconcile mfu --table``: one published utilisation, rate or training compute per row, with what its
source states.

A row that cannot be read carries the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path

from ...core.errors import UsageError, short
from .. import user_tables
from .closed_forms import Shape
from .printed_number import Claim, Printed, claim, read_number, share
from .printed_number import work as read_work
from .setup import throughput

COLUMNS = (
    "id", "who", "model", "params", "layers", "hidden", "heads", "kv_heads", "vocab", "seq", "tokens_per_second",
    "tokens_per_second_per_device", "step_seconds", "batch_tokens", "devices", "device", "dtype", "claimed", "claimed_kind",
    "formula_stated", "recompute", "causal", "peak_stated", "source", "seen", "note", "head_dim", "router", "active_params",
    "training_tokens", "device_hours", "utilisation", "base_flops",
)  # fmt: skip
REQUIRED = ("claimed", "claimed_kind")
_RANGE = re.compile(r"([\d.]+)\s*%?\s*(?:to|-|–)\s*([\d.]+)\s*%.*", re.ASCII)
_PRINTED = (
    re.compile(r"printed (?P<rate>\d[\d.]*(?:e[+-]?\d+)?) ?TFLOPS?/?s?(?:/|\b)", re.IGNORECASE | re.ASCII),
    re.compile(r"(?P<rate>\d[\d.]*) TFLOPS? printed", re.IGNORECASE | re.ASCII),
)
"""A rate of a device that the note says is printed beside the utilisation."""


@dataclass(frozen=True, slots=True)
class Training:
    """What a row states of a whole training: utilisation, parameters active for a token, tokens, hours of all devices together,
    and the FLOPs of the model that it began from."""

    utilisation: Fraction | None = None
    active: Printed | None = None
    tokens: Printed | None = None
    hours: Printed | None = None
    base: Printed | None = None


NO_SHAPE, NO_TRAINING = Shape(), Training()


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One row of the table by the names of its columns, and what could be read of it.

    Attributes:
        number: Its number in the file, the first below the head being 1.
        cells: Its cells by column.
        claim: The utilisation or rate that it claims; None if the row cannot be read.
        shape: The sizes of the model, 0 for one that the row does not state.
        devices: The number of devices; 0 if the row does not state it.
        tokens: Tokens per second of all devices; None where the row states no such thing.
        rate: FLOP/s of a device that the note says is printed beside the claim; None where it states no such thing.
        training: What it states of a whole training.
        wrong: Why it could not be read; '' if it could.
    """

    number: int
    cells: Mapping[str, str]
    claim: Claim | None = None
    shape: Shape = NO_SHAPE
    devices: int = 0
    tokens: Printed | None = None
    rate: Printed | None = None
    training: Training = NO_TRAINING
    wrong: str = ""

    def __getitem__(self, name: str) -> str:
        return self.cells.get(name, "")

    @property
    def key(self) -> str:
        """What the page calls the row."""
        return self["id"] or f"row {self.number}"

    @property
    def source(self) -> str:
        """Where it is printed; rows of one source are read alike."""
        return self["source"] or self["who"] or "no source"

    @property
    def hardware(self) -> bool:
        """Whether it is called HFU."""
        return "HFU" in self["claimed_kind"].upper()


def read_claims(path: Path) -> list[Row]:
    """The rows of the file. Raises UsageError for a file that cannot be read, and for a head without the columns."""
    rows = user_tables.read_rows(path, COLUMNS, REQUIRED, "the claims")
    found = []
    for number, (given, wrong) in enumerate(rows, 1):
        try:
            found.append(Row(number, given, wrong=wrong.rstrip(".")) if wrong else _read_row(number, given))
        except UsageError as error:
            found.append(Row(number, given, wrong=str(error).rstrip(".")))
    return found


def _read_row(number: int, given: Mapping[str, str]) -> Row:
    """The row with its numbers. Raises UsageError for one that is none."""

    def figure(name: str) -> Printed | None:
        return read_number(given[name], f"its {name}") if given.get(name) else None

    def whole(name: str) -> int:
        value = figure(name)
        return int(value.value) if value is not None else 0

    wanted = parse_claim(given["claimed"], given["claimed_kind"])
    devices = whole("devices")
    shape = Shape(**{each.name: whole(each.name) for each in fields(Shape)})
    tokens, each = figure("tokens_per_second"), figure("tokens_per_second_per_device")
    if tokens is None and each is not None:
        devices = devices or 1
        tokens = throughput(None, None, None, each, devices)
    step, batch = figure("step_seconds"), figure("batch_tokens")
    if tokens is None and step is not None and batch is not None:
        tokens = throughput(None, step, Printed(batch.text, batch.value, Fraction(0)))
    rate = _rate(given.get("note", "")) if wanted.kind == "share" else None
    used = share(given["utilisation"], "its utilisation") if given.get("utilisation") else None
    names = ("active_params", "training_tokens", "device_hours", "base_flops")
    training = Training(used, *map(figure, names))
    return Row(number, given, wanted, shape, devices, tokens, rate, training)


def _rate(note: str) -> Printed | None:
    """FLOP/s of one device that the note says is printed."""
    for pattern in _PRINTED:
        match = pattern.search(note)
        if match:
            value = read_number(match["rate"], "its note")
            return Printed(f"{match['rate']} TFLOP/s", value.value * 10**12, value.half * 10**12)
    return None


def parse_claim(text: str, kind: str) -> Claim:
    """The claim of a row: a share, a range of shares, the rate of a device, or the FLOPs of a training. A rate may state
    its error, ``199.12 ± 0.05``. Raises UsageError."""
    plain = text.strip()
    between = _RANGE.fullmatch(plain)
    if between and "%" in plain:
        ends = [read_number(end, "the claim") for end in between.groups()]
        low, high = (ends[0].low / 100, ends[1].high / 100)
        return Claim(Printed(plain, (low + high) / 2, (high - low) / 2), "share")
    scale = next((letter for letter in "TPG" if f"{letter}FLOP" in kind.upper()), "")
    if scale and "/" in kind and "STEP" not in kind.upper():
        printed, _, error = plain.partition("±")
        found = claim(f"{printed.strip()}{scale}")
        if not error:
            return found
        half = claim(f"{error}{scale}").figure.value
        if 20 * half > found.figure.value:
            raise UsageError(f"the error of {short(plain)} is more than a twentieth of it")
        return Claim(replace(found.figure, text=plain, half=half), found.kind)
    if kind.upper() in ("FLOP", "FLOPS"):
        return Claim(read_work(plain, "the claim"), "work")
    if not any(word in kind.upper() for word in ("MFU", "HFU", "%", "UTIL")):
        raise UsageError(f"{short(kind)} is no utilisation, no rate of a device and no FLOPs")
    return claim(plain)
