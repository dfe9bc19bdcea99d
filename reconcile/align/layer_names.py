"""Layer names in the ecosystem's conventions, reduced to a form that can be compared across frameworks.

``bert.encoder.layer_._0.attention.self.query`` and ``encoder.layer.0.attention.self.query`` reduce to the same name: words in
lower case, numbers separate, without a prefix that all layers share and without the ops' own name scopes.
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
"""Names that Keras gives a layer automatically, after its class. A global counter numbers them, so the number means nothing
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


def reduce_names(a: Iterable[str], b: Iterable[str]) -> tuple[dict[str, Name], dict[str, Name]]:
    """The names of both sides' paths. A prefix that all layers of a side share is removed as far as that makes more names
    agree; a removed wrapper has the empty name, like the model itself (path '')."""
    left, right = (_split_paths(paths) for paths in (a, b))
    choices = [
        (_names(left, i), _names(right, j)) for i in range(_around(left), -1, -1) for j in range(_around(right), -1, -1)
    ]
    return renumber_names(*max(choices, key=lambda pair: len(set(pair[0].values()) & set(pair[1].values()))))


def _split_paths(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
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
    """``blocks.0`` becomes ``block_0``: a container's name is plural, its member's name singular."""
    parts = tuple(key)
    return tuple(
        word[:-1] if isinstance(after, int) and isinstance(word, str) and re.fullmatch(r"\w{2,}[^s\W]s", word) else word
        for word, after in zip(parts, (*parts[1:], ""), strict=False)
    )


def words(part: str) -> list[Word]:
    """The words and numbers in a name: ``LayerNorm`` is layer, norm; ``conv2_block1`` is conv, 2, block, 1."""
    return [int(word) if word.isdigit() else word.lower() for word in _WORD.findall(part)]


def _around(parts: Mapping[str, Sequence[str]]) -> int:
    """The length of the longest prefix that all paths share, except paths that are part of the prefix."""
    prefix: list[str] = []
    while True:
        longer = [p for p in parts.values() if len(p) > len(prefix)]
        first = {p[len(prefix)] for p in longer}
        if len(first) != 1 or not any(len(p) > len(prefix) + 1 for p in longer):
            return len(prefix)
        prefix.append(first.pop())


def _first_of_a_series(parts: Iterable[Sequence[str]]) -> frozenset[tuple[str, ...]]:
    """Components ``block`` with a sibling ``block_1``: Keras leaves out the number of the first."""
    prefixes = {tuple(p[: depth + 1]) for p in parts for depth in range(len(p))}
    return frozenset(path for path in prefixes if (*path[:-1], path[-1] + "_1") in prefixes)


def renumber_names(a: Mapping[str, Name], b: Mapping[str, Name]) -> tuple[dict[str, Name], dict[str, Name]]:
    """Both sides' names, with numbers replaced by ranks where one side counts from 0 and the other from 1.

    Names with the same words are a series; its numbers become ranks if both sides have equally many numbers, but different
    ones.
    """
    slots_a, slots_b = _slots(a.values()), _slots(b.values())
    ranks: dict[tuple[tuple[str, ...], int], tuple[dict[int, int], dict[int, int]]] = {}
    for series in slots_a.keys() & slots_b.keys():
        numbers_a, numbers_b = sorted(slots_a[series]), sorted(slots_b[series])
        if len(numbers_a) == len(numbers_b) and numbers_a != numbers_b:
            ranks[series] = ({n: i for i, n in enumerate(numbers_a)}, {n: i for i, n in enumerate(numbers_b)})
    return (
        {path: _rank_numbers(name, {s: r[0] for s, r in ranks.items()}) for path, name in a.items()},
        {path: _rank_numbers(name, {s: r[1] for s, r in ranks.items()}) for path, name in b.items()},
    )


def _series(name: Name) -> tuple[str, ...]:
    """The key with a placeholder for every number."""
    return tuple("#" if isinstance(word, int) else word for word in name.key)


def _slots(names: Iterable[Name]) -> dict[tuple[tuple[str, ...], int], set[int]]:
    slots: dict[tuple[tuple[str, ...], int], set[int]] = {}
    for name in names:
        for slot, number in enumerate(name.numbers):
            slots.setdefault((_series(name), slot), set()).add(number)
    return slots


def _rank_numbers(name: Name, ranks: Mapping[tuple[tuple[str, ...], int], Mapping[int, int]]) -> Name:
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
"""Words that mean the same in different frameworks."""


def likeness(a: Name, b: Name) -> int:
    """How much two names have in common: 3 the same, 2 the same words or most of them, 1 some, 0 none.

    Numbers count only if all words agree: numbers from two different schemes agree by chance.
    """
    if a.key == b.key:
        return 3 if a.words else 0
    meaning_a, meaning_b = _find_meanings(a), _find_meanings(b)
    common = len(meaning_a & meaning_b)
    if not common:
        return 0
    return 2 if 3 * common >= 2 * max(len(meaning_a), len(meaning_b)) else 1


def _find_meanings(name: Name) -> set[str]:
    return {meant for word in name.words for meant in SAME.get(word, (word,))}
