"""The peak FLOP/s of devices by product, form factor and dtype, each from its vendor's datasheet (peaks.toml).

``find`` is the device of a name; the peaks of a CPU are computed from its name, and ``stated_peak`` is one that a user states.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, short
from ...core.user_files import read_toml
from .printed_number import Printed

TABLE = Path(__file__).with_name("peaks.toml")
DTYPES = {
    "bfloat16": "bf16", "half": "fp16", "float16": "fp16", "float": "fp32", "float32": "fp32", "double": "fp64",
    "float64": "fp64", "fp8-cs": "fp8", "fp8-mx": "fp8", "amp_bf16": "bf16", "amp_fp16": "fp16", "amp_fp8": "fp8",
    "mixed": "fp16", "fp16 mixed": "fp16", "nvfp4": "fp4", "mxfp8": "fp8", "e4m3": "fp8",
}  # fmt: skip
"""Other names of dtypes."""
TERA = 10**12
LARGEST = 10**21
"""No device does more FLOP/s than this."""
STATED = "stated by you"
NOISE = frozenset(
    ("nvidia", "amd", "google", "intel", "apple", "huawei", "aws", "tesla", "geforce", "instinct", "generation")
)
"""Words of a name that tell no two devices apart."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak of a dtype in FLOP/s.

    Attributes:
        dtype: The dtype.
        dense: The rate of dense products.
        sparse: That with the vendor's structured sparsity; None if there is none.
        sums: The dtype of sums, or ``tensor core`` or ``matrix`` for a second rate of the dtype; '' for the vector units.
        datasheet: The document that states it: the device's, unless another one does.
        page: The place in it.
    """

    dtype: str
    dense: int
    sparse: int | None = None
    sums: str = ""
    datasheet: str = ""
    page: str = ""

    @property
    def prints(self) -> tuple[tuple[int, str], ...]:
        """The dense peak as people print it: in full, without decimals, and half of the rounded sparse one."""
        whole = (self.dense // TERA * TERA, "without decimals")
        made = [(self.dense, "")]
        if self.sparse is not None:
            near = (self.sparse + TERA // 2) // TERA * TERA
            made.append((near // 2, f"half of {near // TERA:,} TFLOP/s with sparsity"))
        if whole[0]:
            made.append(whole)
        kept: dict[int, str] = {}
        for value, how in made:
            kept.setdefault(value, how)
        return tuple(kept.items())


@dataclass(frozen=True, slots=True)
class Device:
    """One device as its vendor sells it.

    Attributes:
        vendor: The vendor.
        product: The product's name.
        form: The form factor, such as SXM4, or what of it is taken for one device.
        names: The names by which people call it.
        peaks: Its peaks, by dtype and unit.
        datasheet: The vendor's document; '' if none was found.
        page: The place in it; '' if that is not known.
        read: Where the figures were read.
    """

    vendor: str
    product: str
    form: str
    names: tuple[str, ...]
    peaks: tuple[Peak, ...]
    datasheet: str
    page: str
    read: str

    @property
    def title(self) -> str:
        """``NVIDIA H100 SXM5 80GB``."""
        return f"{self.vendor} {self.product} {self.form}"

    def peak(self, dtype: str) -> Peak:
        """Its peak of this dtype. Raises UsageError for a dtype that it lacks, and for one with two rates."""
        found = self.rates(dtype)
        if not found:
            listed = ", ".join(dict.fromkeys(p.dtype for p in self.peaks))
            raise UsageError(f"{self.title} has no peak for {short(dtype)}: its datasheet gives {listed}.")
        if len(found) > 1:
            both = " and ".join(f"{p.dense / TERA:g} TFLOP/s ({p.sums or 'vector'})" for p in found)
            raise UsageError(
                f"{self.title} has two peaks for {short(dtype)}: {both}. Write {found[-1].dtype} {found[-1].sums}."
            )
        return found[0]

    def rates(self, dtype: str) -> list[Peak]:
        """The peaks of this dtype: with sums of fp32 where there are others, and those of one unit if the text names it."""
        plain = " ".join(dtype.lower().split())
        plain = DTYPES.get(plain, plain)
        named = [
            p
            for p in self.peaks
            if plain in (p.dtype, f"{p.dtype} {p.sums}".strip(), f"{p.dtype} {p.sums or 'vector'}")
        ]
        if plain.endswith(" vector"):
            return [p for p in named if not p.sums]
        whole = [p for p in named if plain != p.dtype] or named
        return [p for p in whole if p.sums == "fp32"] or whole


def tera(flops: int) -> str:
    """FLOP/s as text: ``989.5 TFLOP/s``."""
    return f"{float(Fraction(flops, TERA)):,.10g} TFLOP/s"


@cache
def devices() -> tuple[Device, ...]:
    """Every device of peaks.toml, with its peaks."""
    return tuple(map(_read_device, read_toml(TABLE, "the table of peaks")["device"]))


def _read_device(entry: dict[str, Any]) -> Device:
    document = {name: entry[name] for name in ("datasheet", "page")}
    peaks = tuple(Peak(**{**document, **row}) for row in entry["peaks"])
    return Device(**{**entry, "names": tuple(entry["names"]), "peaks": peaks})


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower())) - NOISE


def _is(asked: str, word: str) -> bool:
    """Whether a word of a name stands for this one: ``sxm`` for ``sxm5``."""
    return asked == word or (asked.isalpha() and word.startswith(asked) and word[len(asked) :].isdigit())


def find_devices(name: str) -> list[Device]:
    """The devices that a name fits: those that print this very name, else those that have each of its words.

    A product whose own name is given whole goes before others: ``RTX 3090`` is no ``RTX 3090 Ti``.
    """
    asked = _words(name)
    if not asked:
        return []
    same = [d for d in devices() if any(_words(n) == asked for n in d.names)]
    if same:
        return same
    words = ((d, _words(f"{d.title} {' '.join(d.names)}")) for d in devices())
    having = [d for d, own in words if all(any(_is(word, one) for one in own) for word in asked)]
    return [d for d in having if _words(d.product) <= asked] or having


def find(name: str) -> Device:
    """The device of a name; forms of one product with the same peaks are one device. Raises UsageError, with the names that it
    fits, if these are none or have different peaks."""
    cpu = processor(name)
    if cpu is not None:
        return cpu
    found = find_devices(name)
    alike = {(d.vendor, d.product, tuple((p.dtype, p.sums, p.dense, p.sparse) for p in d.peaks)) for d in found}
    if len(alike) == 1:
        return replace(found[0], form=" or ".join(d.form for d in found))
    if found:
        listed = "; ".join(d.title for d in found)
        raise UsageError(f"the device {short(name)} is one of {len(found)}: {listed}. Name its form factor, too.")
    short_names = [" ".join(d.title.split()[1:3]) for d in devices()]  # without the vendor and the memory: H100 SXM5
    near = get_close_matches(name, short_names, n=1, cutoff=0.75)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"the device {short(name)} is not in the table of peaks, so it has no peak and no MFU. {hint}"
        "`reconcile mfu peaks` lists the devices; `reconcile mfu --peak` takes another's FLOP/s."
    )


def stated_peak(dtype: str, flops: Printed) -> Peak:
    """A peak that you state yourself. Raises UsageError for one below 1 FLOP/s."""
    if flops.value < 1:
        raise UsageError(f"--peak {short(flops.text)} is less than 1 FLOP/s. Write it as 989T.")
    return Peak(DTYPES.get(dtype, dtype), int(flops.value), datasheet=STATED)


_CPU = re.compile(
    r"cpu\s*:?\s*(?P<cores>[1-9]\d{0,5})\s*cores?\s*[x×,]?\s*(?P<clock>(?=[\d.]*[1-9])\d{1,3}(?:\.\d{1,9})?)\s*GHz\s*[x×,]?\s*"
    r"(?P<fma>[1-9]\d{0,2})\s*FMA\s*[x×,]?\s*"
    r"(?P<bits>128|256|512|1024)\s*bit",
    re.IGNORECASE | re.ASCII,
)
WIDTHS = (("fp64", 64), ("fp32", 32))


def processor(name: str) -> Device | None:
    """A CPU by its cores, clock, FMA units and their width: ``cpu 64 cores 2.45 GHz 2 FMA 256 bit``. None for another name."""
    match = _CPU.fullmatch(name.strip())
    if match is None:
        if re.match(r"cpu\b", name.strip(), re.IGNORECASE):
            raise UsageError(
                f"the device {short(name)} is a CPU, whose peak is computed: write it as "
                "'cpu 64 cores 2.45 GHz 2 FMA 256 bit', the FMA units of a core and their width."
            )
        return None
    whole, _, part = match["clock"].partition(".")
    hertz = int((whole + part).ljust(len(whole) + 9, "0")[: len(whole) + 9])
    lanes = int(match["cores"]) * int(match["fma"]) * hertz * 2
    how = (
        f"{match['cores']} cores x {match['clock']} GHz x {match['fma']} FMA units x {match['bits']} bit, 2 FLOPs each"
    )
    bits = int(match["bits"])
    peaks = tuple(Peak(dtype, lanes * bits // width, datasheet="computed", page=how) for dtype, width in WIDTHS)
    return Device("CPU", "CPU", how, (name.strip(),), peaks, "computed", how, "computed")
