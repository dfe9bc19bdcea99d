"""Makes the arguments of a model of diffusers small: fewer layers, fewer heads of the same size, channels in the same ratios.

Arguments that agree still agree afterwards: the size of a head is kept, as positions are split along it, and every width that
is heads times that size shrinks with the heads.  A rule says how to build a model, never how to count it; no rule knows a model.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .shrink import is_integer

LAYERS = re.compile(r"(^|_)n?(layers?|blocks?|depths?)$|layers_per_\w+$|blocks_per_\w+$|num_layer\w*blocks$")
HEADS = re.compile(r"heads$")
HEAD_SIZE = re.compile(r"head_(dim|size)$|dim_heads?$|head_width$")
CHANNELS = re.compile(r"channels$")
BASE = re.compile(r"(^|_)(ch|channels|base_dim|encoder_dim|decoder_dim|dec_dim|enc_dim|encoder_hidden_size)$")
WIDTH = re.compile(r"(hidden_size|dim|d_model|width|dim_\w+)$")
NO_WIDTH = re.compile(r"head|freq|fourier|rope|rotary|z_dim|latent|time_proj|_cond|in_")
DATA = re.compile(r"(^|_)(in|out|input|output|audio|latent|num)_channels$")
SAMPLE = re.compile(r"^sample_(size|height|width)$")
ORDINALS = re.compile(r"(layer|block)_(ids|indices)$")
OPEN = {"in_channels": 32, "patch_size": 2, "num_embeds_ada_norm": 1000, "sample_size": 16, "caption_channels": 64,
        "cross_attention_dim": 64, "conditioning_channels": 3, "addition_time_embed_dim": 32, "out_channels": 4}  # fmt: skip
"""Values for arguments that are None by default and that some models do not do without."""


@dataclass(frozen=True)
class Step:
    """How far named arguments are shrunk.

    ``channels`` is what every number of channels stays a multiple of, 0 if they are kept; ``layers`` is how many are left;
    ``filled`` are the arguments that get a value where they are None by default, and ``divisor`` divides widths that no
    number of heads explains.
    """

    channels: int
    layers: int = 1
    filled: tuple[str, ...] = ()
    divisor: int = 1
    heads: bool = True


STEPS = (
    Step(32),
    Step(64),
    Step(32, filled=("in_channels",)),
    Step(32, filled=tuple(OPEN)),
    Step(32, filled=tuple(name for name in OPEN if name != "cross_attention_dim")),
    Step(32, layers=2, divisor=8),
    Step(0, layers=2),
    Step(0, heads=False),
    Step(0, heads=False, filled=tuple(OPEN)),
)
"""The rules to try, the smallest model first; after them come the defaults."""


def smaller(defaults: Mapping[str, Any], step: Step | None) -> dict[str, Any]:
    """The arguments that replace defaults; one without a default gets a value in any case."""
    changes = {name: _require_module(name) for name, value in defaults.items() if value is inspect.Parameter.empty}
    if step is not None:
        values = {name: value for name, value in defaults.items() if name not in changes}
        new = {name: _new(name, values, step) for name in values}
        changes.update((name, value) for name, value in new.items() if value != values[name])
    return changes


def _require_module(name: str) -> Any:
    if name == "block_out_channels":
        return (32, 64)
    if name.endswith("_channels"):
        return 16 if "latent" in name else 3
    return 1 if LAYERS.search(name) else 2 if "ratio" in name else 64


def _new(name: str, values: Mapping[str, Any], step: Step) -> Any:
    value = values[name]
    if value is None:
        return OPEN.get(name) if name in step.filled else None
    if LAYERS.search(name) and not _is_rising(value):
        return _each(value, lambda item: min(item, step.layers))
    if ORDINALS.search(name) or (LAYERS.search(name) and _is_rising(value)):
        return type(value)(item for item in value if item < step.layers)
    if SAMPLE.search(name) and is_integer(value):
        return min(value, 32)
    if HEADS.search(name):
        return _each(value, lambda item: item // _factor(values) if step.heads else item)
    if HEAD_SIZE.search(name):
        return value
    if isinstance(value, (list, tuple)):
        ratio = _ratio(values, step.channels)
        return _each(value, lambda item: item // ratio) if _is_channels(name, value, step.channels) else value
    if step.channels and BASE.search(name) and not DATA.search(name) and is_integer(value):
        return min(value, step.channels) if value % step.channels == 0 else value
    return _width(name, value, values, step) if is_integer(value) else value


def _is_rising(value: Any) -> bool:
    """Whether it says which layers, not how many."""
    return (
        isinstance(value, (list, tuple))
        and len(value) > 1
        and list(value) == sorted(set(map(int, _numbers(value))) | {0})
    )


def _each(value: Any, change: Any) -> Any:
    """A number, or every one of a sequence, changed; anything else as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(_each(item, change) for item in value)
    return change(value) if is_integer(value) and value > 0 else value


def _numbers(value: Any) -> Iterator[int]:
    for item in value if isinstance(value, (list, tuple)) else (value,):
        if is_integer(item) and item > 0:
            yield item


def _factor(values: Mapping[str, Any]) -> int:
    """A common divisor of all numbers of heads."""
    return math.gcd(*(n for name, value in values.items() if HEADS.search(name) for n in _numbers(value))) or 1


def _width(name: str, value: int, values: Mapping[str, Any], step: Step) -> int:
    """A width that is heads times the size of one shrinks as they do; where that size is not told, every width does."""
    factor = _factor(values) if step.heads else 1
    sizes = [values[key] for key in values if HEAD_SIZE.search(key) and is_integer(values[key])]
    heads = [n for key in values if HEADS.search(key) for n in _numbers(values[key])]
    if value in {size * number for size in sizes for number in heads}:
        return value // factor
    if not WIDTH.search(name) or NO_WIDTH.search(name):
        return value
    if heads and not sizes and value % factor == 0 and value // factor >= 16 and value % max(heads) == 0:
        return value // factor
    return value // step.divisor if value >= 128 * step.divisor and value % step.divisor == 0 else value


def _is_channels(name: str, value: Iterable[Any], least: int) -> bool:
    items = list(value)
    wide = bool(least) and bool(items) and all(is_integer(item) and item % least == 0 for item in items)
    return wide and bool(CHANNELS.search(name)) and not NO_WIDTH.search(name)


def _ratio(values: Mapping[str, Any], least: int) -> int:
    """A common divisor of all channels, so that each stays a multiple of ``least``."""
    chosen = [
        value for name, value in values.items() if isinstance(value, (list, tuple)) and _is_channels(name, value, least)
    ]
    return math.gcd(*(item for value in chosen for item in value)) // least if chosen else 1
