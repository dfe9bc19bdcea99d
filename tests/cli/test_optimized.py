"""Under ``python -OO``, which drops docstrings, everything that is made of one says the same."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import click
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.model_zoo.loading import pair_path
from reconcile.worker.introspect import documentation
from reconcile.worker.main import Worker
from tests.programs import output_of
from tests.workers import request

HELP = """
import json
import click
from click.testing import CliRunner
from reconcile.cli import cli
assert __doc__ is None
names = ["", *(name for name, _ in cli.walk(click.Context(cli)))]
print(json.dumps([CliRunner().invoke(cli, [*name.split(), "--help"]).output for name in names]))
"""


def say(code: str) -> object:
    """What the code prints under ``python -OO``."""
    return json.loads(output_of("-c", code, PYTHONOPTIMIZE="2"))


def test_help_is_the_same() -> None:
    names = ["", *(name for name, _ in cli.walk(click.Context(cli)))]
    shown = [CliRunner().invoke(cli, [*name.split(), "--help"]).output for name in names]
    assert say(HELP) == shown
    assert len(set(shown)) == len(names)


def test_documentation_of_what_has_no_source() -> None:
    assert documentation(type("Bare", (), {})) == ""
    assert documentation(lambda: 0) == ""


def test_a_pair_keeps_its_description() -> None:
    """What a worker says of the pair before it loads a framework: its Python drops docstrings as the one that starts it."""
    paths = [pair_path(name) for name in ("gru_demo", "lstm_lm")]
    code = (
        "import json; from reconcile.worker.main import Worker; from tests.workers import request\n"
        f"print(json.dumps([Worker(request('tf', pair=path))._meta()['doc'] for path in {paths!r}]))"
    )
    docs = [ast.get_docstring(ast.parse(Path(path).read_text()), clean=False) for path in paths]
    assert [path for path, doc in zip(paths, docs, strict=True) if not doc] == []
    assert say(code) == docs
    assert [Worker(request("tf", pair=path))._meta()["doc"] for path in paths] == docs
