"""Layer names of the ecosystem's conventions, reduced to what can be compared across frameworks.

``bert.encoder.layer_._0.attention.self.query`` and ``encoder.layer.0.attention.self.query`` come out the same: words in lower
case, numbers apart, without the wrapper that stands around every layer and without the ops' own name scopes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Word = str | int
Key = tuple[Word, ...]

_WORD = re.compile(r"[0-9]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")

KERAS = re.compile(
    r"(conv[123]d(_transpose)?|(depthwise|separable)_conv[12]d|(einsum_)?dense|embedding"
    r"|(batch|layer|group|unit|spectral|rms)?_?normalization|activation|(leaky|p)?_?re_?lu|elu|thresholded_re_lu|softmax"
    r"|(global_)?(max|average)_pooling[123]d|add|subtract|multiply|average|maximum|minimum|concatenate|dot"
    r"|(multi_head_|group_query_|grouped_query_|additive_)?attention|lstm|gru|simple_rnn|rnn|bidirectional"
    r"|time_distributed|rescaling|resizing|zero_padding[123]d|cropping[123]d|up_sampling[123]d|flatten|dropout"
    r"|spatial_dropout[123]d|gaussian_noise|reshape|permute|repeat_vector|lambda|tf_op_lambda|functional|sequential|model)"
    r"(?P<count>_\d+)?"
)
"""Names that Keras gives a layer by itself, after its class: what was made so far numbers them, so the number says nothing
(keras/src/utils/naming.py, auto_name; tf_keras/src/backend.py, unique_object_name)."""

INNER = frozenset(("tensordot", "batchnorm", "moments", "einsum", "gelu", "normalize", "l2_normalize"))
"""Name scopes that TensorFlow's own functions open inside a layer (tf.tensordot, tf.nn.batch_normalization, tf.nn.moments)."""


@dataclass(frozen=True, slots=True)
class Name:
    """A path reduced: ``key`` is compared; ``words`` is the key without its numbers."""

    key: Key

    @property
    def words(self) -> tuple[str, ...]:
        """The words alone."""
        return tuple(word for word in self.key if isinstance(word, str))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers alone."""
        return tuple(word for word in self.key if isinstance(word, int))


def reduced(a: Iterable[str], b: Iterable[str]) -> tuple[dict[str, Name], dict[str, Name]]:
    """The names of both sides' paths. What stands around all layers of a side is left out as far as that makes more names
    agree; a wrapper that is left out has the empty name, as the model itself (path '') has."""
    left, right = (_split(paths) for paths in (a, b))
    choices = [
        (_names(left, i), _names(right, j)) for i in range(_around(left), -1, -1) for j in range(_around(right), -1, -1)
    ]
    return renumbered(*max(choices, key=lambda pair: len(set(pair[0].values()) & set(pair[1].values()))))


def _split(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {path: tuple(part for part in path.split(".") if part.strip("_")) for path in paths}


def _names(parts: Mapping[str, tuple[str, ...]], around: int) -> dict[str, Name]:
    counted = _first_of_a_series(parts.values())
    return {path: Name(_singular(_key(p, around, counted))) for path, p in parts.items()}


def _key(parts: Sequence[str], around: int, counted: frozenset[tuple[str, ...]]) -> Iterable[Word]:
    for depth in range(around, len(parts)):
        part = parts[depth]
        if depth and part.lower() in INNER:
            continue
        own = KERAS.fullmatch(part)
        if own is not None:
            part = part.removesuffix(own["count"] or "")
        yield from words(part.removeprefix("tf_"))
        if own is None and (*parts[:depth], part) in counted:
            yield 0


def _singular(key: Iterable[Word]) -> Key:
    """``blocks.0`` is ``block_0``: what holds a number of things is named in the plural, the one thing in the singular."""
    found = tuple(key)
    return tuple(
        word[:-1] if isinstance(after, int) and isinstance(word, str) and re.fullmatch(r"\w{2,}[^s\W]s", word) else word
        for word, after in zip(found, (*found[1:], ""), strict=False)
    )


def words(part: str) -> list[Word]:
    """``LayerNorm`` is layer, norm; ``conv2_block1`` is conv, 2, block, 1."""
    return [int(word) if word.isdigit() else word.lower() for word in _WORD.findall(part)]


def _around(parts: Mapping[str, Sequence[str]]) -> int:
    """How many components every path starts with, but for those paths that are such a start themselves."""
    found: list[str] = []
    while True:
        longer = [p for p in parts.values() if len(p) > len(found)]
        first = {p[len(found)] for p in longer}
        if len(first) != 1 or not any(len(p) > len(found) + 1 for p in longer):
            return len(found)
        found.append(first.pop())


def _first_of_a_series(parts: Iterable[Sequence[str]]) -> frozenset[tuple[str, ...]]:
    """Components ``block`` beside which there is ``block_1``: Keras leaves out the number of the first."""
    there = {tuple(p[: depth + 1]) for p in parts for depth in range(len(p))}
    return frozenset(path for path in there if (*path[:-1], path[-1] + "_1") in there)


def renumbered(a: Mapping[str, Name], b: Mapping[str, Name]) -> tuple[dict[str, Name], dict[str, Name]]:
    """Both sides' names, where the one counts from 0 and the other from 1 by rank.

    Names of the same words are a series; a number of it is replaced by its rank where both sides have as many there, but
    other ones.
    """
    slots_a, slots_b = _slots(a.values()), _slots(b.values())
    ranks: dict[tuple[tuple[str, ...], int], tuple[dict[int, int], dict[int, int]]] = {}
    for series in slots_a.keys() & slots_b.keys():
        mine, theirs = sorted(slots_a[series]), sorted(slots_b[series])
        if len(mine) == len(theirs) and mine != theirs:
            ranks[series] = ({n: i for i, n in enumerate(mine)}, {n: i for i, n in enumerate(theirs)})
    return (
        {path: _ranked(name, {s: r[0] for s, r in ranks.items()}) for path, name in a.items()},
        {path: _ranked(name, {s: r[1] for s, r in ranks.items()}) for path, name in b.items()},
    )


def _series(name: Name) -> tuple[str, ...]:
    """The key with every number as a blank."""
    return tuple("#" if isinstance(word, int) else word for word in name.key)


def _slots(names: Iterable[Name]) -> dict[tuple[tuple[str, ...], int], set[int]]:
    found: dict[tuple[tuple[str, ...], int], set[int]] = {}
    for name in names:
        for slot, number in enumerate(name.numbers):
            found.setdefault((_series(name), slot), set()).add(number)
    return found


def _ranked(name: Name, ranks: Mapping[tuple[tuple[str, ...], int], Mapping[int, int]]) -> Name:
    series, slot, key = _series(name), 0, []
    for word in name.key:
        if isinstance(word, int):
            word, slot = ranks.get((series, slot), {}).get(word, word), slot + 1
        key.append(word)
    return Name(tuple(key))


SAME = {
    "normalization": ("norm",),
    "bn": ("batch", "norm"),
    "ln": ("layer", "norm"),
    "fc": ("dense",),
    "lin": ("dense",),
    "linear": ("dense",),
    "activation": ("act",),
}
"""Words that mean the same in one framework and the other."""


def likeness(a: Name, b: Name) -> int:
    """How much two names have in common: 3 the same, 2 the same words or most of them, 1 some, 0 none.

    Numbers count where all words agree, and only then: two schemes that number otherwise agree by chance.
    """
    if a.key == b.key:
        return 3 if a.words else 0
    mine, theirs = _meaning(a), _meaning(b)
    common = len(mine & theirs)
    if not common:
        return 0
    return 2 if 3 * common >= 2 * max(len(mine), len(theirs)) else 1


def _meaning(name: Name) -> set[str]:
    return {meant for word in name.words for meant in SAME.get(word, (word,))}
