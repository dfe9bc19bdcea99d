"""The source of a function as it is for one brick: what the brick fixed is a literal there, and its helpers are inlined.

A brick's functions are closures: ``forward`` of a GRU reads ``steps_first`` and ``last`` of the function around it.  Here
these names become their values, conditions on constants become the branch that is taken, and a helper that is one
expression becomes that expression.  A framework's module has its usual name (``torch``, ``tf``).
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

LITERALS = (bool, int, float, str, type(None))
Describe = Callable[[Any], "str | None"]
"""Spells an object of a framework (a layer, a function of its) as an expression; None if it is none."""


class Unspelled(Exception):
    """Something that has no source to print. The message is half a sentence: "the layer ..."."""


@functools.cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def source(function: FunctionType) -> ast.FunctionDef:
    """The definition of a function or lambda, from its file; a lambda as a function that returns its expression."""
    code = function.__code__
    wanted = code.co_varnames[: code.co_argcount]
    for node in ast.walk(_tree(code.co_filename)):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node.lineno == code.co_firstlineno:
            names = tuple(argument.arg for argument in node.args.args)
            words = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            words |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if names != wanted or not {*code.co_freevars, *code.co_names} - set(dir(builtins)) <= words | _imported(
                node
            ):
                continue
            if isinstance(node, ast.FunctionDef):
                return copy.deepcopy(node)
            body: list[ast.stmt] = [ast.Return(copy.deepcopy(node.body))]
            return ast.FunctionDef("call", copy.deepcopy(node.args), body, [], None, None)
    raise Unspelled(f"the source of {function.__qualname__} cannot be read")


def _imported(node: ast.AST) -> set[str]:
    names = (name for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom) for name in n.names)
    return {word for name in names for word in (name.name, name.asname or name.name)}


def surroundings(function: FunctionType) -> dict[str, Any]:
    """The values of all names that a function reads from outside."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def spelled(
    function: FunctionType, describe: Describe, renamed: Mapping[str, ast.expr] | None = None
) -> ast.FunctionDef:
    """The definition with every outside name as what it is. ``renamed`` replaces names of arguments."""
    node = source(function)
    inside = _Inside(function, node, describe, renamed or {})
    made = inside.visit(node)
    made.body[:0] = inside.helpers.values()
    _without_aliases(made)
    return ast.fix_missing_locations(made)


def _without_aliases(node: ast.FunctionDef) -> None:
    """Replace names that are assigned once, at the top, to a constant or another such name; drop what nothing reads then."""
    stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    for statement in list(node.body):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        name, value = statement.targets[0].id, statement.value
        once = stored.count(name) == 1 and name not in {argument.arg for argument in node.args.args}
        if once and (isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id not in stored)):
            _replace(node, name, value)
        if once and not any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(node)
        ):
            node.body.remove(statement)


def _replace(node: ast.AST, name: str, value: ast.expr) -> None:
    class Replace(ast.NodeTransformer):
        def visit_Name(self, read: ast.Name) -> ast.expr:
            return copy.deepcopy(value) if read.id == name and isinstance(read.ctx, ast.Load) else read

    Replace().visit(node)


def text(node: ast.AST) -> str:
    """The node as source."""
    return ast.unparse(ast.fix_missing_locations(node))


def literal(value: Any) -> ast.expr | None:
    """A plain value, or a tuple or list of plain values, as an expression; None for anything else."""
    if isinstance(value, list | tuple):
        items = [literal(item) for item in value]
        if None in items:
            return None
        kept = [item for item in items if item is not None]
        return ast.List(kept, ast.Load()) if isinstance(value, list) else ast.Tuple(kept, ast.Load())
    if isinstance(value, slice):
        return ast.Slice(
            *(None if part is None else ast.Constant(part) for part in (value.start, value.stop, value.step))
        )
    return ast.Constant(value) if isinstance(value, LITERALS) else None


def framework_module(module: ModuleType) -> str | None:
    """``torch.nn``, ``tf.keras.activations``: the name of a framework's module as people write it; None for another module."""
    parts = module.__name__.split(".")
    if parts[0] == "torch":
        return module.__name__
    if parts[0] in ("tensorflow", "keras"):
        rest = parts[len(parts) - 1 - parts[::-1].index("keras") :] if "keras" in parts else parts[1:]
        return ".".join(["tf", *(part for part in rest if not part.startswith("_") and part not in ("api", "v2"))])
    return None


class _Inside(ast.NodeTransformer):
    def __init__(
        self, function: FunctionType, node: ast.FunctionDef, describe: Describe, renamed: Mapping[str, ast.expr]
    ) -> None:
        self.values = surroundings(function)
        self.describe = describe
        self.renamed = renamed
        self.helpers: dict[str, ast.FunctionDef] = {}
        self.locals = {argument.arg for n in ast.walk(node) if isinstance(n, ast.arguments) for argument in n.args}
        self.locals |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.locals |= {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef)}
        self.modules = {
            name.asname or name.name: {"tensorflow": "tf"}.get(name.name, name.name)
            for n in ast.walk(node)
            if isinstance(n, ast.Import)
            for name in n.names
        }

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        self.generic_visit(node)
        ends = [index for index, statement in enumerate(node.body) if isinstance(statement, ast.Return)]
        node.body = node.body[: ends[0] + 1] if ends else node.body
        return node

    def visit_Import(self, _node: ast.Import) -> None:
        return None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.renamed and isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self.renamed[node.id])
        if node.id in self.modules:
            return ast.Name(self.modules[node.id], ast.Load())
        if node.id in self.locals or node.id not in self.values:
            return node
        value = self.values[node.id]
        plain = literal(value)
        if plain is not None:
            return plain
        if isinstance(value, ModuleType):
            name = framework_module(value)
            if name is not None:
                return ast.parse(name, mode="eval").body
        described = self.describe(value)
        return node if described is None else ast.parse(described, mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.expr:
        helper = self._helper(node.func)
        self.generic_visit(node)
        if helper is None or node.keywords:
            return node
        made = source(helper)
        if len(made.body) > 1 and isinstance(made.body[0], ast.Expr):
            made.body = made.body[1:]
        returned = made.body[0]
        if len(made.body) > 1 or not isinstance(returned, ast.Return) or returned.value is None:
            raise Unspelled(f"{helper.__qualname__} is more than one expression")
        names = [argument.arg for argument in made.args.args]
        if any(_calls(argument) and _reads(made, name) > 1 for name, argument in zip(names, node.args, strict=True)):
            assert isinstance(node.func, ast.Name)
            self.helpers[node.func.id] = spelled(helper, self.describe)  # inlined, it would call a layer twice
            self.helpers[node.func.id].name = node.func.id
            return node
        inlined = spelled(helper, self.describe, dict(zip(names, node.args, strict=True))).body
        result = inlined[-1]
        assert isinstance(result, ast.Return)
        assert result.value is not None
        return result.value

    def _helper(self, function: ast.expr) -> FunctionType | None:
        known = isinstance(function, ast.Name) and function.id not in self.locals | {*self.renamed}
        value = self.values.get(function.id) if known and isinstance(function, ast.Name) else None
        return value if isinstance(value, FunctionType) and "model_zoo" in (value.__module__ or "") else None

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            taken: ast.AST = self.visit(node.body if test.value else node.orelse)
            return taken
        node.test = test
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_If(self, node: ast.If) -> Any:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            kept: list[ast.stmt] = []
            for statement in node.body if test.value else node.orelse:
                made = self.visit(statement)
                kept += made if isinstance(made, list) else [made] if made is not None else []
            return kept
        node.test = test
        self._bodies(node)
        return node

    def _bodies(self, node: ast.If) -> None:
        for statements in (node.body, node.orelse):
            made: list[ast.stmt] = []
            for statement in statements:
                visited = self.visit(statement)
                made += visited if isinstance(visited, list) else [visited] if visited is not None else []
            statements[:] = made

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        operands = _operands(node)
        if operands and all(isinstance(part, ast.Constant) for part in operands):
            return ast.Constant(eval(compile(text(ast.Expression(node)), "<constants>", "eval"), {}))  # type: ignore[arg-type]
        return node


def _operands(node: ast.AST) -> Iterable[ast.expr]:
    if isinstance(node, ast.BinOp):
        return (node.left, node.right)
    if isinstance(node, ast.Compare):
        return (node.left, *node.comparators)
    if isinstance(node, ast.BoolOp):
        return node.values
    return (node.operand,) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else ()


def _calls(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _reads(node: ast.AST, name: str) -> int:
    return sum(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
