"""Makes a configuration small by general rules, from the names and defaults of its attributes.

A rule says how to build a model, never how to count it.  No rule knows a model: a configuration that a model's own code
refuses is not used, and the next rung shrinks less (``RUNGS``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconcile.products.sweep.small_models.transformers import is_configuration, values_of

EQUAL, SCALED, KEPT = "equal", "scaled", "kept"


@dataclass(frozen=True)
class Rung:
    """How far a configuration is shrunk.

    ``widths``: every width becomes the same (EQUAL), is divided so that their ratios stay (SCALED), or stays (KEPT).
    ``divisor`` divides the size of an attention head if widths are scaled, and ``size`` multiplies widths that are the same.
    ``image`` and ``vocabulary`` are sizes, 0 for the default ones. ``filled`` gives a value to sizes that the default
    configuration leaves open, and ``layers`` is how many are left.
    """

    widths: str
    divisor: int = 1
    image: int = 0
    vocabulary: int = 0
    filled: bool = False
    layers: int = 2
    size: int = 1


RUNGS = (
    Rung(EQUAL, image=64, vocabulary=128),
    Rung(EQUAL, image=64, vocabulary=128, filled=True),
    Rung(EQUAL, image=64, vocabulary=128, filled=True, size=8),
    Rung(EQUAL),
    Rung(SCALED, divisor=4, image=64, vocabulary=128),
    Rung(SCALED, divisor=4),
    Rung(SCALED, image=64, vocabulary=128, filled=True),
    Rung(SCALED, layers=6),
    Rung(KEPT),
)
"""The rungs to try, the smallest first; after them comes the default configuration."""

WIDTH, INNER, HEADS, HEAD, EXPERTS = 64, 128, 4, 16, 4
"""Widths, widths inside a feed-forward block, heads, the size of a head, and experts, if widths are equal."""

LAYERS = re.compile(
    r"(^|_)(n_layers?|num_layers?|layers|hidden_layers|depth|num_blocks?|n_blocks|layer_num|\w+_layers|\w+_depth)$"
    r"|^(num_stacks|n_stages)$"
)
NOT_LAYERS = re.compile(
    r"window|skip|feat_extract|conv|out_layer|select|sampl|mlp_only|intermediate_layer|feature_layer|kv_shared|dense"
)
DEPTHS = re.compile(r"depths?|blocks|(^|_)layers$|num_layers")
PATTERN = re.compile(r"period|interval|every|pattern|sparse_step")
POSITIONS = re.compile(r"indi|out_")
TOKENS = re.compile(
    r"(token_id|token_index|token_ids|_idx|image_token|_token)$|^(bos|eos|pad|sep|cls|mask|unk|forced)\w*_id$"
)
VOCABULARY = re.compile(r"vocab|codebook_size|num_embeddings")
EXPERT = re.compile(r"experts?$")
SHARED = re.compile(r"shared_experts?$")
CHOSEN = re.compile(r"experts?_per_tok|_k$|top_?k|experts_per_token|selected_experts|num_selects")
GROUPS = re.compile(r"topk_group|n_group|num_expert_group")
DENSE = re.compile(r"first_k_dense|num_dense_layers|n_dense|first_dense")
IMAGE = re.compile(r"image_size|img_size")
LEFT_OUT = re.compile(r"layer_?drop|drop_path|stochastic_depth")
"""Shares of layers that a training step leaves out at random: with them, each counter would meet another model."""
HEAD_SIZE = re.compile(
    r"head_(dim|size)|^rotary_dim$|d_kv|attention_head_size|dim_head|kv_channels|d_head|headdim|head_width"
)
KV_HEADS = re.compile(r"(key_value|kv|query_groups)\w*(head|group)")
HEAD_COUNT = re.compile(r"(^|_)\w*heads?$|attention_heads|num_heads")
INSIDE = re.compile(r"intermediate|ffn|ff_dim|inner|mlp_dim|feed_forward|d_ff|mlp_hidden")
WIDTHS = re.compile(r"embed_dim|hidden_size|width")
NO_WIDTH = re.compile(
    r"position|max_|min|seq|length|context|patch|kernel|stride|window|rate|label|seed|dilation|padding|mel|bins|in_channels"
    r"|num_channels|in_chans|frames|period|theta|base$|beta|chunk|block_size|bucket|distance|rope|ratio|factor|groups|expand"
    r"|sampl|fft|hop|spatial|temporal|hz|spacing|scale|token|indices|out_features|stage|iter|steps|duration|version|resolution"
    r"|grid|input_size|crop|feature_size|num_time|num_dynamic|num_static|prediction|lags|_ids?$|_idx$|indexes$|_index$"
    r"|index_list|every|interval|offset|limit|mask_|_prob|size_divisor|num_global|num_latents|act_dim|pool|reduction"
    r"|temperature|kl_|loss|cost|eps|points|level"
)
"""Names of integers that are no width of a layer: sizes of data, hyperparameters, positions."""


@dataclass
class Shared:
    """What the parts of one configuration have in common: the new number of every token that has a meaning."""

    tokens: dict[int, int] = field(default_factory=dict)
    added: Mapping[type, Mapping[str, Any]] = field(default_factory=dict)
    """What the parts of each kind are given besides, whatever the rules say."""

    def token(self, number: int, vocabulary: int) -> int:
        """The number of a token in a vocabulary of that size: tokens with a meaning stay apart from each other."""
        if number < vocabulary // 2:
            return number
        return self.tokens.setdefault(number, vocabulary - 1 - len(self.tokens))


def shrunk(configuration: Any, rung: Rung, shared: Shared | None = None) -> dict[str, Any]:
    """The values that differ in a smaller configuration; those of a part of it are a mapping of their own."""
    values, shared = values_of(configuration), shared or Shared()
    lengths = dict(_layers(values, rung))
    changes: dict[str, Any] = {name: lengths[values[name]] for name in values if _is_layers(name, values[name])}
    heads = next((v for k, v in values.items() if _is_heads(k) and is_integer(v) and v > 0), 0)
    for name, value in values.items():
        if name in changes:
            continue
        if is_configuration(value):
            changes[name] = shrunk(value, rung, shared)
        elif name == "use_cache":
            changes[name] = False
        elif isinstance(value, float) and LEFT_OUT.search(name):
            changes[name] = 0.0
        elif isinstance(value, (list, tuple)):
            changes[name] = type(value)(_sequence(name, value, rung, lengths, shared))
        elif is_integer(value):
            changes[name] = _integer(name, value, rung, heads, shared)
        elif value is None and rung.filled and (size := _open(name, values, rung, heads)):
            changes[name] = size
    changes = {name: value for name, value in changes.items() if value != values[name]}
    return {**changes, **shared.added.get(type(configuration), {})}


def is_integer(value: Any) -> bool:
    """Whether it is a number of something."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_layers(name: str, value: Any) -> bool:
    return is_integer(value) and value > 1 and bool(LAYERS.search(name)) and not NOT_LAYERS.search(name)


def _is_heads(name: str) -> bool:
    return bool(HEAD_COUNT.search(name)) and not KV_HEADS.search(name) and not HEAD_SIZE.search(name)


def _layers(values: Mapping[str, Any], rung: Rung) -> Iterator[tuple[int, int]]:
    """Every number of layers with its replacement, which is large enough that each kind of layer is there."""
    for name, number in values.items():
        if not _is_layers(name, number):
            continue
        needed = rung.layers
        for key, value in values.items():
            if isinstance(value, (list, tuple)) and len(value) == number:
                first = [list(map(str, value)).index(kind) for kind in set(map(str, value))]
                needed = max(needed, 1 + max(first)) if len(first) <= 4 else needed
            elif PATTERN.search(key) and is_integer(value) and 2 < value <= 8:
                needed = max(needed, value)
        yield number, min(number, needed)


def _sequence(name: str, value: Sequence[Any], rung: Rung, lengths: Mapping[int, int], shared: Shared) -> Iterator[Any]:
    if len(value) > 2 and len(value) in lengths and not POSITIONS.search(name):
        yield from value[: lengths[len(value)]]
    elif not value or not all(map(is_integer, value)):
        yield from value
    elif TOKENS.search(name) and rung.vocabulary:
        yield from (shared.token(item, rung.vocabulary) for item in value)
    elif DEPTHS.search(name):
        yield from (1 for _ in value)
    elif rung.widths == KEPT or (NO_WIDTH.search(name) and not WIDTHS.search(name)):
        yield from value
    elif HEAD_COUNT.search(name):
        yield from (min(item, HEADS) if rung.widths == EQUAL else max(1, item // min(value)) for item in value)
    elif min(value) < HEAD:
        yield from value
    else:
        yield from (WIDTH * rung.size if rung.widths == EQUAL else max(1, item // (2 * rung.divisor)) for item in value)


def _integer(name: str, value: int, rung: Rung, heads: int, shared: Shared) -> int:
    if EXPERT.search(name):
        return min(value, 1 if SHARED.search(name) else EXPERTS) if rung.widths != KEPT else value
    if GROUPS.search(name):
        return min(value, 1 if "topk" in name else 2)
    if CHOSEN.search(name):
        return min(value, 2)
    if DENSE.search(name):
        return min(value, 1)
    if TOKENS.search(name):
        return shared.token(value, rung.vocabulary) if rung.vocabulary else value
    if VOCABULARY.search(name):
        return min(value, rung.vocabulary) if rung.vocabulary else value
    if IMAGE.search(name):
        return min(value, rung.image) if rung.image else value
    if rung.widths == KEPT:
        return value
    return (
        _equal(name, value, rung.size, heads)
        if rung.widths == EQUAL
        else _scale_value(name, value, rung.divisor, heads)
    )


def _equal(name: str, value: int, size: int, heads: int) -> int:
    if HEAD_SIZE.search(name):
        return min(value, HEAD * size)
    if KV_HEADS.search(name):
        return min(value, HEADS // 2 if value < heads else HEADS)
    if HEAD_COUNT.search(name):
        return {3: 2}.get(value, min(value, HEADS))
    if NO_WIDTH.search(name) or value < WIDTH:
        return value
    return (INNER if INSIDE.search(name) else WIDTH) * size


def _scale_value(name: str, value: int, divisor: int, heads: int) -> int:
    """Two heads are left of an even number, one of an odd one; what is as wide as all heads together shrinks as they do."""
    share = max(1, heads if heads % 2 else heads // 2) if heads else 4
    if HEAD_SIZE.search(name):
        return max(4, value // divisor) if value % divisor == 0 else value
    if KV_HEADS.search(name) or HEAD_COUNT.search(name):
        return max(1, value // share)
    if NO_WIDTH.search(name) or value < INNER:
        return value
    return max(8, value // (share * divisor))


def _open(name: str, values: Mapping[str, Any], rung: Rung, heads: int) -> int:
    """A size for an attribute that is None by default and that some models do not do without; 0 if it stays None."""
    if HEAD_SIZE.search(name):
        return HEAD * rung.size
    if KV_HEADS.search(name):
        return HEADS // 2 if heads else 0
    if name == "vocab_size":
        return 2 * WIDTH
    if name == "prediction_length":
        return HEAD
    if CHOSEN.search(name) and any(EXPERT.search(key) for key in values):
        return 2
    return EXPERTS if EXPERT.search(name) and not SHARED.search(name) else 0
