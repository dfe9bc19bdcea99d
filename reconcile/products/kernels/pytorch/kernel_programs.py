"""Counts the products of a kernel that Triton compiled, from its program (TTIR): each ``tt.dot``, by its loops and the grid.

Only whole numbers that decide are computed, bounds of loops and conditions, from the kernel's arguments and its place. Where a
value from memory decides, or what is not read here may multiply, that is said. Syntax: MLIR's text as Triton 3 writes it.
"""

from __future__ import annotations

import operator
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

MOST = 100_000
"""So many places and turns of loops are followed one by one."""
MATTERS = re.compile(r"dot|mma|tt\.call|inline_asm|^cf\.|^\^|^tt\.return")
"""Operations that multiply, or may (calls of functions, assembler), and jumps, their labels and ends."""
OPERATION = re.compile(r'(?:(%\w+)(?::(\d+))? = )?"?([\w.^]+)"?(.*)')
LOOP = re.compile(r"(%\w+) = (%[\w#]+) to (%[\w#]+) step (%[\w#]+)")


def _divide(a: int, b: int) -> int:
    """Towards 0."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "xor")},
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "and": operator.and_, "or": operator.or_, "shl": operator.lshift, "shr": operator.rshift, "min": min, "max": max,
    "div": _divide, "rem": lambda a, b: a - b * _divide(a, b), "floordiv": operator.floordiv, "ceildiv": lambda a, b: -(-a // b),
}  # fmt: skip
"""Operations on two whole numbers, without the letters for their types: arith.addi, arith.minsi, arith.cmpi slt."""

Block = tuple[tuple[int, ...], str]
"""A block's shape and type."""


class CannotRead(Exception):
    """What decides, or may multiply, and is not read here."""


class _AsksForPlace(Exception):
    """Something that decides depends on the place along an axis of the grid."""


class Region(list[Any]):
    """The operations of a region, in their order."""

    @cached_property
    def made_by(self) -> dict[str, Operation]:
        """The operation that computes each value."""
        return {result: op for op in self for result in op.results}

    @cached_property
    def steps(self) -> list[Operation]:
        """What multiplies, or may, or has such operations inside, and jumps."""
        return [op for op in self if MATTERS.search(op.name) or any(region.steps for region in op.regions)]


class Operation(NamedTuple):
    """A line of a program, with the regions that belong to it."""

    results: list[str]
    name: str
    text: str
    regions: list[Region]

    def operands(self) -> list[str]:
        """The values that it names."""
        return re.findall(r"%[\w#]+", self.text.partition(" : ")[0])


class Program(NamedTuple):
    """A kernel: its arguments, by the program's names and by its author's, and its operations."""

    arguments: dict[str, str]
    body: Region


@lru_cache(maxsize=128)
def read_program(text: str) -> Program:
    """The kernel of a module. Raises CannotRead if there are several functions."""
    arguments: dict[str, str] = {}
    stack = [Region()]
    for line in map(str.strip, text.splitlines()):
        if line.startswith("tt.func"):
            if stack != [Region()]:
                raise CannotRead("tt.call")
            arguments = dict(re.findall(r'(%\w+): [^%]*?loc\("([^"]+)"', line))
        elif line.startswith("}"):
            stack = stack[:-1] if len(stack) > 1 else stack
            if line.endswith("{"):  # else, do
                stack[-1][-1].regions.append(Region())
                stack.append(stack[-1][-1].regions[-1])
        elif line and not line.startswith(("#", "module", "^bb0")):
            name, count, kind, rest = OPERATION.match(re.sub(r" loc\(.*\)$", "", line)).groups()  # type: ignore[union-attr]
            results = [f"{name}#{place}" for place in range(int(count))] if count else [name] * bool(name)
            stack[-1].append(Operation(results, kind, rest, [Region()] if line.endswith("{") else []))
            if line.endswith("{"):
                stack.append(stack[-1][-1].regions[0])
    return Program(arguments, stack[0])


class _Scope:
    """The values of a region: those that are computed, what computes the others, and the region around."""

    def __init__(self, region: Region, around: _Scope | None, values: dict[str, Any]) -> None:
        self.around, self.values, self.made_by = around, values, region.made_by


def _list_carried(op: Operation) -> dict[str, str]:
    """What a loop hands on from turn to turn, and what that is at first."""
    return dict(re.findall(r"(%\w+) = (%[\w#]+)", op.text.partition("iter_args(")[2]))


class _Place:
    """One run of a kernel at a place of the grid, of which only the axes are known that it asked for."""

    def __init__(self, grid: Sequence[int], at: Mapping[int, int], budget: list[int]) -> None:
        self.grid, self.at, self.budget = grid, at, budget
        self.spend()

    def spend(self) -> None:
        """One more place, or turn of a loop."""
        self.budget[0] -= 1
        if self.budget[0] < 0:
            raise CannotRead(f"more than {MOST:,} places and turns of loops")

    def value(self, name: str, scope: _Scope | None) -> int:
        """A whole number."""
        while scope is not None:
            if name not in scope.values and name in scope.made_by:
                op = scope.made_by[name]
                scope.values[name] = self.compute(op, op.results.index(name), scope)
            if name in scope.values:
                if isinstance(scope.values[name], int):
                    return int(scope.values[name])
                raise CannotRead(str(scope.values[name] or name))
            scope = scope.around
        raise CannotRead(name)

    def attempt(self, name: str, scope: _Scope) -> Any:
        """A whole number, or what it depends on that is not read."""
        try:
            return self.value(name, scope)
        except CannotRead as error:
            return str(error)

    def compute(self, op: Operation, which: int, scope: _Scope) -> Any:
        """One of an operation's results."""
        dialect, _, kind = op.name.partition(".")
        if op.name in ("tt.get_program_id", "tt.get_num_programs"):
            axis = "xyz".index(op.text.strip()[0])
            size = self.grid[axis] if axis < len(self.grid) else 1
            if kind == "get_num_programs" or size == 1:
                return size if kind == "get_num_programs" else 0
            if axis not in self.at:
                raise _AsksForPlace(axis)
            return self.at[axis]
        if op.name == "arith.constant":
            found = re.match(r" (?:(true)|(false)|(-?\d+) : i)", op.text)
            return str(op.name) if found is None else int(found[3] or bool(found[1]))
        if op.name == "scf.for":
            last = deque(self.turn(op, scope), maxlen=1)
            names = op.regions[0][-1].operands() if last else list(_list_carried(op).values())
            return self.value(names[which], last[0] if last else scope)
        given = op.operands()
        if op.name in ("scf.if", "arith.select"):
            chosen = 0 if self.value(given[0], scope) else 1
            if op.name == "arith.select":
                return self.value(given[1 + chosen], scope)
            inside = _Scope(op.regions[chosen], scope, {})
            return self.value(op.regions[chosen][-1].operands()[which], inside)
        as_it_is = re.fullmatch(r"extsi|extui|trunci|index_castu?i?", kind)
        unsigned = kind.endswith("ui") or op.text.startswith(" u")
        kind = op.text.split(",")[0].strip(" su") if kind == "cmpi" else re.sub(r"(?<=..)[su]?i$", "", kind)
        if dialect != "arith" or not (as_it_is or kind in ARITHMETIC):
            raise CannotRead(op.name)
        numbers = [self.value(name, scope) for name in given[: 1 if as_it_is else 2]]
        if (unsigned and min(numbers) < 0) or (kind.endswith(("div", "rem")) and not numbers[1]):
            raise CannotRead(op.name)
        return numbers[0] if as_it_is else int(ARITHMETIC[kind](*numbers))

    def turns_of(self, op: Operation, scope: _Scope) -> range:
        """The values that a loop counts through."""
        first, end, step = (self.value(name, scope) for name in LOOP.findall(op.text)[0][1:])
        return range(first, end, step)

    def turn(self, op: Operation, scope: _Scope) -> Iterator[_Scope]:
        """Each turn of a loop."""
        carried = _list_carried(op)
        state = [self.attempt(first, scope) for first in carried.values()]
        for at in self.turns_of(op, scope):
            self.spend()
            (body,) = op.regions
            inside = _Scope(body, scope, {**dict(zip(carried, state, strict=False)), LOOP.findall(op.text)[0][0]: at})
            yield inside
            state = [self.attempt(name, inside) for name in body[-1].operands()] if carried else []

    def count(self, region: Region, scope: _Scope) -> Counter[tuple[Block, ...]]:
        """The products that run in a region."""
        found: Counter[tuple[Block, ...]] = Counter()
        place = 0
        while place < len(region.steps):
            op, place = region.steps[place], place + 1
            if op.name == "tt.dot":
                blocks = re.findall(r"tensor<((?:\d+x)+)(\w+)>", op.text)
                if len(blocks) != 3:
                    raise CannotRead(op.text)
                found[tuple((tuple(map(int, sizes.split("x")[:-1])), kind) for sizes, kind in blocks)] += 1
            elif op.name == "scf.if":
                chosen = 0 if self.value(op.operands()[0], scope) else 1
                for branch in op.regions[chosen : chosen + 1]:
                    found += self.count(branch, _Scope(branch, scope, {}))
            elif op.name == "scf.for":
                (body,) = op.regions
                if any(inner.regions for inner in body.steps):
                    for inside in self.turn(op, scope):
                        found += self.count(body, inside)
                else:
                    turns = len(self.turns_of(op, scope))
                    once = self.count(body, _Scope(body, scope, {}))
                    found += Counter({dot: turns * times for dot, times in once.items()})
            elif op.name in ("cf.br", "cf.cond_br") and "(" not in op.text:
                self.spend()
                labels = re.findall(r"\^\w+", op.text)
                label = labels[op.name == "cf.cond_br" and not self.value(op.operands()[0], scope)]
                place = [step.name for step in region.steps].index(label)
            elif op.name == "tt.return":
                break
            elif not op.name.startswith("^") or "(" in op.text.partition("//")[0]:
                raise CannotRead(op.name)
        return found


def count_dots(text: str, given: Mapping[str, Any], grid: Sequence[int]) -> Counter[tuple[Block, ...]]:
    """How often each product ran in a launch with these arguments. Raises CannotRead, with the operation that is in the way."""
    program, budget = read_program(text), [MOST]
    values = {name: given.get(own, own) for name, own in program.arguments.items()}
    values = {name: value if isinstance(value, int) else f"the argument {name[1:]}" for name, value in values.items()}

    def count_at(at: dict[int, int]) -> Counter[tuple[Block, ...]]:
        try:
            found = _Place(grid, at, budget).count(program.body, _Scope(program.body, None, dict(values)))
        except _AsksForPlace as asked:
            axis, whole = int(asked.args[0]), Counter[tuple[Block, ...]]()
            for place in range(grid[axis]):
                whole.update(count_at({**at, axis: place}))
            return whole
        others = prod(size for axis, size in enumerate(grid) if axis not in at)
        return Counter({dot: times * others for dot, times in found.items()})

    return count_at({})
