"""Conventions, named or from users' TOML files: integer weights that turn the components of Work into FLOPs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import mul
from pathlib import Path

from . import user_files
from .errors import UsageError, short
from .work import COMPONENTS, MASKED, Work, counts


@dataclass(frozen=True, slots=True)
class Convention:
    """A name and the weights that it stands for: FLOPs = sum of weight x component.

    Attributes:
        name: Its name, which a report shows and ``--convention`` takes.
        mac: FLOPs for each multiply-add.
        accumulators: FLOPs for each dot product: negative where its first add is saved.
        add: FLOPs for each addition or subtraction outside of multiply-adds.
        mul: FLOPs for each multiplication outside of multiply-adds.
        div: FLOPs for each division.
        cmp: FLOPs for each comparison.
        special: FLOPs for each call of a transcendental or rounding function.
        meaning: What it counts, in a sentence for reports; '' if nothing says so.
        masked: FLOPs for each multiply-add that a causal mask discards: negative where these are left out.
    """

    name: str
    mac: int = 0
    accumulators: int = 0
    add: int = 0
    mul: int = 0
    div: int = 0
    cmp: int = 0
    special: int = 0
    meaning: str = ""
    masked: int = 0

    @property
    def components(self) -> tuple[str, ...]:
        """The components that it has weights for, those of weight 0 included."""
        return (*COMPONENTS, MASKED) if self.masked else COMPONENTS

    def weight(self, component: str) -> int:
        """FLOPs per unit of one Work component."""
        value: int = getattr(self, component)
        return value

    @property
    def weights(self) -> dict[str, int]:
        """The weight of each of its ``components``."""
        return {name: self.weight(name) for name in self.components}

    def weighs(self, components: Iterable[str]) -> bool:
        """Whether any of these components has a weight: if they are unknown, so are the FLOPs under the convention."""
        return any(self.weight(name) for name in components)

    def flops(self, work: Work) -> int:
        """FLOPs of this work under the convention."""
        return sum(map(mul, counts(self), counts(work)))


HEAVIEST = 10**9
"""The largest weight allowed."""
LONGEST = 100
"""The most characters a name may have."""

_ONES = {"add": 1, "mul": 1, "div": 1, "cmp": 1, "special": 1}

MATMUL = Convention("matmul", mac=2, meaning="2 per multiply-add of matrix products and convolutions, nothing else.")
ALL = Convention("all", mac=2, **_ONES, meaning="Every floating-point operation at 1, a multiply-add at 2.")
TEXTBOOK = Convention(
    "textbook",
    mac=2,
    accumulators=-1,
    **_ONES,
    meaning="As `all`, but a dot product of K terms is K products and K - 1 adds.",
)

CAUSAL = Convention(
    "causal",
    mac=2,
    masked=-2,
    meaning="2 per multiply-add of matrix products and convolutions, nothing else; "
    "causal attention: only products that are not masked.",
)

BUILT_IN = {c.name: c for c in (MATMUL, ALL, TEXTBOOK)}
"""The conventions of every report."""
NAMED = {**BUILT_IN, CAUSAL.name: CAUSAL}
"""The conventions of every report, and those that a report has only if you choose them."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """The conventions of a run: the ``chosen`` one, and ``every`` one under which a total is given, by name."""

    chosen: Convention
    every: Mapping[str, Convention] = field(default_factory=lambda: BUILT_IN)


def load_conventions(path: Path) -> dict[str, Convention]:
    """Read user conventions from TOML: one table per convention, components as integer weights.

    Raises UsageError, naming the file, table and key, for anything that is not such a table, and for weights under which some
    work would have negative FLOPs.
    """
    return {
        name: _convention(path, name, table)
        for name, table in user_files.read_toml(path, "the convention file").items()
    }


def _convention(path: Path, name: str, table: object) -> Convention:
    where = f"the convention file {path}, table {short(name)}"
    if name in NAMED:
        raise UsageError(f"{where}: this name is built in and cannot be redefined; choose another.")
    if not name.isprintable() or not name.strip() or len(name) > LONGEST:
        raise UsageError(f"{where}: a name must have 1 to {LONGEST} printable characters.")
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expected a table such as [NAME] with lines like `mac = 2`.")
    for key, value in table.items():
        _check(where, key, value)
    convention = Convention(name, **table)
    if convention.mac + convention.accumulators < 0:
        raise UsageError(
            f"{where}: accumulators must be at least {-convention.mac}, not {convention.accumulators}: a dot product of one term "
            f"is one multiply-add, which mac weighs {convention.mac}, so it would come to less than 0 FLOPs."
        )
    return convention


def _check(where: str, key: str, value: object) -> None:
    """Raise UsageError for an unknown key or an invalid weight."""
    allowed = (*COMPONENTS, "meaning")
    if key not in allowed:
        import difflib

        near = difflib.get_close_matches(key, allowed, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{where}: unknown component {short(key)}; the components are {', '.join(COMPONENTS)}.{hint}")
    if key == "meaning":
        if not isinstance(value, str):
            raise UsageError(f"{where}: meaning must be text, not {short(value)}.")
    elif not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{where}: {key} must be an integer weight, not {short(value)}.")
    elif abs(value) > HEAVIEST:
        raise UsageError(f"{where}: {key} must be a weight of at most {HEAVIEST:,}, not {short(value)}.")
    elif value < 0 and key != "accumulators":
        raise UsageError(f"{where}: {key} must be 0 or more, not {value}: no work has less than 0 FLOPs.")


def conventions_of(chosen: str, files: Iterable[Path] = ()) -> Conventions:
    """The built-in conventions, the chosen one if it is another, and those of these files. Raises UsageError for an unknown
    name, and what ``load_conventions`` raises."""
    every = dict(BUILT_IN)
    if chosen in NAMED:
        every[chosen] = NAMED[chosen]
    for file in files:
        every.update(load_conventions(file))
    return Conventions(choose(chosen, every), every)


def choose(name: str, conventions: Mapping[str, Convention]) -> Convention:
    """The convention with this name. Raises UsageError that suggests the nearest names."""
    if name in conventions:
        return conventions[name]
    from .errors import unknown

    raise unknown("convention", name, {**NAMED, **conventions})
