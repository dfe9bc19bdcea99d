"""The modules of the package, what each imports, and what each says: every file is parsed once, and its tree is not kept."""

from __future__ import annotations

import ast
import functools
import io
import itertools
import os
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
WIDE = 8
"""Fields of a record from which on each has its line."""
TYPE_COMMENT = re.compile(r"#\s*type:(?!\s*ignore\b)")


def source_files() -> dict[str, Path]:
    """Every module of the package by its dotted name, links followed."""
    found = {}
    for folder, folders, files in os.walk(ROOT / "reconcile", followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for file in sorted(files):
            if file.endswith(".py"):
                path = Path(folder, file)
                parts = path.relative_to(ROOT).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = source_files()
ENGINE = [m for m in MODULES if re.match(r"reconcile\.(align|engine)\b", m)]
ADAPTERS = [m for m in MODULES if m.startswith("reconcile.adapters")]
ZOO = [m for m in MODULES if m.startswith("reconcile.model_zoo.") and m.rpartition(".")[2] not in ("loading", "pair")]


class Facts(NamedTuple):
    """What the rules of the house ask of a file.

    Attributes:
        imports: The modules and names that it imports, anywhere in it: how many dots, the module, a name of it.
        registered: Modules beside it that it imports as modules and uses no further.
        functions: The names of its functions and methods.
        public: The names of its top-level functions and classes.
        strings: Line and text of its strings, without those that are statements.
        docstrings: Line and text of its strings that are statements.
        templates: Its f-strings, with ``{}`` for what is not text.
        constants: Its top-level constants of one word that are text.
        silent: Its wide records with fields that have no line: their names.
        old: Line and kind of what Python 3 writes in another way.
    """

    imports: frozenset[tuple[int, str, str]]
    registered: frozenset[str]
    functions: tuple[str, ...]
    public: tuple[str, ...]
    strings: tuple[tuple[int, str], ...]
    docstrings: tuple[tuple[int, str], ...]
    templates: frozenset[str]
    constants: tuple[tuple[str, str], ...]
    silent: tuple[str, ...]
    old: tuple[tuple[int, str], ...]


def facts_of(source: str) -> Facts:
    """The facts of a source."""
    tree = ast.parse(source)
    nodes: defaultdict[type, list[Any]] = defaultdict(list)
    for node in ast.walk(tree):
        nodes[type(node)].append(node)
    statements = {id(n.value) for n in nodes[ast.Expr]}
    texts = [n for n in nodes[ast.Constant] if isinstance(n.value, str)]
    functions = [*nodes[ast.FunctionDef], *nodes[ast.AsyncFunctionDef]]
    public = {n.name for n in (*functions, *nodes[ast.ClassDef]) if n in tree.body and not n.name.startswith("_")}
    imported = {(0, alias.name, "") for n in nodes[ast.Import] for alias in n.names}
    imported |= {(n.level, n.module or "", alias.name) for n in nodes[ast.ImportFrom] for alias in n.names}
    used = {n.id for n in nodes[ast.Name]}
    beside = (n for n in tree.body if isinstance(n, ast.ImportFrom) and n.level == 1 and n.module is None)
    silent = {n.name: find_silent_fields(n) for n in nodes[ast.ClassDef]}
    return Facts(
        frozenset(imported),
        frozenset(alias.name for node in beside for alias in node.names if alias.name not in used),
        tuple(n.name for n in functions),
        tuple(public),
        tuple((n.lineno, n.value) for n in texts if id(n) not in statements),
        tuple((n.lineno, n.value) for n in texts if id(n) in statements),
        frozenset(map(text_of, nodes[ast.JoinedStr])),
        tuple(find_constants(tree)),
        tuple(f"{name}: {', '.join(fields)}" for name, fields in silent.items() if fields),
        (*find_type_comments(source), *find_python_2(nodes[ast.ClassDef], nodes[ast.Call])),
    )


def find_constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The top-level constants of one word, with their text."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and re.fullmatch(r"_?[A-Z]+", target.id) and text_of(node.value):
                yield target.id, text_of(node.value)


def find_silent_fields(record: ast.ClassDef) -> list[str]:
    """The fields of a wide record that have no line of their own; none of a record with fewer fields than ``WIDE``."""
    fields = [n.target.id for n in record.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    if len(fields) < WIDE:
        return []
    described = set(re.findall(r"^ *(\w+): \S", ast.get_docstring(record) or "", re.MULTILINE))
    for before, after in itertools.pairwise(record.body):
        text = text_of(after.value) if isinstance(after, ast.Expr) else ""
        if text and isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            described.add(before.target.id)
    return [name for name in fields if name != "_" and name not in described]


def find_type_comments(source: str) -> Iterator[tuple[int, str]]:
    """The lines with a comment that is a type."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline) if TYPE_COMMENT.search(source) else ()
    for token in tokens:
        if token.type == tokenize.COMMENT and TYPE_COMMENT.search(token.string):
            yield token.start[0], "type comment"


def find_python_2(classes: list[ast.ClassDef], calls: list[ast.Call]) -> Iterator[tuple[int, str]]:
    """The lines with `(object)` or `super(Own, self)`."""
    for node in classes:
        if any(isinstance(base, ast.Name) and base.id == "object" for base in node.bases):
            yield node.lineno, "object"
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id == "super" and call.args:
            yield call.lineno, "super"


def text_of(value: ast.expr | None) -> str:
    """The text that an expression is, as far as it stands in the source; '' if it is another one."""
    if isinstance(value, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in value.values)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


FACTS: dict[str, Facts] = {}
"""What was read. In a session of pytest one process reads all files for the others (conftest.py)."""


def facts(module: str) -> Facts:
    """The facts of a module."""
    if module not in FACTS:
        FACTS[module] = facts_of(MODULES[module].read_text())
    return FACTS[module]


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The modules of this package that `module` imports, anywhere in it."""
    package = module.split(".") if MODULES[module].name == "__init__.py" else module.split(".")[:-1]
    found = set()
    for level, base, name in facts(module).imports:
        parts = [*package[: len(package) - level + 1 if level else 0], *base.split(".")]
        whole = ".".join(filter(None, parts))
        found.add(f"{whole}.{name}" if name and f"{whole}.{name}" in MODULES else whole)
    return frozenset(name for name in found if name in MODULES and name != "reconcile")


@functools.cache
def links() -> dict[str, frozenset[str]]:
    """Every module and what it imports of this package."""
    return {m: imports(m) for m in MODULES if m != "reconcile"}


def part(module: str) -> str:
    """The part of the house a module belongs to: `core`, `adapters`, `cli` ..."""
    return module.split(".")[1]
