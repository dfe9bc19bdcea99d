"""Files for an old Python: the list is closed under imports, and nothing is written as Python 2 had it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from .legacy import ROOT, RUFF, legacy_files, settings

MENTIONED = 2
"""Files of the list that another text may give as examples."""
LISTED = [(name, python) for python in RUFF for name in legacy_files(python)]
TYPE_COMMENT = re.compile(r"#\s*type:(?!\s*ignore\b)")


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


@pytest.mark.parametrize(("name", "python"), LISTED)
def test_a_file_for_an_old_python_imports_files_for_it_only(name: str, python: str) -> None:
    """An old Python reads what these files import as well."""
    imported = {path.relative_to(ROOT).as_posix() for path in module_level_imports(ROOT / name)}
    older = [other for other, lowest in LISTED if lowest <= python]
    assert imported - set(older) == set()


@pytest.mark.parametrize("name", legacy_files("3.6"))
def test_a_file_for_python_3_6_names_its_package_itself(name: str) -> None:
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


def of_python_2(source: str) -> Iterator[tuple[int, str]]:
    """Line and kind of what Python 3 writes in another way: type comments, `(object)`, `super(Own, self)`."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline) if TYPE_COMMENT.search(source) else ()
    for token in tokens:
        if token.type == tokenize.COMMENT and TYPE_COMMENT.search(token.string):
            yield token.start[0], "type comment"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id == "object" for b in node.bases):
            yield node.lineno, "object"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and node.args:
            yield node.lineno, "super"


def test_unused_imports_are_looked_for_in_every_file() -> None:
    lint = settings()["lint"]
    assert "F" in lint["select"]
    assert not [rule for rule in lint["ignore"] if rule.startswith("F")]
    assert "per-file-ignores" not in lint


def test_each_listed_file_has_a_version_that_is_checked() -> None:
    assert set(settings()["per-file-target-version"].values()) == set(RUFF.values())


def test_nothing_is_written_as_python_2_had_it() -> None:
    files = [file for folder in ("reconcile", "adapters", "model_zoo") for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > len(LISTED)
    assert [(file, line, what) for file in files for line, what in of_python_2(file.read_text())] == []


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
    assert [kind for _, kind in of_python_2(source)] == [what]


def test_the_scan_passes_what_python_3_writes() -> None:
    source = "class A(B):\n    a: object = 1  # type: ignore[misc]\n    def f(self):\n        return super().f('# type: int')\n"
    assert list(of_python_2(source)) == []


def test_the_list_of_files_for_an_old_python_is_kept_once() -> None:
    """No other file that configures or checks this repository names several of them."""
    names = [name for name, _ in LISTED if not name.endswith("__init__.py")]
    others = [ROOT / name for name in ("Makefile", ".pre-commit-config.yaml", "mkdocs.yml", "action.yml")]
    others += [
        path for folder in (".ci", ".github", "tests/home") for path in (ROOT / folder).rglob("*") if path.is_file()
    ]
    texts = {path: path.read_text(errors="replace") for path in others if path.exists()}
    assert len(texts) > len(names) / 10
    assert [path for path, text in texts.items() if sum(name in text for name in names) > MENTIONED] == []
    assert sum(name in (ROOT / "pyproject.toml").read_text() for name in names) > MENTIONED
