"""Files for an old Python: the list is closed under imports, and nothing is written as Python 2 had it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from reconcile.core.registry import frameworks
from tests.home.modules import MODULES, facts, facts_of

from .legacy import ROOT, RUFF, legacy_files, settings

pytestmark = pytest.mark.text

LISTED = [(name, python) for python in RUFF for name in legacy_files(python)]


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


def test_a_file_for_an_old_python_imports_files_for_it_only() -> None:
    """An old Python reads what these files import as well."""
    wrong = {}
    for name, python in LISTED:
        imported = {path.relative_to(ROOT).as_posix() for path in module_level_imports(ROOT / name)}
        wrong[name] = imported - {other for other, lowest in LISTED if lowest <= python}
    assert {name: files for name, files in wrong.items() if files} == {}


def test_what_a_framework_imports_by_name_runs_where_its_adapter_does() -> None:
    lowest = dict(LISTED)
    for framework in frameworks().values():
        folder = framework.adapter.partition(":")[0].strip(".").replace(".", "/")
        files = ["reconcile/" + name.strip(".").replace(".", "/") for name in framework.declared_by]
        python = lowest.get(f"{folder}.py", "any")
        assert [file for file in files if lowest.get(f"{file}.py", "any") > python] == [], framework.name


def find_early_package(path: Path) -> list[int]:
    """The lines at which a file's import reads ``__package__`` (functions are not entered)."""
    pending: list[ast.AST] = list(ast.parse(path.read_text()).body)
    early = []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and node.id == "__package__":
            early.append(node.lineno)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)
    return early


def test_a_file_for_python_3_6_names_its_package_itself() -> None:
    """Up to Python 3.9, zipimport sets ``__package__`` when the module has run: before, it is None."""
    early = {name: find_early_package(ROOT / name) for name in legacy_files("3.6")}
    assert {name: lines for name, lines in early.items() if lines} == {}


def test_each_listed_file_has_a_version_that_is_checked() -> None:
    assert set(settings()["per-file-target-version"].values()) == set(RUFF.values())


@pytest.mark.usefixtures("facts")
def test_nothing_is_written_as_python_2_had_it() -> None:
    assert len(MODULES) > len(LISTED)
    assert [(module, line, what) for module in MODULES for line, what in facts(module).old] == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def f(a):\n    # type: (int) -> int\n    return a\n", "type comment"),
        ("a = []  #type: List[int]  # the numbers\n", "type comment"),
        ("a = []  # numbers  # type: List[int]\n", "type comment"),
        ("class A(object):\n    pass\n", "object"),
        ("class A(B):\n    def f(self):\n        return super(A, self).f()\n", "super"),
    ],
)
def test_the_scan_finds(source: str, what: str) -> None:
    assert [kind for _, kind in facts_of(source).old] == [what]


def test_the_scan_passes_what_python_3_writes() -> None:
    source = "class A(B):\n    a: object = 1  # type: ignore[misc]\n    def f(self):\n        return super().f('# type: int')\n"
    assert facts_of(source).old == ()
