"""Random networks whose blocks know their own multiply-adds, in each framework: an input is the seed of one."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

from .harness import Target, Wrong, drawn

FIRST = range(5)
"""Seeds whose networks are run before the first input: a framework loads much as it is first used."""


def seeds(rng: Any) -> bytes:
    """The seed of a network."""
    return str(rng.randrange(2**40)).encode()


def ready(framework: str) -> None:
    from tests.networks import net

    warnings.simplefilter("ignore")
    for seed in FIRST:
        net.draw(framework, seed)


def check(framework: str, data: bytes, folder: Path) -> None:
    """Draw it and run the counters; what differs says how to replay it with ``python -m tests.networks``."""
    from tests.networks import net

    try:
        net.check(net.draw(framework, int(data)))
    except net.Wrong as error:
        raise Wrong(str(error)) from error


TARGETS = tuple(
    Target(
        f"networks_{framework}", lambda: drawn(seeds), partial(check, framework), partial(ready, framework),
        seconds=120.0, memory=6 << 30, watched=False, needs=framework,
    )
    for framework in ("jax", "tf", "torch")
)  # fmt: skip
