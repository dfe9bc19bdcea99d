"""Multiply-adds of a GPU's convolution kernels, by their launches (ncu.py): implicit GEMMs, and GEMMs for 1 x 1 filters."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from .ncu import Launch
from .tiles import Case, Product, Shape, Tile, multiplies_whole_grid, padded_product, round_up, tile, tiled_product


@dataclass(frozen=True, slots=True)
class Sizes:
    """A convolution without groups: images, channels and positions of the data and of the result, taps of the kernel."""

    images: int
    read: int
    made: int
    data: int
    out: int
    taps: int

    @property
    def macs(self) -> int:
        return self.images * self.out * self.made * self.taps * self.read


def sizes_of(case: Case) -> Sizes | None:
    """The Sizes of a convolution or its gradient; None with groups, or transposed."""
    if len(case.inputs) < 2 or not (case.backward or case.outputs):
        return None
    out: Shape
    data, weight, out = (
        (case.inputs[1], case.inputs[2], case.inputs[0]) if case.backward else (*case.inputs[:2], case.outputs[0])
    )
    if weight[1] != data[1] or weight[0] != out[1]:
        return None
    return Sizes(data[0], data[1], out[1], prod(data[2:]), prod(out[2:]), prod(weight[2:]))


def implicit(launch: Launch, case: Case) -> Product | None:
    """A kernel that gathers the factors of its product while it multiplies: of the result, of a gradient."""
    s, t = sizes_of(case), tile(launch)
    if s is None or t is None:
        return None
    kind = next((kind for kind in ("wgrad", "dgrad", "fprop") if kind in launch.name.lower()), "")
    made = {"fprop": _result, "dgrad": _data, "wgrad": _weights}.get(kind)
    if made is None or case.backward == (kind == "fprop"):
        return None
    macs = made(launch, s, t)
    return None if macs is None else padded_product(s.macs, macs, t)


def _tiles(launch: Launch, t: Tile, rows: int, columns: int) -> int:
    """Positions of the results that the tiles have."""
    return (
        prod(launch.grid) * t.rows * t.columns
        if multiplies_whole_grid(launch)
        else round_up(rows, t.rows) * round_up(columns, t.columns)
    )


def _result(launch: Launch, s: Sizes, t: Tile) -> int:
    """Positions by channels, over taps and channels: the taps together with channels first, one by one with channels last."""
    first = "nchwkcrs" in launch.short
    depth = round_up(s.taps * s.read, t.depth) if first else s.taps * round_up(_channels(launch, s.read), t.depth)
    return _tiles(launch, t, s.images * s.out, s.made) * depth


def _data(launch: Launch, s: Sizes, t: Tile) -> int | None:
    """Positions of the data by its channels. With a stride, positions fall into classes that meet different taps, all of them
    once.
    """
    classes, rest = divmod(s.data, s.out)
    if rest:
        return None
    depth = s.taps * round_up(s.made, t.depth)
    if multiplies_whole_grid(launch):
        return prod(launch.grid) * t.rows * t.columns * depth // classes
    return round_up(s.images * s.data // classes, t.rows) * round_up(s.read, t.columns) * depth


def _weights(launch: Launch, s: Sizes, t: Tile) -> int:
    """Channels by taps and channels, over positions, which may be split into parts of whole tiles."""
    parts = 1 if multiplies_whole_grid(launch) else launch.grid[2]
    depth = parts * round_up(ceil(s.images * s.out / parts), t.depth)
    return _tiles(launch, t, s.made, s.taps * _channels(launch, s.read)) * depth


def _channels(launch: Launch, channels: int) -> int:
    """Channels of data that lie last: cuDNN pads them to 16 bytes for CUTLASS."""
    if "cutlass" not in launch.name:
        return channels
    return round_up(channels, 4 if "tfloat32" in launch.name or "s1688" in launch.name else 8)


def pointwise(launch: Launch, case: Case) -> Product | None:
    """A kernel of 1 x 1 as a product of matrices for each image: the result; the gradients of data and weights, in this order."""
    s = sizes_of(case)
    if s is None or s.taps != 1 or s.data != s.out:
        return None
    if not case.backward:
        return tiled_product(launch, s.images, s.made, s.out, s.read)
    if case.before == 0:
        return tiled_product(launch, s.images, s.read, s.out, s.made)
    return tiled_product(launch, s.images, s.made, s.read, s.out) if case.before == 1 else None
