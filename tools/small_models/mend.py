"""Repairs a configuration: sets attributes that the errors of a model's own code ask for.

Defaults leave attributes open that every checkpoint sets, and some attributes have to agree with each other.  A mend is read
from an error, from the part of the configuration and the attribute that it is about: never from the name of a model.
"""

from __future__ import annotations

import ast
import copy
import linecache
import re
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from reconcile.products.sweep.small_models.transformers import is_configuration, values_of

from . import shrink
from .shrink import is_integer

Mends = dict[type, dict[str, Any]]
"""The attributes of each kind of part."""
MOST = 8
"""Mends of one configuration."""
DEEPEST = 6
"""Innermost functions of the model's own code in which open attributes are looked for."""
LIBRARIES = ("torch.", "huggingface_hub.")
"""Modules whose functions read no configuration."""

NAME = r"`?([A-Za-z_][\w.]*)`?"
VALUE = r"\((\d+|None)\)"
EQUALS = re.compile(rf"{NAME} {VALUE} must (?:equal|match|be equal to) `?[\w./* ]+`? {VALUE}")
BOTH = re.compile(rf"{NAME} {VALUE} and {NAME} {VALUE} must be equal")
DIVISIBLE = re.compile(rf"{NAME} {VALUE} must be divisible by {NAME} {VALUE}")
MATCHES = re.compile(rf"{NAME} must (?:match|equal|be equal to) {NAME}")
MUST_BE = re.compile(rf"{NAME} must be (\d+), got|requires {NAME}=(\d+)")
SECTIONS = re.compile(r"split_sizes to sum exactly to (\d+) .* got split_sizes=(\[[\d, ]+\])")

BASE = re.compile(r"theta$|_base$")
RATE = re.compile(r"dropout|_rate$|_prob$")
EPSILON = re.compile(r"eps(ilon)?$")
CLIP = re.compile(r"^clip_")
SHARE = re.compile(r"(ratio|stride|factor)$")
SIZE = re.compile(r"_dim$|_size$|budget|width$|window$")
ROPE, SECTION = "rope_parameters", "mrope_section"
"""The sections of a head that positions in time, height and width turn."""
SHOULD = re.compile(r"`(?:config\.)?([\w.]+)=\d+` should match `[\w.]+=(\d+)`")
ARGUMENT = re.compile(r"find a `(\w+)` argument in the config")
REQUIRED = re.compile(r"missing required fields: (\[.*?\])")
KINDS = {"mlp_layer_types": ("dense", "sparse")}
"""Kinds of layers that configurations list by name."""


def add_mend(error: BaseException, configuration: Any, before: Mends) -> Mends | None:
    """``before`` with one more thing that the error says; None if it says nothing new."""
    for kind, name, value in _read_error(error, configuration):
        if before.get(kind, {}).get(name, before) != value:
            return {**before, kind: {**before.get(kind, {}), name: value}}
    return None


def parts(configuration: Any) -> Iterator[Any]:
    """A configuration and every configuration in it."""
    yield configuration
    for value in values_of(configuration).values():
        if is_configuration(value):
            yield from parts(value)


def intended_configuration(configuration: Any, rung: shrink.Rung | None, mends: Mends) -> Any:
    """A copy with the values that a rung wants, whether or not its class takes them."""
    whole = copy.deepcopy(configuration)
    for part in parts(whole):
        flat = copy.copy(part)
        for name in [name for name, value in vars(part).items() if is_configuration(value)]:
            del vars(flat)[name]
        added = shrink.Shared(added=mends)
        vars(part).update(shrink.shrunk(flat, rung, added) if rung else mends.get(type(part), {}))
    return whole


def _read_error(error: BaseException, configuration: Any) -> Iterator[tuple[type, str, Any]]:
    if isinstance(error, AttributeError) and error.name and is_configuration(error.obj):
        value = value_by_name(error.name, values_of(error.obj))
        if value is not None:
            yield type(error.obj), error.name, value
    yield from _agree_numbers(str(error), configuration)
    if isinstance(error, KeyError):
        yield from _by_kind(error, configuration)
    lines = "".join(linecache.getline(frame.f_code.co_filename, line) for frame, line in _frames(error)[-1:])
    if "None" in str(error) and SECTION in lines:
        yield from _turn_sections(configuration, [shrink.HEAD // 8, *[3 * shrink.HEAD // 16] * 2])
    if "None" in str(error) or "'bool' object" in str(error):
        for part, name in unset(error, configuration):
            value = value_by_name(name, values_of(part))
            if value is not None:
                yield type(part), name, value


def _agree_numbers(text: str, configuration: Any) -> Iterator[tuple[type, str, Any]]:
    """Numbers that have to agree."""
    for name, _, value in EQUALS.findall(text):
        yield from _set_attribute(configuration, name, value)
    for first, one, second, other in BOTH.findall(text):
        yield from _set_attribute(configuration, *((first, other) if one == "None" else (second, one)))
    for name, _, _, value in DIVISIBLE.findall(text):
        yield from _set_attribute(configuration, name, value)
    for name, value, other, required in MUST_BE.findall(text):
        yield from _set_attribute(configuration, name or other, value or required)
    for name, other in MATCHES.findall(text):
        for part in parts(configuration):
            if name in vars(part) and is_integer(getattr(part, other, None)):
                yield type(part), name, getattr(part, other)
    for name, value in SHOULD.findall(text):
        yield from _set_attribute(configuration, name, value)
    for name in ARGUMENT.findall(text):
        for part in parts(configuration):
            if getattr(part, "layer_types", None) and getattr(part, name, None) is None:
                yield type(part), name, value_by_name(name, values_of(part))
    for names in REQUIRED.findall(text):
        for name in ast.literal_eval(names):
            yield from _set_attribute(configuration, name, str(value_by_name(name, {})))
    for part in parts(configuration):
        for name, value in values_of(part).items():
            if "divisible by " in text and "groups" in text and name.endswith("groups") and is_integer(value):
                yield type(part), name, shrink.HEAD
            if "non-empty list" in text and name.endswith("factors") and value in ((), []):
                yield type(part), name, [1.0]
    for total, sizes in SECTIONS.findall(text):
        yield from _sections(configuration, int(total), ast.literal_eval(sizes))


def _set_attribute(configuration: Any, path: str, value: str) -> Iterator[tuple[type, str, Any]]:
    """That attribute of the part that has it: given by its path, or the first one."""
    *way, name = path.split(".")
    if value == "None":
        return
    for part in parts(configuration):
        for step in way:
            part = getattr(part, step, None)
        if part is not None and name in vars(part):
            yield type(part), name, int(value)
            return


def _sections(configuration: Any, total: int, sizes: list[int]) -> Iterator[tuple[type, str, Any]]:
    """Sections of a head, wherever they stand, in the same proportions and of another sum."""
    rest = [size * total // sum(sizes) for size in sizes]
    rest[-1] += total - sum(rest)
    yield from _list_sizes(configuration, sizes, rest)
    yield from _turn_sections(configuration, rest)  # the model's code has a default for them


def _turn_sections(configuration: Any, sections: list[int]) -> Iterator[tuple[type, str, Any]]:
    """The sections of a head, where its positions are parametrised."""
    for part in parts(configuration):
        if isinstance(getattr(part, ROPE, None), dict):
            yield type(part), ROPE, {**getattr(part, ROPE), SECTION: sections}


def _list_sizes(configuration: Any, sizes: list[int], rest: list[int]) -> Iterator[tuple[type, str, Any]]:
    for part in parts(configuration):
        for name, value in values_of(part).items():
            if isinstance(value, dict):
                keys = [key for key, item in value.items() if isinstance(item, (list, tuple)) and list(item) == sizes]
                if keys:
                    yield type(part), name, {**value, **dict.fromkeys(keys, rest)}
            elif isinstance(value, (list, tuple)) and list(value) == sizes:
                yield type(part), name, rest


def _by_kind(error: KeyError, configuration: Any) -> Iterator[tuple[type, str, Any]]:
    """Parameters that the model's code looks up by the kind of the layer, and that are given once for all kinds."""
    for part in parts(configuration):
        kinds = getattr(part, "layer_types", None) or ()
        for name, value in values_of(part).items():
            if isinstance(value, dict) and error.args[0] in kinds and error.args[0] not in value:
                base = value.get("rope_theta") or value_by_name("rope_theta", {})
                yield type(part), name, {kind: {**value, "rope_theta": base} for kind in sorted(set(kinds))}


def value_by_name(name: str, values: Mapping[str, Any]) -> Any:
    """The value for an open attribute of that name; None if its name does not tell."""
    for pattern, value in (
        (shrink.HEAD_SIZE, shrink.HEAD),
        (shrink.KV_HEADS, shrink.HEADS // 2),
        (shrink.HEAD_COUNT, shrink.HEADS),
        (shrink.CHOSEN, 2),
        (shrink.SHARED, 1),
        (shrink.EXPERT, shrink.EXPERTS),
        (re.compile("^(image|video|audio)_token_(id|index)$"), _unused_token(values)),
        (BASE, 10000.0),
        (RATE, 0.0),
        (EPSILON, 1e-5),
        (shrink.INSIDE, shrink.INNER),
        (SHARE, 2),
        (CLIP, 8.0),
        (SIZE, shrink.WIDTH),
    ):
        if pattern.search(name):
            return value
    if name in KINDS:
        kinds, layers = KINDS[name], values.get("num_hidden_layers") or len(KINDS[name])
        return [kinds[i % len(kinds)] for i in range(layers)]
    return None


def _unused_token(values: Mapping[str, Any]) -> int | None:
    """The last token of the vocabulary that has no meaning yet."""
    size = values.get("vocab_size") or 2 * shrink.WIDTH
    return next((token for token in range(size - 1, 0, -1) if token not in values.values()), None)


def unset(error: BaseException, configuration: Any) -> Iterator[tuple[Any, str]]:
    """Attributes that are None, and that the functions in which the error arose had read before it: of a configuration, or
    those of the module that it has from its configuration."""
    for frame, line in reversed(_frames(error)[-DEEPEST:]):
        first = frame.f_code.co_firstlineno
        source = "".join(linecache.getline(frame.f_code.co_filename, at) for at in range(first, line + 1))
        module = frame.f_locals.get("self")
        holders = {"config": frame.f_locals.get("config"), "self.config": getattr(module, "config", None)}
        for holder, name in re.findall(r"\b((?:self\.)?config)\.(\w+)", source):
            part = holders[holder]
            if is_configuration(part) and getattr(part, name, 0) is None:
                yield part, name
        for name in re.findall(r"\bself\.(\w+)", source):
            if getattr(module, name, 0) is None:
                yield from ((part, name) for part in parts(configuration) if getattr(part, name, 0) is None)


def missing_parameters(error: BaseException, parameters: Mapping[str, Any]) -> list[str]:
    """Parameters of ``forward`` that the error is about: in its words, or in the lines of the model's code that raised it."""
    lines = [linecache.getline(frame.f_code.co_filename, line) for frame, line in _frames(error)[-2:]]
    words = set(re.findall(r"\w+", " ".join([str(error), *lines])))
    return [name for name in parameters if name in words]


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """Functions that the error passed through, but for those of PyTorch, the innermost last."""
    rest, frames = error.__traceback__, []
    while rest is not None:
        if not rest.tb_frame.f_globals.get("__name__", "").startswith(LIBRARIES):
            frames.append((rest.tb_frame, rest.tb_lineno))
        rest = rest.tb_next
    return frames
