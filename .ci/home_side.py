"""A pytest plugin (`-p home_side`): run what needs no framework, say what was left out and why, and skip nothing else.

Left out are files that import a framework, numpy, pandas, matplotlib or the like (themselves or through a helper in
`tests/`) and tests marked `frameworks`.  A test that asks for one of these packages itself (`pytest.importorskip`) is counted
with them.

Another Python has another syntax and library, not another text and not another mathematics: tests marked `text` are left out, and
all but some rows of a test that is a table of data, which run the same lines. (Hypothesis tries few examples: home-matrix.)
Any other skip fails the run: a green matrix means that the home side's tests ran.
"""

from __future__ import annotations

import ast
import functools
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = frozenset(
    {"tensorflow", "keras", "torch", "thop", "fvcore", "onnx", "h5py", "numpy", "pandas", "matplotlib"}
    | {"IPython", "nbformat", "selenium", "PIL"}
)
MARKS = ("frameworks", "text")
TABLE = 20
"""A test of more parameters is a table of data."""
ROWS = 5
"""Rows of it that run."""


def module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run on import: functions are not entered."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            yield from module_level([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)])


@functools.cache
def needs(path: Path) -> frozenset[str]:
    """The heavy packages without which this test file cannot be imported."""
    found: set[str] = set()
    for node in module_level(ast.parse(path.read_text()).body):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module or ''}.{alias.name}" for alias in node.names)]
        elif isinstance(node, (ast.Assign, ast.Expr)) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute) and call.func.attr == "importorskip":
                names = [ast.literal_eval(call.args[0])]
        for name in names:
            found |= {name.split(".")[0]} & HEAVY
            helper = ROOT.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("tests.") and helper != path and helper.is_file():
                found |= needs(helper)
    return frozenset(found)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if collection_path.name.startswith("test_") and collection_path.suffix == ".py" and needs(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = [item.nodeid.partition("[")[0] for item in items]
    sizes, seen = Counter(tests), Counter[str]()
    kept, left = [], []
    for item, test in zip(items, tests, strict=True):
        step = math.ceil(sizes[test] / ROWS) if sizes[test] > TABLE else 1
        leave = seen[test] % step or any(item.get_closest_marker(name) for name in MARKS)
        (left if leave else kept).append(item)
        seen[test] += 1
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def unexpected(report: pytest.TestReport) -> bool:
    """Whether a test was skipped for any other reason than a package that this environment leaves out."""
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return not any(f"could not import '{package}" in reason for package in HEAVY)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and any(map(unexpected, reporter.stats.get("skipped", []))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.section("left out on the home side")
    for path in sorted((config.rootpath / "tests").rglob("test_*.py")):
        if needs(path):
            terminalreporter.line(f"{path.relative_to(config.rootpath)}: imports {', '.join(sorted(needs(path)))}")
    terminalreporter.line(f"tests marked {' or '.join(MARKS)}, and all but {ROWS} rows of tests of more than {TABLE}")
    for report in terminalreporter.stats.get("skipped", []):
        kind = "SKIPPED WITHOUT LEAVE" if unexpected(report) else "asks for a package that is not here"
        terminalreporter.line(f"{report.nodeid}: {kind}")
