"""Samples of a picture in loops over numbers that count, and calls of torchvision's operators as records."""

from __future__ import annotations

import itertools
import math

import torch

from tests.work.counting import Num
from tests.work.torch_records import record

BOTH = tuple(itertools.product((0, 1), repeat=2))


def called(ops, name, *arguments):
    """(results, record) of a call of one operator."""
    (op,) = record(getattr(ops, name), *arguments)
    assert op.op == f"torchvision.{name}"
    with torch.no_grad():
        return getattr(ops, name)(*arguments), op


def gradients(function, g, *wanted):
    """By autograd, of the first result; 0 for what it does not read."""
    wanted = [t.requires_grad_() for t in map(torch.from_numpy, wanted)]
    out = function(*wanted)
    found = torch.autograd.grad(
        out[0] if isinstance(out, tuple) else out, wanted, torch.from_numpy(g), allow_unused=True
    )
    return [torch.zeros_like(t) if d is None else d for t, d in zip(wanted, found, strict=True)]


def located(place):
    """(floor, (weight of the low neighbour, of the high one))"""
    low = place.special(math.floor)
    high = place - low
    return int(low.value), (1.0 - high, high)


def read(picture, y, x):
    inside = 0 <= y < picture.shape[0] and 0 <= x < picture.shape[1]
    return picture[y, x] if inside else Num(0.0, picture.flat[0].tally)


def neighbours(picture, y, x):
    return {(i, j): read(picture, y[0] + i, x[0] + j) for i, j in BOTH}


def add_to(target, index, value):
    """Into an array, or into nothing outside of it: counted both times."""
    inside = all(0 <= i < n for i, n in zip(index, target.shape, strict=True))
    if inside:
        target[index] = target[index] + value
    else:
        value.tally["add"] += 1
