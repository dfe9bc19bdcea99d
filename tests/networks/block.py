"""What a block of a random network is: a part of a framework's, its output's shape, and its own multiply-adds by closed form.

The forms are written here from the definitions of the layers and share nothing with ``reconcile/work``. A product of two operands
takes as many multiply-adds again for the gradient of each operand that needs one: dA = G B^T and dB = A^T G have the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

Shape = tuple[int, ...]


class Cost(NamedTuple):
    """Multiply-adds of a call, of the gradients by what goes in and by weights, and of what is computed again for them."""

    forward: int = 0
    inputs: int = 0
    weights: int = 0
    again: int = 0

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))

    def __mul__(self, times: int) -> Cost:  # type: ignore[override]
        return Cost(*(a * times for a in self))

    @property
    def backward(self) -> int:
        return self.inputs + self.weights + self.again

    @property
    def step(self) -> int:
        return self.forward + self.backward


NOTHING = Cost()

Form = Callable[[bool, bool], Cost]
"""The cost where (the input needs a gradient, the block's own weights are to get theirs)."""


def product(macs: int, inputs: int = 0, weights: int = 0) -> Cost:
    """One product: how many operands from the input, and how many weights, need a gradient."""
    return Cost(macs, inputs * macs, weights * macs)


def weighed(macs: int) -> Form:
    """A product of the input and one weight."""
    return lambda needs, trained: product(macs, needs, trained)


def repeated(macs: int, times: int = 2) -> Form:
    """Products of the input, and of what each gives, with one weight."""
    return lambda needs, trained: product(macs, needs, trained) + product(macs, needs or trained, trained) * (times - 1)


def free(needs: bool, trained: bool) -> Cost:
    """No product."""
    return NOTHING


@dataclass(frozen=True)
class Block:
    """``part`` is called with a value; ``trained``: it has weights that require gradients; ``passes``: a gradient comes
    through it to its input; ``steps``: it can stand in a training step."""

    name: str
    part: Any
    shape: Shape
    form: Form
    trained: bool = False
    passes: bool = True
    steps: bool = True

    def cost(self, needs: bool, weights: bool = True) -> Cost:
        """Its cost; without ``weights``, only gradients by the input are asked for."""
        return self.form(needs and self.passes, self.trained and weights)

    def gives(self, needs: bool, weights: bool = True) -> bool:
        """Whether its output needs a gradient."""
        return (needs and self.passes) or (self.trained and weights)


def along(blocks: Sequence[Block], needs: bool, weights: bool = True) -> tuple[Cost, bool]:
    """The cost of blocks one after another, and whether their output needs a gradient. None comes to what stands before a block
    that lets none through."""
    total = NOTHING
    last = max((place for place, block in enumerate(blocks) if not block.passes), default=-1)
    for place, block in enumerate(blocks):
        total += block.cost(needs, weights) if place >= last else block.cost(False, False)
        needs = block.gives(needs, weights) and place >= last
    return total, needs


Make = Callable[[Any, Shape], Block | None]
"""Draws a block for a value of a shape; None where none fits."""


def residual(rng: Any, makes: Sequence[Make], shape: Shape, add: Callable[[list[Block]], Any]) -> Block | None:
    """A part that ``add`` makes of blocks which keep the shape: it adds what they give to its input."""
    for _ in range(5):
        blocks = chain(rng, makes, shape, 2)
        if blocks and blocks[-1].shape == shape:
            return around("residual", add(blocks), blocks)
    return None


class Makes(list[Make]):
    """A list of makes, and the decorator that adds one to it."""

    def __call__(self, make: Make) -> Make:
        self.append(make)
        return make


def around(name: str, part: Any, blocks: Sequence[Block], **more: Any) -> Block:
    """One block whose part runs these: what they cost and give one after another, but for the fields in ``more``."""
    made = Block(
        f"{name}({', '.join(b.name for b in blocks)})", part, blocks[-1].shape, lambda n, t: along(blocks, n, t)[0],
        any(b.trained for b in blocks), all(b.passes for b in blocks), all(b.steps for b in blocks),
    )  # fmt: skip
    return replace(made, **more)


LARGEST = 2000
"""Elements that a value may have."""


def chain(rng: Any, makes: Sequence[Make], shape: Shape, longest: int) -> list[Block]:
    """Blocks one after another."""
    found: list[Block] = []
    for _ in range(rng.randint(1, longest)):
        block = drawn(rng, makes, found[-1].shape if found else shape)
        if block is None:
            break
        found.append(block)
    return found


def drawn(rng: Any, makes: Sequence[Make], shape: Shape) -> Block | None:
    """A block for this shape, None if none was found."""
    for _ in range(20):
        block = rng.choice(makes)(rng, shape)
        size = 1
        for extent in block.shape if block is not None else (0,):
            size *= extent
        if block is not None and 0 < size <= LARGEST:
            return block
    return None


def named(blocks: Sequence[Block]) -> str:
    """What a network is made of, in a line."""
    return " > ".join(f"{block.name}{list(block.shape)}" for block in blocks)


def start(rng: Any) -> Shape:
    """The shape of an input whose channels are last."""
    batch = rng.randint(1, 3)
    shapes: list[Shape] = [
        (batch, rng.randint(1, 6)),
        (batch, rng.randint(2, 6), rng.randint(1, 6)),
        (batch, rng.randint(2, 6), rng.randint(1, 6)),
        (batch, rng.randint(3, 7), rng.randint(3, 7), rng.randint(1, 4)),
    ]
    found: Shape = rng.choice(shapes)
    return found
