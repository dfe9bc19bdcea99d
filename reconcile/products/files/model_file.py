"""Helpers of the loaders of model files: FileError, the match of a file's inputs with --input, and names in messages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

LONGEST_RUN = 10_000_000
"""A counter that runs the model does not start if an op would run more often than this."""


class FileError(Exception):
    """A file that cannot be used; the message is one sentence."""


class Wanted(NamedTuple):
    """One input of the model in a file: its name, shape (None for an unknown rank) and dtype ('' for any). A size is None where
    the file leaves it open; ``match_inputs`` gives it."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str


def match_inputs(where: str, wanted: Sequence[Wanted], given: Sequence[Any] | None) -> list[Wanted]:
    """The file's inputs with every size known, from the file or from the user. Raises FileError that says what to type."""
    rest = list(given or ())
    named = {plain(i.name): i for i in rest if i.name}
    unnamed = [i for i in rest if not i.name]
    if rest and len(rest) != len(wanted) and not named:
        raise FileError(f"{where} takes {_count(wanted)}; you gave {len(rest)}. {_type(wanted)}")
    unknown = next((name for name in named if name not in [plain(w.name) for w in wanted]), None)
    if unknown:
        raise FileError(f"{where} has no input {unknown!r}; it takes {_count(wanted)}. {_type(wanted)}")
    known = []
    for want in wanted:
        user_input = named.get(plain(want.name)) or (unnamed.pop(0) if unnamed else None)
        if user_input is None:
            if want.shape is None or None in want.shape:
                raise FileError(
                    f"the input {want.name} of {where} is {_show_want(want)}: give its size. {_type(wanted)}"
                )
            known.append(want)
            continue
        fits = want.shape is None or (
            len(user_input.shape) == len(want.shape)
            and all(s in (None, size) for s, size in zip(want.shape, user_input.shape))  # noqa: B905
        )
        dtype = want.dtype or user_input.dtype or "float32"
        if not fits or user_input.dtype not in ("", dtype):
            got = f"{user_input.dtype} {user_input.shape}".strip()
            raise FileError(f"the input {want.name} of {where} is {_show_want(want)}, not {got}.")
        known.append(Wanted(want.name, tuple(user_input.shape), dtype))
    return known


def plain(name: str) -> str:
    """The name of an input as you can type it: ``x`` of ``x:0``, ``a_b`` of ``a/b``."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name.split(":")[0])


def _show_want(want: Wanted) -> str:
    if want.shape is None:
        return f"{want.dtype or 'a tensor'} of any rank"
    sizes = ", ".join("?" if size is None else str(size) for size in want.shape)
    return "{} ({}{})".format(want.dtype, sizes, "," if len(want.shape) == 1 else "")


def _count(wanted: Sequence[Wanted]) -> str:
    return ", ".join(f"{plain(w.name)}={_show_want(w)}" for w in wanted) or "no input"


def _type(wanted: Sequence[Wanted]) -> str:
    """The options to type, with a 1 for every open dimension."""
    words = []
    for want in wanted:
        shape = (1, 3, 224, 224) if want.shape is None else want.shape
        sizes = ",".join("1" if size is None else str(size) for size in shape) or "()"
        words.append(
            "--input {}={}{}".format(plain(want.name), sizes, "" if want.dtype in ("", "float32") else ":" + want.dtype)
        )
    return "For example: {}".format(" ".join(words)) if words else "Leave out --input."


def member(path: str) -> str:
    """The last part of a path."""
    return os.path.basename(path.rstrip(os.sep))


def show_name(name: object) -> str:
    """A name from a file, made fit for a sentence: one short line."""
    text = " ".join(str(name).split())
    return text if len(text) <= 100 else text[:100] + "..."
