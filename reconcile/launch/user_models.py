"""A model of the user's own, as it is named on the command line: its factory, and the inputs to call it with."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import files
from ..adapters import COUNTERS
from ..core.counter import Counter
from ..core.errors import UsageError, brief, short, unknown
from ..core.numbers import SIZE, integer
from ..core.protocol import ModelFile, UserModel
from ..core.registry import frameworks, title
from ..model_zoo.pair import Input

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
FORM = "Write [NAME=]SHAPE[:DTYPE], such as 1,3,224,224 or ids=1,128:int64, and () for a scalar."

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def factory(framework: str, text: str, option: str = "") -> str:
    """``package.module:function`` as it was given, by ``option`` or the framework's own. Raises UsageError for anything else."""
    option = f"{option or f'--{framework}'} {short(text)}"
    module, colon, function = text.partition(":")
    if not colon:
        stem = module.removesuffix(".py").strip("./").replace("/", ".") or "module"
        raise UsageError(f"{option} names no factory. Write MODULE:FUNCTION, such as {brief(stem)}:make_model.")
    if not _MODULE.fullmatch(module):
        dotted = module.removesuffix(".py").strip("./").replace("/", ".")
        hint = f"{dotted}:{function or 'make_model'}" if _MODULE.fullmatch(dotted) else "package.module:make_model"
        raise UsageError(f"{option}: {short(module)} is no module's name. Write it with dots, such as {hint}.")
    if not _MODULE.fullmatch(function):
        raise UsageError(
            f"{option}: {short(function)} is no function's name. Write MODULE:FUNCTION, such as {module}:make."
        )
    return text


def given(framework: str, text: str, *, trusted: bool = False) -> str | ModelFile:
    """What a framework's option names: a file that holds a model, else a factory. Raises UsageError."""
    if not frameworks()[framework].factories or (files.looks_like_path(text) and not text.endswith(".py")):
        return files.read(framework, text, trusted)
    return factory(framework, text)


def read_input(text: str) -> Input:
    """One ``[NAME=]SHAPE[:DTYPE]``; the name is '' for an input by position, the dtype '' for the model's default one.

    Raises UsageError.
    """

    def wrong(why: str) -> UsageError:
        return UsageError(f"--input {short(text)} cannot be read: {why}. {FORM}")

    name, equals, rest = text.rpartition("=")
    name = name.strip()
    if equals and not name.isidentifier():
        raise wrong(f"{short(name)} is no argument's name")
    shape, colon, dtype = (part.strip() for part in rest.partition(":"))
    if colon and dtype not in DTYPES:
        raise wrong(f"{short(dtype)} is none of {', '.join(DTYPES)}")
    sizes = () if shape in ("", "()") else shape.removeprefix("(").removesuffix(")").removesuffix(",").split(",")
    if not shape:
        raise wrong("it has no shape")
    found = []
    for size in sizes:
        number = integer(size, 0, SIZE)
        if number is None:
            raise wrong(f"{short(size.strip())} is no size")
        found.append(number)
    if math.prod(found) > SIZE:
        raise wrong("it has more elements than any tensor can have")
    return Input(name, tuple(found), dtype)


def read_inputs(texts: Sequence[str]) -> tuple[Input, ...]:
    """Every input. Raises UsageError for one that cannot be read, and for a name given twice."""
    found = tuple(read_input(text) for text in texts)
    names = [i.name for i in found if i.name]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"--input gives {short(twice)} twice.")
    return found


def one_model(
    model: str | None, factories: Mapping[str, str], overrides: Mapping[str, str], inputs: object, mapped: str = ""
) -> None:
    """Raises UsageError unless exactly one model is named: a pair, or a factory for one framework or both.

    ``mapped`` is the option that names a mapping file, if one does: that takes two models of somebody's own.
    """
    if model is None and not factories:
        raise UsageError(
            "name a model: --model NAME (see `reconcile list models`), or MODULE:FUNCTION with "
            f"{_options(' or ')} for one of your own."
        )
    if model is not None and factories:
        raise UsageError(f"--model names a pair and {_options()} a model of your own; give one or the other.")
    if model is not None and inputs:
        raise UsageError(f"--input is for {_options()}; a pair says itself what its inputs are (see --set).")
    if mapped and len([name for name in factories if frameworks()[name].aligned]) != 2:
        raise UsageError(f"{mapped} is for two models of your own: give both {_options()}.")
    if len(factories) > 2:
        given = ", ".join(f"--{name}" for name in factories)
        raise UsageError(f"models are compared two at a time, and these are {len(factories)}: {given}. Leave one out.")
    if factories and overrides:
        raise UsageError("--set is for the parameters of a pair; a factory of your own takes none.")


def _options(between: str = " and ") -> str:
    """The options of the frameworks whose models functions make: ``--torch and --tf``."""
    records = sorted(frameworks().values(), key=lambda record: record.order)
    return between.join(f"--{f.name}" for f in records if f.factories)


def name_of(factories: Mapping[str, str]) -> str:
    """What the reports call the model: where its factory is, ``net.make``, or its file's name, ``net.pt2``."""
    names = (where.replace(":", ".").rstrip("/").rpartition("/")[2] for where in factories.values())
    return "+".join(dict.fromkeys(names))


def counters_of(
    factories: Mapping[str, str], asked: Sequence[str], held: Mapping[str, ModelFile] | None = None
) -> tuple[str, ...]:
    """The counters that go with these frameworks: those asked for, else those that run unasked. Raises UsageError for others.

    A recipe builds a model another way, which takes a pair; but a frozen graph in a file (``held``) is what one of them
    makes, and that one reads it back as it is, unasked.
    """
    kinds = {name: file.kind for name, file in (held or {}).items()}

    def goes(counter: Counter) -> bool:
        frozen = kinds.get(counter.framework) == "graph_def"
        return not counter.recipe or (frozen and counter.recipe == "frozen_pb")

    for name in asked:
        if name not in COUNTERS:
            raise unknown("counter", name, COUNTERS)
        counter = COUNTERS[name]
        if counter.framework not in factories:
            raise UsageError(
                f"{name} counts {title(counter.framework)} models: give one with --{counter.framework} MODULE:FUNCTION."
            )
        if not goes(counter):
            raise UsageError(f"{name} builds the model another way, which takes a pair file: see `reconcile new`.")
    return tuple(
        name
        for name, c in COUNTERS.items()
        if c.framework in factories and goes(c) and (name in asked if asked else c.default or c.recipe)
    )


def models(
    factories: Mapping[str, str],
    inputs: Sequence[Input],
    held: Mapping[str, ModelFile] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> dict[str, UserModel]:
    """The part of each framework's request that says which model to run; ``held`` are the models that are files, and
    ``arguments`` what the others' factories are called with."""
    params = {**factories, **{name: repr(value) for name, value in (arguments or {}).items()}}
    if inputs:
        params["inputs"] = "; ".join(text_of(i) for i in inputs)
    names = tuple(name for name in frameworks() if name in factories)
    return {
        name: UserModel(
            factory=factories[name],
            name=name_of(factories),
            params=params,
            frameworks=names,
            inputs=tuple((i.name, tuple(i.shape), i.dtype) for i in inputs),
            arguments=dict(arguments or {}),
            file=(held or {}).get(name),
        )
        for name in names
    }


def text_of(given: Input) -> str:
    """An input as ``read_input`` takes it."""
    shape = ",".join(map(str, given.shape)) or "()"
    return (f"{given.name}=" if given.name else "") + shape + (f":{given.dtype}" if given.dtype else "")
