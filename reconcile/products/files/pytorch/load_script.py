"""Loads TorchScript modules from files, after a check of their code, pickles and graph.

A TorchScript module runs in an interpreter of its own, in which no hook of Python's fires. Loading one compiles its code, builds
its objects, and runs a ``__setstate__`` if it has one. Its code is read here token by token, by rules under which Python's words
and TorchScript's are the same; its pickles, which TorchScript reads by itself and which find no class of Python, may build
objects of its own code alone. The calls of the compiled module are checked again before it runs.
"""

from __future__ import annotations

import pickle
import pickletools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....core.protocol import ModelFile
from ..model_file import (
    LONGEST_RUN,
    FileError,
    Wanted,
    match_inputs,
    member,
    words,
)
from ..repacked import fresh
from .operators import OPERATORS

UNBOUNDED = (1 << 31) - 1
"""Trip counts from here on are how TorchScript writes ``while``."""

TOKEN = re.compile(
    r"""[A-Za-z_]\w*(?!['"]) | \d+(?:\.\d*)?(?:[eE][-+]?\d+)?j?(?![\w.]) | (?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')(?!['"])
    | [-+*/%@<>=!&|^~()\[\]{}:,.] | [ \n\t]+""",
    re.ASCII | re.VERBOSE,
)
"""A word of TorchScript as PyTorch writes it. It writes no comments, prefixes of strings, continued lines or semicolons."""

KEYWORDS = words("and assert class def elif else for if import in is not or pass return while with break continue")
CALLED = words("annotate bool complex float getattr hasattr int isinstance range str unchecked_cast uninitialized")
"""Functions without a prefix: types, conversions and the parts of an object. They do not include fork, awaitable and print."""

HELD = re.compile(r"_\d+", re.ASCII)
"""The name that TorchScript's printer gives to a module's own function: ``_0 = __torch__.f``."""

CLASSES = frozenset(f"quantized.{name}PackedParamsBase" for name in ("Linear", "Conv2d", "Conv3d", "Embedding")) | {
    "rnn.CellParamsBase"
}
"""Classes of PyTorch's own that a module may hold: the packed weights of quantized layers."""

BUILDERS = re.compile(
    r"__torch__(\.\w+)* \w+|collections OrderedDict|torch\.jit\._pickle (restore_type_tag|build_\w+)|torch device"
    r"|torch\._utils (_rebuild_tensor_v2|_rebuild_qtensor|_rebuild_parameter)|torch \w+Storage|torch per_\w+_affine",
    re.ASCII,
)
"""The names in a pickle of TorchScript: its own classes, tensors and their storages, typed lists."""


def torchscript(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """A TorchScript module and the arguments to call it with. Raises FileError."""
    import torch

    where = member(file.path)
    with fresh(file, lambda name, data: looked_at(where, name, data)) as archive:
        module = torch.jit.load(archive, map_location="cpu")
    if not file.trusted:
        check_graph(where, module)
    wanted = []
    for argument in module.forward.schema.arguments[1:]:
        if str(argument.type) == "Tensor":
            wanted.append(Wanted(argument.name, None, ""))
        elif not argument.has_default_value():
            raise FileError(
                f"{where} takes {argument.name}: {argument.type}, which cannot be given on the command line. "
                "Write a factory that loads it."
            )
    return module, (tuple(match_inputs(where, wanted, given)), {})


def looked_at(where: str, name: str, data: bytes) -> bytes:
    """A member of a TorchScript archive, if it may be loaded. Raises FileError."""
    if name.endswith(".py"):
        check_code(where, name, data)
    elif name.endswith(".pkl"):
        check_pickle(where, name, data)
    return data


def check_code(where: str, name: str, data: bytes) -> None:
    """Refuse code that runs as it is loaded, or that calls what reaches out of the program. Raises FileError."""
    try:
        words = list(_words(data.decode("ascii")))
    except ValueError as error:
        raise FileError(f"{where} cannot be loaded: its {name} is no TorchScript.") from error
    before = ""
    for at, word in enumerate(words):
        why = "" if before == "." or not word.isidentifier() else _forbids(word, before, words[at + 1 : at + 9])
        if word == "__setstate__":
            why = "holds a __setstate__, which runs as the file is loaded"
        if why:
            raise FileError(f"{where} {why}; --trust-file lets it.")
        before = word


def _words(text: str) -> Iterator[str]:
    """The words of TorchScript's source. Raises ValueError for anything that it is not written with."""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError(text[at : at + 20])
        at = found.end()
        if not found[0].isspace():
            yield found[0]


def _forbids(word: str, before: str, after: Sequence[str]) -> str:
    """Why a name that begins an expression must not stand there; '' if it may."""
    if word in ("torch", "ops"):
        parts = _path(after)[: 1 if word == "torch" else 2]
        operator = "::".join(["aten", *parts] if word == "torch" else parts)
        if operator not in OPERATORS:
            return f"calls the operator {operator}, which is not in the list of those that do nothing but compute"
    elif word == "__torch__":
        parts = _path(after)
        own = parts[:1] not in ([], ["torch"]) or parts[1:2] not in ([], ["classes"])
        if not own and ".".join(parts[2:4]) not in CLASSES:
            name = ".".join(["__torch__", *parts])
            return f"uses the class {name}, which is not in the list of those that do nothing but compute"
    elif (
        after[:1] == ["("]
        and before not in ("def", "class")
        and word not in CALLED | KEYWORDS
        and not HELD.fullmatch(word)
    ):
        return f"calls {word}, which is not in the list of functions that do nothing but compute"
    return ""


def _path(after: Sequence[str]) -> list[str]:
    """The names that follow, each after a dot."""
    found = []
    for dot, name in zip(after[::2], after[1::2], strict=False):
        if dot != "." or not name.isidentifier():
            break
        found.append(name)
    return found


def check_pickle(where: str, name: str, data: bytes) -> None:
    """Refuse a pickle that builds other objects than TorchScript's. Raises FileError."""
    try:
        for code, value, _ in pickletools.genops(data):
            if code.name in ("GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"):
                known = code.name == "GLOBAL" and BUILDERS.fullmatch(str(value)) is not None
                owner, _, kind = str(value).replace(" ", ".").partition("__torch__.torch.classes.")
                if not known or (not owner and kind and kind not in CLASSES):
                    raise FileError(
                        f"{where} holds something pickled, {str(value)[:80]}, that is no TorchScript; --trust-file lets it."
                    )
    except (ValueError, pickle.UnpicklingError, OverflowError, IndexError) as error:
        raise FileError(f"{where} cannot be loaded: its {name} is damaged.") from error


def check_graph(where: str, module: Any) -> None:
    """Refuse a call of an operator that is in no list, and a loop with too many iterations: counters run the model."""
    hooks = (*module._c._get_forward_pre_hooks(), *module._c._get_forward_hooks())  # in no graph: its caller runs them
    graphs = [module.inlined_graph, *(hook.inlined_graph for hook in hooks)]  # their blocks do not keep them alive
    pending = [(graph, 1) for graph in graphs]
    while pending:
        block, times = pending.pop()
        for node in block.nodes():
            inner = times
            if node.kind() not in OPERATORS:
                raise FileError(
                    f"{where} calls the operator {node.kind()}, which is not in the list of those that do nothing but compute; "
                    "--trust-file lets it."
                )
            if node.kind() == "prim::Loop":
                trips = next(iter(node.inputs())).node()
                count = trips.i("value") if trips.kind() == "prim::Constant" and trips.hasAttribute("value") else 1
                inner = times * (count if count < UNBOUNDED else 1)
                if inner > LONGEST_RUN:
                    raise FileError(
                        f"a loop in {where} runs {inner:,} times, and PyTorch's counters run the model; "
                        "--trust-file lets them."
                    )
            pending.extend((inside, inner) for inside in node.blocks())
