"""Under ``python -OO``, which drops docstrings, everything that is made of one says the same."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from reconcile.cli import cli
from reconcile.model_zoo.loading import pair_path
from reconcile.worker.introspect import documentation

ROOT = Path(__file__).parents[2]
OPTIMIZED = {**os.environ, "PYTHONOPTIMIZE": "2"}
MODULE = '''"""A module.

With a second line."""


class Made:
    """A class."""


    def inside(self):
        """A method."""


def bare(): ...
'''
HELP = """
import json
import click
from click.testing import CliRunner
from reconcile.cli import cli
assert __doc__ is None
names = ["", *(name for name, _ in cli.walk(click.Context(cli)))]
print(json.dumps([CliRunner().invoke(cli, [*name.split(), "--help"]).output for name in names]))
"""


def said(code: str, environ: dict[str, str]) -> object:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_help_is_the_same() -> None:
    shown = said(HELP, OPTIMIZED)
    assert shown == said(HELP, dict(os.environ))
    assert len(set(map(str, shown))) == 1 + len(list(cli.walk(click.Context(cli))))  # type: ignore[call-overload]


def test_documentation_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    code = (
        f"import json, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import mine; from reconcile.worker.introspect import documentation\n"
        "print(json.dumps([documentation(x) for x in (mine, mine.Made, mine.Made.inside, mine.bare)]))\n"
    )
    expected = ["A module.\n\nWith a second line.", "A class.", "A method.", ""]
    assert said(code, OPTIMIZED) == said(code, dict(os.environ)) == expected


def test_documentation_of_what_has_no_source() -> None:
    assert documentation(type("Bare", (), {})) == ""
    assert documentation(lambda: 0) == ""


@pytest.mark.parametrize("name", ["gru_demo", "lstm_lm"])
def test_a_pair_keeps_its_description(name: str) -> None:
    """What a worker says of the pair before it loads a framework: its Python drops docstrings as the one that starts it."""
    path = pair_path(name)
    code = (
        "import json; from reconcile.worker.main import Worker; from tests.workers import request\n"
        f"print(json.dumps(Worker(request('tf', pair={path!r}))._meta()['doc']))"
    )
    doc = ast.get_docstring(ast.parse(Path(path).read_text()), clean=False)
    assert doc
    assert said(code, OPTIMIZED) == said(code, dict(os.environ)) == doc
