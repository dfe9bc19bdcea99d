"""The modules of the package, what each imports, and what each says."""

from __future__ import annotations

import ast
import functools
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The modules of this package that `module` imports, anywhere in it."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                name = ".".join([*base, alias.name])
                found.add(name if name in MODULES else ".".join(base))
    return frozenset(name for name in found if name in MODULES and name != "reconcile")


def part(module: str) -> str:
    """The part of the house a module belongs to: `core`, `adapters`, `cli` ..."""
    return module.split(".")[1]


ENGINE = [m for m in MODULES if re.match(r"reconcile\.(align|engine)\b", m)]
ADAPTERS = [m for m in MODULES if m.startswith("reconcile.adapters")]
ZOO = [m for m in MODULES if m.startswith("reconcile.model_zoo.") and m.rpartition(".")[2] not in ("loading", "pair")]


LINKS = {m: imports(m) for m in MODULES if m != "reconcile"}


@functools.cache
def words(module: str) -> str:
    """The module's text without comments: what the code says, docstrings included."""
    return ast.unparse(ast.parse(MODULES[module].read_text()))


def parsed(module: str) -> ast.Module:
    """The module's syntax tree."""
    return ast.parse(MODULES[module].read_text())
