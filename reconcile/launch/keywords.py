"""Rewrites error messages for callers of the Python interface: ``--input 1,3`` becomes ``inputs="1,3"``.

Messages name options of the command line, as most users type them. ``speaks_python`` decorates the functions of the Python
interface and puts their keyword arguments into the messages, so no message is written twice.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from ..core.conventions import NAMED
from ..core.errors import ReconcileError
from .options import CACHED, OPTIMIZER, OPTIONS, model_options
from .request import PASSES

P = ParamSpec("P")
R = TypeVar("R")

WORDS = (*PASSES, *CACHED, *NAMED, OPTIMIZER, OPTIONS["device"].default)
"""Values of options that are ordinary words, so that they are recognised only from this list."""
_COMMAND = r"(?P<command>\breconcile(?: [a-z]+)+(?: --[a-z-]+(?: [^\s`-][^\s`]*)?)+)"
_VALUE = rf"'[^']*'|[A-Z]+\b(?![:.=])|(?:{'|'.join(WORDS)})\b|(?=\S*[\d:/=@.]\w|/)[^\s`)]*[^\s`).,;:]"
_OPTION = re.compile(rf"{_COMMAND}|(?<![\w-])--(?P<flag>[a-z][a-z-]*)(?: (?P<value>{_VALUE}))?")


def keywords_of(function: Callable[..., Any], more: Iterable[str] = ()) -> dict[str, str]:
    """The keyword arguments of a function, and ``more`` of them that it passes on, each with its annotation."""
    parameters = inspect.signature(function).parameters.values()
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {**dict.fromkeys(more, ""), **{p.name: str(p.annotation) for p in parameters if p.kind not in open_ended}}


def in_keywords(sentence: str, keywords: Mapping[str, str]) -> str:
    """A sentence with each option as the keyword argument for it, if there is one: ``inputs="1,3"`` for ``--input 1,3``.

    A whole command is left as it is.
    """
    named = {f"{name.strip('_').replace('_', '-')}": name for name in keywords}
    named.update((o.name, o.parameter) for o in OPTIONS.values() if o.parameter in keywords)

    def spell(match: re.Match[str]) -> str:
        keyword, value = named.get(match["flag"] or ""), match["value"] or ""
        if keyword is None:
            return match[0]
        return f"{keyword}={_literal(value, keywords[keyword])}" if value else f"{keyword}="

    return _OPTION.sub(spell, sentence)


def _literal(value: str, annotation: str) -> str:
    """An option's value as Python: a number, a placeholder or a string; an entry of a mapping or of a sequence."""
    name, equals, rest = value.strip("'").partition("=")
    if equals and "Mapping" in annotation:
        return f'{{"{name}": "{rest}"}}'
    text = value if value.isdecimal() or (value.isupper() and value.isalpha()) or value[0] == "'" else f'"{value}"'
    return f"[{text}]" if annotation.startswith("Sequence") else text


def speaks_python(*more: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: a ReconcileError that the function raises names its keyword arguments, and ``more`` that it passes on,
    in place of options."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except ReconcileError as error:
                if error.args and isinstance(error.args[0], str):
                    keywords = keywords_of(function, (*more, *model_options()))
                    error.args = (in_keywords(error.args[0], keywords), *error.args[1:])
                raise

        return call

    return decorate
