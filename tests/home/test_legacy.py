"""The files that legacy environments import: Python 3.6 syntax, one list for vermin and ruff, closed under imports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def legacy_files() -> list[str]:
    """LEGACY of the Makefile: the files that vermin holds to Python 3.6."""
    match = re.search(r"^LEGACY := \\\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert match
    return match[1].replace("\\", "").split()


def ruff_files() -> list[str]:
    """The files for which ruff's rules against old syntax (and, for type comments, F401) are off."""
    section = (ROOT / "pyproject.toml").read_text().split("[tool.ruff.lint.per-file-ignores]")[1].split("\n[")[0]
    return re.findall(r'^"([^"]+)" = \["B905", "F401", "UP"\]$', section, re.MULTILINE)


def test_the_two_lists_of_legacy_files_agree() -> None:
    listed, legacy = ruff_files(), legacy_files()
    assert listed[: len(legacy)] == legacy
    assert [name for name in listed[len(legacy) :] if not name.startswith("adapters/")] == []  # too new, written alike
    assert [name for name in ruff_files() if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("name", ruff_files())
def test_no_import_is_unused(name: str) -> None:
    """F401 for files with type comments: an imported name must occur a second time, in code or in a comment."""
    text = (ROOT / name).read_text()
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    bound = [(alias.asname or alias.name).split(".")[0] for node in nodes for alias in node.names]
    assert [bind for bind in bound if len(re.findall(rf"\b{bind}\b", text)) < 2] == []


def module_level_imports(path: Path) -> set[Path]:
    """The files of this repository that importing `path` imports (functions are not entered)."""
    inside = (
        ("reconcile" / path.relative_to(ROOT)) if path.parts[len(ROOT.parts)] != "reconcile" else path.relative_to(ROOT)
    )
    package = inside.parent.parts
    modules: list[tuple[str, ...]] = []
    pending: list[ast.stmt] = list(ast.parse(path.read_text()).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            modules += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple((node.module or "").split(".")) if node.module else ()
            modules += [base, *(((*base, alias.name)) for alias in node.names)]
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    found = set()
    for parts in modules:
        if parts[:1] == ("reconcile",):
            for end in range(1, len(parts) + 1):
                for file in (
                    ROOT.joinpath(*parts[:end], "__init__.py"),
                    ROOT.joinpath(*parts[:end]).with_suffix(".py"),
                ):
                    if file.is_file():
                        found.add(file.resolve())
    return found


@pytest.mark.parametrize("name", legacy_files())
def test_a_legacy_file_imports_legacy_files_only(name: str) -> None:
    """Python 3.6 reads what these files import as well, so the list is closed under imports."""
    imported = {path.relative_to(ROOT).as_posix() for path in module_level_imports(ROOT / name)}
    assert imported - set(legacy_files()) == set()


@pytest.mark.parametrize("name", legacy_files())
def test_a_legacy_file_takes_its_package_from_its_own_name(name: str) -> None:
    """Up to Python 3.9, zipimport sets ``__package__`` when the module has run: before, it is None."""
    pending: list[ast.AST] = list(ast.parse((ROOT / name).read_text()).body)
    early = []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and node.id == "__package__":
            early.append(node.lineno)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)
    assert early == []
