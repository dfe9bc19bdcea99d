"""What a change costs, performed in a copy of the tree: an option of ``run`` touches three files, a product its folder and a row.

``CONTRIBUTING.md`` describes both changes; each here is what its section says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.home.modules import ROOT

pytestmark = pytest.mark.text

COPIED = ("reconcile", "adapters", "model_zoo", "tests", "pyproject.toml", "README.md")
FOLDERS_NOT_COPIED = ("found", "fuzz", "networks", "seeds")


class Copy:
    """A copy of parts of the tree, with their bytecode, and the names of the files that were changed in it."""

    def __init__(self, folder: Path, parts: Iterable[str]) -> None:
        self.folder = folder
        self.touched: set[str] = set()
        folder.mkdir()
        for name in parts:
            if (ROOT / name).is_file():
                shutil.copy(ROOT / name, folder / name)
            else:
                unwanted = shutil.ignore_patterns(*FOLDERS_NOT_COPIED)
                shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=unwanted)

    def replace(self, name: str, old: str, new: str) -> None:
        """Change the one place of a file that says ``old``."""
        text = (self.folder / name).read_text()
        assert text.count(old) == 1, f"{name} says {text.count(old)} times: {old}"
        self.write(name, text.replace(old, new))

    def write(self, name: str, text: str) -> None:
        """Write a file, new or changed."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.touched.add(name)

    def run(self, *words: str, paths: Iterable[Path] = ()) -> str:
        """What a program in the copy prints. Fails the test if it fails."""
        found = os.pathsep.join(map(str, (self.folder, *paths)))
        environment = {**os.environ, "PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "tree", COPIED)


RECORD = """        Option(
            "remark", field="remark", read=str, group=Group.MANNER, takers=(RUN, CHECK, MATRIX, PYTHON, PYTEST), metavar="TEXT",
            baseline=True, help="Remark on this run, which its report repeats.",
        ),
"""
STEP = '''def remark(job: Job, _until_the_end: ExitStack) -> None:
    """Add the user's remark to the notes of the report."""
    assert job.answer is not None
    if job.request.remark:
        job.answer = replace(job.answer, notes=(*job.answer.notes, job.request.remark))


STEPS = (prepare, collect, settle, extend, remark)
'''
TEST_OF_OPTION = '''"""A remark reaches the report from every interface."""

from click.testing import CliRunner

import reconcile
from reconcile import workflow
from reconcile.api.fixture import pop_options
from reconcile.cli import cli
from reconcile.launch.request import run_request
from reconcile.pytest_plugin import Flops, _key
from reconcile.products.formula.api import PASSED_ON
from reconcile.products.sweep.cell import command_of
from reconcile.products.sweep.cells import Cell, manner_of
from tests.report import samples


def test_a_remark_is_in_the_report(tmp_path, monkeypatch):
    def settle(job, _stack):
        job.answer = samples.clean()

    monkeypatch.setattr(workflow, "STEPS", (settle, workflow.remark))
    words = ["run", "--model", "gru_demo", "--out", str(tmp_path), "--remark", "as published"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    (report,) = tmp_path.glob("*.md")
    assert report.read_text().count("as published") == 2  # among the notes, and in the command that repeats the run
    assert "as published" in reconcile.run(model="gru_demo", remark="as published").result.notes
    assert run_request(remark="x") != run_request()


def test_every_interface_takes_it():
    for command in ("run", "check", "matrix"):
        assert "--remark TEXT" in CliRunner().invoke(cli, [command, "--help"]).output
    params = {"units": 3, "remark": "x", "counters": "y"}
    assert pop_options(params, Flops.check) == {"remark": "x"}
    assert params == {"units": 3, "counters": "y"}
    assert _key(run_request(model="m", remark="x")) != _key(run_request(model="m"))
    assert "remark" in PASSED_ON
    manner = manner_of({"remark": "x"}, ("md",))
    assert command_of(Cell("m", "m"), manner) == "reconcile run --model m --remark x"
'''


HOLDING = (
    "test_every_field_is_decided_by_an_option",
    "test_no_option_is_declared_twice",
    "test_a_command_has_the_options_that_it_takes",
)
"""Tests that hold records, requests and commands to each other."""


@pytest.mark.slow
def test_an_option_of_run_touches_three_files(copy: Copy) -> None:
    options = "reconcile/launch/options.py"
    copy.replace(
        options, '        Option(\n            "formulas",', RECORD + '        Option(\n            "formulas",'
    )
    copy.replace(options, '    device: str = "cpu"\n', '    device: str = "cpu"\n    remark: str = ""\n')
    copy.replace("reconcile/workflow.py", "STEPS = (prepare, collect, settle, extend)\n", STEP)
    copy.replace("reconcile/workflow.py", "import dataclass\n", "import dataclass, replace\n")
    copy.write("tests/launch/test_remark.py", TEST_OF_OPTION)
    held = [f"tests/launch/test_request.py::{name}" for name in HOLDING]
    copy.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/launch/test_remark.py", *held)
    assert len(copy.touched) <= 3


PRODUCT = '''"""Greetings: an example of a product."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="greetings",
    module=__name__,
    commands=(Command("greet", "Greet the model.", ".command:greet", heading="Count a model"),),
    run_options=(".command:GREETING",),
)
'''
COMMAND = '''"""``reconcile greet`` and ``reconcile run --greeting``."""

import click

from ...cli.run_options import RunOptions
from ...cli.streams import say


@click.command()
@click.argument("model")
def greet(model: str) -> None:
    """Greet the model."""
    say(f"Hello, {model}.")


class GreetingOptions(RunOptions):
    """``--greeting``."""

    options = (click.option("--greeting", is_flag=True, help="Greet the model first."),)


GREETING = GreetingOptions()
'''


def test_a_product_is_its_folder_and_a_row(copy: Copy) -> None:
    copy.write("reconcile/products/greetings/__init__.py", PRODUCT)
    copy.write("reconcile/products/greetings/command.py", COMMAND)
    copy.replace("reconcile/core/registry.py", '    "authors",\n', '    "authors",\n    "greetings",\n')
    outside = {name for name in copy.touched if not name.startswith("reconcile/products/greetings/")}
    assert outside == {"reconcile/core/registry.py"}
    (listed,) = [line for line in copy.run("-m", "reconcile", "--help").splitlines() if "greet" in line]
    assert listed.split() == ["greet", "Greet", "the", "model."]
    assert copy.run("-m", "reconcile", "greet", "gru_demo") == "Hello, gru_demo.\n"
    assert "--greeting" in copy.run("-m", "reconcile", "run", "--help")
