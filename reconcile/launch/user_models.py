"""Parses the options that name a user's own model: its factory or file, its inputs (--input), and which counters run on it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.counter import Counter
from ..core.errors import UsageError, brief, check_names, short
from ..core.numbers import SIZE, integer, no_size
from ..core.protocol import ModelFile, UserModel
from ..core.registry import frameworks, known_counters, list_default_counters, load_places, title
from ..model_zoo.pair import Input

READ_BACK = "frozen_pb"
"""The recipe that every model of TensorFlow has: it is frozen, and read back with import_graph_def."""
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
FORM_OF_INPUT = (
    "Write [NAME=]SHAPE[:DTYPE], such as 1,3,224,224 or ids=1,128:int64, and () for a scalar; tf: before it gives the input to "
    "the TensorFlow model alone."
)

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def factory(framework: str, text: str, option: str = "") -> str:
    """Check the text that names a user's factory, in ``option`` or the framework's own, and return it as ``module:function``;
    ``timm:NAME`` is one of the models of that library. Raises UsageError for other text."""
    option = f"{option or f'--{framework}'} {short(text)}"
    module, colon, function = text.partition(":")
    if not colon:
        stem = module.removesuffix(".py").strip("./").replace("/", ".") or "module"
        what = "factory" if framework else "function"
        parent, _, last = stem.rpartition(".")
        is_module = not parent or stem != module or os.path.exists(stem.replace(".", os.sep) + ".py")
        meant = f"{stem}:make_model" if is_module else f"{parent}:{last}"
        meant = meant if _MODULE.fullmatch(stem) else "package.module:make_model"
        raise UsageError(f"{option} does not name a {what}. Write MODULE:FUNCTION, such as {brief(meant)}.")
    if not _MODULE.fullmatch(module):
        dotted = module.removesuffix(".py").strip("./").replace("/", ".")
        hint = f"{dotted}:{function or 'make_model'}" if _MODULE.fullmatch(dotted) else "package.module:make_model"
        raise UsageError(f"{option}: {short(module)} is not a module name. Write it with dots, such as {hint}.")
    if not _MODULE.fullmatch(function):
        raise UsageError(
            f"{option}: {short(function)} is not a function name. Write MODULE:FUNCTION, such as {module}:make."
        )
    known = frameworks()[framework].functions if framework else ()
    library = next((where for name, where, _ in known if name == module), module)
    return f"{library}:{function}"


def read_models(models: Mapping[str, str], given: Mapping[str, Any]) -> tuple[dict[str, ModelFile], dict[str, str]]:
    """The models that are files which a product reads; and the factories, a file's path for a file. Raises UsageError for a name
    that is neither, and what the products raise."""
    files = {name: file for read in load_places("model_readers") for name, file in read(models, given).items()}
    unread = next((name for name in models if name not in files and is_path(models[name])), "")
    if unread:
        raise UsageError(
            f"--{unread} {short(models[unread])} is a file, and the product `files`, which reads models in files, is missing: "
            "write MODULE:FUNCTION, a function that makes the model."
        )
    return files, {name: where if name in files else factory(name, where) for name, where in models.items()}


def is_path(text: str) -> bool:
    """Whether the text given for a model is the path of a file without Python code."""
    return not text.endswith(".py") and (os.path.lexists(text) or (os.sep in text and ":" not in text))


def read_input(text: str) -> Input:
    """One ``[NAME=]SHAPE[:DTYPE]``; the name is '' for an input by position, the dtype '' for the model's default dtype.

    Raises UsageError.
    """

    def wrong(why: str) -> UsageError:
        return UsageError(f"--input {short(text)} cannot be read: {why}. {FORM_OF_INPUT}")

    owner, own = split_owner(text)
    name, equals, rest = own.rpartition("=")
    name = name.strip()
    if equals and not name.isidentifier():
        raise wrong(f"{short(name)} is not an argument name")
    shape, colon, dtype = (part.strip() for part in rest.partition(":"))
    if colon and dtype not in DTYPES:
        raise wrong(f"{short(dtype)} is not one of {', '.join(DTYPES)}")
    sizes = () if shape in ("", "()") else shape.removeprefix("(").removesuffix(")").removesuffix(",").split(",")
    if not shape:
        raise wrong("it has no shape")
    dimensions = []
    for size in sizes:
        number = integer(size, 0, SIZE)
        if number is None:
            raise wrong(no_size(size))
        dimensions.append(number)
    if math.prod(dimensions) > SIZE:
        raise wrong("it has more elements than any tensor can have")
    return Input(owner + name, tuple(dimensions), dtype)


def split_owner(text: str) -> tuple[str, str]:
    """The framework that alone gets this input, with its colon, and the rest: ``("tf:", "1,8")``, ``("", "1,8:int64")``."""
    owner, colon, own = text.partition(":")
    return (f"{owner}:", own) if colon and owner in frameworks() else ("", text)


def read_inputs(texts: Sequence[str]) -> tuple[Input, ...]:
    """Every input; the name of one that a framework alone gets starts with it: ``tf:ids``, ``tf:``. Raises UsageError for one
    that cannot be read, and for a name given twice."""
    inputs = tuple(read_input(text) for text in texts)
    names = [i.name for i in inputs if not i.name.endswith(":") and i.name]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"--input gives {short(twice)} twice.")
    return inputs


def name_of(factories: Mapping[str, str]) -> str:
    """The model's name in reports: its factory, ``net.make``, or the name of its file, ``net.pt2``."""
    names = (where.replace(":", ".").rstrip("/").rpartition("/")[2] for where in factories.values())
    return "+".join(dict.fromkeys(names))


def counters_of(
    factories: Mapping[str, str], asked: Sequence[str], model_files: Mapping[str, ModelFile] | None = None
) -> tuple[str, ...]:
    """The counters for these frameworks: those asked for, otherwise those that run by default. Raises UsageError for others.

    A recipe builds a model in another way, which needs a pair. There is one exception: any model can be frozen and read back,
    and a frozen graph in one of the ``model_files`` already is, so that this recipe runs on it by default.
    """
    kinds = {name: file.kind for name, file in (model_files or {}).items()}
    check_names("counter", asked, known_counters())
    for name in asked:
        counter = known_counters()[name]
        if counter.framework not in factories:
            raise UsageError(
                f"{name} counts {title(counter.framework)} models: give one with --{counter.framework} MODULE:FUNCTION."
            )
        if counter.recipe not in ("", READ_BACK):
            raise UsageError(
                f"{name} builds the model in another way, which needs a pair file: see `reconcile zoo new`."
            )

    def unasked_here(name: str, counter: Counter) -> bool:
        frozen = kinds.get(counter.framework) == "graph_def" and counter.recipe == READ_BACK
        return frozen or name in list_default_counters(counter.framework)

    return tuple(
        name
        for name, c in known_counters().items()
        if c.framework in factories and (name in asked if asked else unasked_here(name, c))
    )


def models(
    factories: Mapping[str, str],
    inputs: Sequence[Input],
    model_files: Mapping[str, ModelFile] | None = None,
    arguments: Mapping[str, Any] | None = None,
    example: str = "",
) -> dict[str, UserModel]:
    """The part of each framework's request that says which model to run. ``model_files`` are the models that are files, and
    ``arguments`` are the named arguments of the factories of the others; ``example`` is the function that returns what the
    models are called with."""
    params = {**factories, **{name: repr(value) for name, value in (arguments or {}).items()}}
    if inputs:
        params["inputs"] = "; ".join(text_of(i) for i in inputs)
    if example:
        params["args"] = example
    names = tuple(name for name in frameworks() if name in factories)
    return {
        name: UserModel(
            factory=factories[name],
            name=name_of(factories),
            params=params,
            frameworks=names,
            inputs=tuple((i.name, tuple(i.shape), i.dtype) for i in inputs),
            arguments=dict(arguments or {}),
            example=example,
            file=(model_files or {}).get(name),
        )
        for name in names
    }


def text_of(given: Input) -> str:
    """Write an input as a string that ``read_input`` reads."""
    shape = ",".join(map(str, given.shape)) or "()"
    owner, name = split_owner(given.name)
    return owner + (f"{name}=" if name else "") + shape + (f":{given.dtype}" if given.dtype else "")
