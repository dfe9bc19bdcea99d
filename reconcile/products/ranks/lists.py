"""Layers of a list that ranks number otherwise than one device: stages and experts count their own from 0."""

from __future__ import annotations

from collections.abc import Set


def alike(one: Set[str], ranks: Set[str]) -> dict[str, str]:
    """The names of layers that both sides have, or have by another number: ``experts.*.0`` for all of a list of which ranks have
    a part. Those of one side alone, and those that could be of several lists, are left out."""
    names = {name: name for name in one & ranks}
    lists = {id(side): {star for name in side for star in _stars(name)} for side in (one, ranks)}
    for name in one ^ ranks:
        fits = [star for star in _stars(name) if star in lists[id(ranks if name in one else one)]]
        if len(fits) == 1:
            names[name] = fits[0]
    merged = {star for star in names.values() if "*" in star}
    for name in one & ranks:
        names[name] = next((star for star in _stars(name) if star in merged), name)
    return names


def _stars(name: str) -> list[str]:
    """The lists that the layer may be of: its name with ``*`` for one of its numbers."""
    words = name.split(".")
    return [
        ".".join([*words[:index], "*", *words[index + 1 :]]) for index, word in enumerate(words) if word.isdecimal()
    ]
