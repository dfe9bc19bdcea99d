"""``read_configuration``: a model from a HuggingFace config.json, run on the meta device with every published formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError, brief

if TYPE_CHECKING:
    from ...adapters.counters.formulas.configured.config_source import Lora
    from ...engine.settle import Collected
    from ...launch.request import RunRequest
    from ...launch.workers.supervisor import Event

SEQ = 2048
"""Tokens of a sequence, by default."""


def framework() -> str:
    """The framework of the formulas: that of language models."""
    from ...core.registry import known_counters

    return next(counter.framework for counter in known_counters().values() if counter.quoted)


def adapters(text: str) -> Lora | None:
    """What ``--lora`` asks for, such as ``16`` or ``16:q_proj,v_proj``. Raises UsageError for anything else."""
    from ...adapters.counters.formulas.configured.config_source import Lora

    rank, colon, names = text.partition(":")
    targets = tuple(names.split(",")) if colon else ()
    if not text:
        return None
    if not (rank.isascii() and rank.isdecimal() and len(rank) < 7 and int(rank) and all(targets)):
        raise UsageError(f"--lora takes a rank, such as 16 or 16:q_proj,v_proj, not {brief(text)}.")
    return Lora(int(rank), targets)


def read_configuration(
    source: Path | Mapping[str, Any],
    batch: int,
    seq: int = 0,
    pass_: str = "training",
    lengths: Sequence[int] = (),
    lora: str = "",
    images: int = 0,
    pixels: Sequence[int] = (),
) -> tuple[RunRequest, str, Callable[[RunRequest, Callable[[Event], None]], Collected]]:
    """The request, the model's name, and how to run it in this process, which allocates nothing.

    ``source`` is a config.json, or what stands in one; ``seq`` is 0 for the default; ``lengths`` are those of documents packed
    into a sequence, ``lora`` is the rank of adapters, "16", or "16:q_proj,v_proj" with the modules that get one, ``images`` are
    those in a sequence, and ``pixels`` their height and width. Raises UsageError for a configuration that no model is made of.
    """
    from ...adapters.counters.formulas.configured.config_source import Sizes
    from ...adapters.counters.formulas.configured.factories import factory
    from ...launch.in_process import collect_live
    from ...launch.request import run_request
    from ...work import load

    load()
    make = factory(source, Sizes(batch, seq, tuple(lengths), images, tuple(pixels)), adapters(lora))
    request = run_request(counters=("formula:all",), pass_=pass_)

    def take(r: RunRequest, tell: Callable[[Event], None]) -> Collected:
        return collect_live({framework(): make}, None, r, tell)

    return request, make.__name__, take
