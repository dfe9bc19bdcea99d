"""PyTorch models out of files: programs of torch.export and TorchScript, loaded without unpickling anything.

An exported program becomes modules again (torch.export.unflatten), which keep the paths of those it was exported from;
a TorchScript module runs its own interpreter, in which no hook fires, so that all of its work belongs to the whole model.

torch.export.load of PyTorch 2.13 unpickles what the archive says is pickled, evaluates its symbolic expressions
(sympy.sympify is eval) and calls whatever function of ``torch`` a node names: all three are looked at first.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .model_file import LONGEST_RUN, FileError, Wanted, matched, member
from .nested import Arguments

PICKLED = "{} holds something pickled, and a pickle runs whatever code it brings along; --trust-file lets it."

UNBOUNDED = (1 << 31) - 1
"""Trip counts from here on are how TorchScript writes ``while``."""

TARGET = re.compile(
    r"torch\.ops\.(aten|prims|prim|higher_order|quantized_decomposed|quantized|torchvision|_c10d_functional)\.\w+(\.\w+)?"
    r"|_operator\.(getitem|\w*add|\w*sub|\w*mul|truediv|floordiv|mod|neg|pos|pow|abs|eq|ne|lt|le|gt|ge|not_|and_|or_|xor)"
    r"|(torch\.)?sym_\w+|math\.\w+|torch\._sym_\w+|torch\.sym_\w+|#\w+:\w+"
)
"""Functions that a node of an exported graph may call: operators, and arithmetic of sizes."""

REFUSED_OPS = ("save", "from_file", "load_library", "fork", "awaitable")
"""Of TorchScript's ``aten`` and ``prim`` operators, those that write or read files, or start threads."""
NAMESPACES = ("aten", "prim", "quantized", "torchvision", "_caffe2", "prepacked", "mkldnn", "mkldnn_prepacked")


def ready() -> None:
    """Start the framework, before the guards are up."""
    import torch.export  # noqa: F401


def load(file: Mapping[str, Any], given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The module in the file and the arguments to call it with. Raises FileError."""
    import torch

    with torch.device("cpu"), _weights_only(file):
        if file["kind"] == "torchscript":
            return torchscript(file, given)
        return exported(file, given)


@contextlib.contextmanager
def _weights_only(file: Mapping[str, Any]) -> Iterator[None]:
    """torch.load reads tensors only, even where its caller falls back to more."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    if not file["trusted"]:
        os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


def exported(file: Mapping[str, Any], given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """An exported program as modules."""
    import torch
    from torch.utils import _pytree as pytree

    where = member(file["path"])
    if not file["trusted"]:
        check_exported(where, file["path"])
    try:
        with open(file["path"], "rb") as data:
            program = torch.export.load(data)
    except pickle.UnpicklingError as error:
        if file["trusted"]:
            raise
        raise FileError(PICKLED.format(where)) from error
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    names = list(program.graph_signature.user_inputs)
    wanted = [
        Wanted(name, _sizes(values[name]), str(values[name].dtype).replace("torch.", ""))
        for name in names
        if isinstance(name, str) and isinstance(values.get(name), torch.Tensor)
    ]
    known = {i.name: i for i in matched(where, wanted, given)}
    leaves = [known.get(name, name) if isinstance(name, str) else name for name in names]
    positional, named = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return torch.export.unflatten(program), (tuple(positional), dict(named))


def _sizes(value: Any) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in value.shape)


def check_exported(where: str, path: str) -> None:
    """Refuse a program that would unpickle, evaluate or call anything but operators. Raises FileError."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            inside = name.partition("/")[2]
            if inside.endswith("_config.json"):
                for entry in _json(where, archive, name).get("config", {}).values():
                    pickled = str(entry.get("path_name", "")).startswith(("custom_obj", "opaque_obj"))
                    if entry.get("use_pickle") or pickled:
                        raise FileError(PICKLED.format(where))
            elif inside.startswith(("data/weights/", "data/constants/")) and inside.endswith(".pt"):
                raise FileError(f"{where} is a .pt2 of an older PyTorch; save it again with torch.export.save.")
            elif inside.startswith("models/") and inside.endswith(".json"):
                _check_program(where, _json(where, archive, name))


def _json(where: str, archive: zipfile.ZipFile, name: str) -> Any:
    try:
        return json.loads(archive.read(name))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{where} cannot be loaded: its {name} is no JSON.") from error


def _check_program(where: str, program: Any) -> None:
    pending = [program]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, dict):
            pending.extend(item.values())
            target, text = item.get("target"), item.get("expr_str")
            if isinstance(target, str) and "inputs" in item and not TARGET.fullmatch(target):
                raise FileError(f"{where} calls {target[:80]}, which is no operator; --trust-file lets it.")
            if text is not None and not is_arithmetic(str(text)):
                raise FileError(f"{where} has a size that is no arithmetic; --trust-file lets it.")


ARITHMETIC = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.keyword,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.boolop,
    ast.expr_context,
)


def is_arithmetic(text: str) -> bool:
    """Whether an expression is one of symbols, numbers and functions of them, as sympy writes it:
    ``Add(Integer(1), Symbol('s0', integer=True))``, or ``Max(2, 3*s0 + 1)``."""
    if len(text) > 10_000:
        return False
    try:
        return all(_is_plain(node) for node in ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):  # a string would be evaluated in its turn
        return isinstance(node.value, (int, float)) or re.fullmatch(r"\w+", str(node.value)) is not None
    if isinstance(node, ast.Name):
        return re.fullmatch(r"[a-z]{1,2}\d+|[A-Z]\w*|true|false|oo|int_oo|sqrt|floor|ceiling", node.id) is not None
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and all(isinstance(k.value, ast.Constant) for k in node.keywords)
    return isinstance(node, ARITHMETIC)


def torchscript(file: Mapping[str, Any], given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """A TorchScript module."""
    import torch

    where = member(file["path"])
    if not file["trusted"]:
        check_script(where, file["path"])
    with open(file["path"], "rb") as data:
        module = torch.jit.load(data, map_location="cpu")
    if not file["trusted"]:
        _check_loops(where, module)
    wanted = []
    for argument in module.forward.schema.arguments[1:]:
        if str(argument.type) == "Tensor":
            wanted.append(Wanted(argument.name, None, ""))
        elif not argument.has_default_value():
            raise FileError(
                f"{where} takes {argument.name}: {argument.type}, which cannot be given on the command line. "
                "Write a factory that loads it."
            )
    return module, (tuple(matched(where, wanted, given)), {})


def check_script(where: str, path: str) -> None:
    """Refuse a TorchScript archive with code that runs as it is loaded, or operators that reach out. Raises FileError."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not (name.partition("/")[2].startswith("code/") and name.endswith(".py")):
                continue
            try:
                tree = ast.parse(archive.read(name))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                raise FileError(f"{where} cannot be loaded: its {name} is no TorchScript.") from error
            for node in ast.walk(tree):
                why = _script_forbids(node)
                if why:
                    raise FileError(f"{where} {why}; --trust-file lets it.")


def _script_forbids(node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef) and node.name == "__setstate__":
        return "holds a __setstate__, which runs as the file is loaded"
    if not isinstance(node, ast.Attribute):
        return ""
    parts: list[str] = [node.attr]
    value = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name) or value.id not in ("torch", "ops"):
        return ""
    parts.reverse()
    if value.id == "ops" and parts[0] not in NAMESPACES:
        return "calls the operator {}".format("::".join(parts))
    if parts[-1] in REFUSED_OPS or parts[-1].startswith("rpc_"):
        return f"calls the operator {parts[-1]}, which reaches out of the program"
    return ""


def _check_loops(where: str, module: Any) -> None:
    """Refuse a loop that would run beyond all patience: PyTorch's counters run the model. Raises FileError."""
    graph = module.inlined_graph  # its blocks do not keep it alive
    pending = [(graph, 1)]
    while pending:
        block, times = pending.pop()
        for node in block.nodes():
            inner = times
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
