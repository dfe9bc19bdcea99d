"""The named sizes of a model (``--at T=16..96``): parsing, use in --input and --set, and the values that are run."""

from __future__ import annotations

import itertools
import keyword
import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...core.errors import UsageError, brief, short
from ...core.numbers import SIZE, integer, no_size
from ...launch.request import Point
from ...launch.user_models import read_inputs, split_owner

FORM_OF_RANGES = (
    "Write NAME=LO..HI, NAME=LO..HI/STEP or a list of sizes, such as B=1..4, S=32..256/32 or T=16,32,64,128,256."
)
FEWEST = 3
"""The fewest values of a variable: two for a line, and another that shows whether it is one."""
NODES = 6
"""The values along each axis that determine the degree of the counts: up to 4, and one more to check it."""
DRAWS = 60
"""How many points are drawn to find HELD_OUT new ones among them."""
SMALL = 1000
"""The most points of ranges that are small enough to try each of them."""
HELD_OUT = 3
"""How many points are kept out of every fit, to check all polynomials on them."""

At = tuple[int, ...]
"""A value per variable."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A name and the sizes that it stands for, in ascending order; ``text`` is how the user wrote them."""

    name: str
    values: Sequence[int]
    text: str


def read_variables(texts: Sequence[str]) -> tuple[Variable, ...]:
    """Every ``--at``. Raises UsageError for one that cannot be read, and for a name given twice."""
    if not texts:
        raise UsageError(
            "name a size that varies: give --at T=16..96, and T as a size of --input or as a value of --set."
        )
    variables = tuple(map(_parse_variable, texts))
    names = [variable.name for variable in variables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"--at gives {short(twice)} twice.")
    return variables


def texts_of(ranges: Mapping[str, object]) -> tuple[str, ...]:
    """The words of ``--at`` for names with their sizes: a text such as ``16..96``, a range, or a list."""
    return tuple(f"{name}={_text(sizes)}" for name, sizes in ranges.items())


def _text(sizes: object) -> str:
    if isinstance(sizes, range) and sizes and sizes.step > 0:
        return f"{sizes[0]}..{sizes[-1]}{f'/{sizes.step}' if sizes.step > 1 else ''}"
    return ",".join(map(str, sizes)) if isinstance(sizes, Iterable) and not isinstance(sizes, str) else str(sizes)


def _parse_variable(text: str) -> Variable:
    def wrong(why: str) -> UsageError:
        return UsageError(f"--at {short(text)} cannot be read: {why}. {FORM_OF_RANGES}")

    name, equals, rest = (part.strip() for part in text.partition("="))
    if not equals:
        raise wrong("it has no =")
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise wrong(f"{short(name)} is not a name that a formula can use")
    low, dots, high = rest.partition("..")
    high, slash, step = high.partition("/")
    sizes = [low, high, *([step] if slash else [])] if dots else rest.split(",")
    numbers = []
    for size in sizes:
        number = integer(size, 1, SIZE)
        if number is None:
            raise wrong(no_size(size))
        numbers.append(number)
    values: Sequence[int] = tuple(sorted(set(numbers)))
    if dots:
        values = range(numbers[0], numbers[1] + 1, numbers[2] if slash else 1)
    if len(values) < FEWEST:
        raise wrong(f"it has {len(values)} sizes, and a polynomial of {brief(name)} takes at least {FEWEST}")
    return Variable(name, values, rest)


@dataclass(frozen=True, slots=True)
class Template:
    """The inputs and the overrides of a model with names for some sizes: ``ids=B,T:int64``, ``units=H``."""

    variables: tuple[Variable, ...]
    inputs: tuple[str, ...]
    overrides: Mapping[str, str]

    def __post_init__(self) -> None:
        """Raise UsageError for a name without sizes, and for a variable that is not used."""
        names = {variable.name for variable in self.variables}
        used = {value for value in self.overrides.values() if value in names}
        for text in self.inputs:
            for size in _sizes(text)[1]:
                if size.isidentifier() and size not in names:
                    raise UsageError(f"--input {short(text)}: {size} has no sizes; give them with --at {size}=LO..HI.")
                used |= {size} & names
        unused = next((variable.name for variable in self.variables if variable.name not in used), None)
        if unused is not None:
            raise UsageError(
                f"--at {unused}: neither --input nor --set uses {unused}; write it in place of a size, such as "
                f"--input {unused},3,224,224 or --set batch={unused}."
            )
        self.point(tuple(variable.values[0] for variable in self.variables))

    def point(self, at: At) -> Point:
        """The model at these values. Raises UsageError for an input that cannot be read."""
        values = {variable.name: str(value) for variable, value in zip(self.variables, at, strict=True)}
        texts = []
        for text in self.inputs:
            before, sizes, after = _sizes(text)
            texts.append(before + ",".join(values.get(size, size) for size in sizes) + after)
        overrides = {name: values.get(value, value) for name, value in self.overrides.items()}
        return Point(overrides, read_inputs(texts))


def _sizes(text: str) -> tuple[str, list[str], str]:
    """An input's name with =, its sizes, and its dtype with the colon."""
    owner, own = split_owner(text)
    name, equals, rest = own.rpartition("=")
    shape, colon, dtype = rest.partition(":")
    return (
        owner + name + equals,
        [size.strip(" ()") if size.strip() != "()" else "()" for size in shape.split(",")],
        colon + dtype,
    )


def nodes(variables: Sequence[Variable]) -> tuple[tuple[int, ...], ...]:
    """The values of each variable that counts are fitted at: consecutive ones, in which a stride or a window shows.

    Raises UsageError for a range that leaves no values to check the fit with.
    """
    if len(variables) == 1 and len(variables[0].values) < HELD_OUT + 2:
        only = variables[0]
        raise UsageError(
            f"--at {only.name}={brief(only.text)} has {len(only.values)} sizes: give at least {HELD_OUT + 2}, two for a "
            f"line and {HELD_OUT} to check it with."
        )
    kept = HELD_OUT if len(variables) == 1 else 0
    return tuple(tuple(v.values[: min(NODES, len(v.values) - kept)]) for v in variables)


def held_out(variables: Sequence[Variable], fitted: Collection[At]) -> list[At]:
    """Points to check a fit with: the largest values, and others from anywhere in the ranges.

    Raises UsageError if the ranges have too few points besides the fitted ones.
    """
    chosen = dict.fromkeys([tuple(v.values[-1] for v in variables)])
    drawn = random.Random(0)
    for _ in range(DRAWS):
        chosen[tuple(drawn.choice(v.values) for v in variables)] = None
    if math.prod(len(v.values) for v in variables) <= SMALL:
        chosen |= dict.fromkeys(itertools.product(*(v.values for v in variables)))
    left = [at for at in chosen if at not in fitted][:HELD_OUT]
    if len(left) < HELD_OUT:
        ranges = ", ".join(f"{v.name}={brief(v.text)}" for v in variables)
        raise UsageError(
            f"--at {ranges}: the fit takes {len(fitted)} of these points and leaves fewer than {HELD_OUT} to check it "
            "with: give wider ranges."
        )
    return left
