"""Another author's product: a package of at most 60 lines adds a command and an option of ``run``; nothing here knows it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from reconcile.cli.lazy import LazyGroup
from reconcile.cli.run_options import AddedOptions
from reconcile.core import registry
from reconcile.core.errors import EXIT_OK, EXIT_USAGE, UsageError

from .installing import ROOT, installed_as, reconcile

PACKAGE = Path(__file__).parent / "small_product"
POINT = "[reconcile.products]\nnotes = reconcile_notes:PRODUCT\n"
STUBBED = """
import json, sys
from click.testing import CliRunner
from reconcile import workflow
from reconcile.cli import cli
from tests.report import samples

requests = []

def run(request, progress, take):
    requests.append(request.timeout)
    return samples.clean()

workflow.run = run
done = [CliRunner().invoke(cli, words, prog_name="reconcile") for words in json.loads(sys.argv[1])]
print(json.dumps({"calls": [(each.exit_code, each.stdout, each.stderr) for each in done], "timeouts": requests}))
"""
"""The commands one after another in one process, whose runner hands back a sample and remembers the limit it was asked for."""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return installed_as(tmp_path / "site", PACKAGE, "reconcile_notes", POINT)


def call(site: Path, *commands: list[str]) -> dict[str, Any]:
    """What the commands did beside the packages of ``site``: (exit code, stdout, stderr) of each, and the limits of the runs."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    words = [sys.executable, "-c", STUBBED, json.dumps(commands)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=site, env=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_is_as_short_as_it_says() -> None:
    lines = [line for file in (PACKAGE / "reconcile_notes").glob("*.py") for line in file.read_text().splitlines()]
    assert len(lines) <= 60


def test_nothing_here_knows_it() -> None:
    sources = [p for name in ("reconcile", "adapters", "model_zoo") for p in (ROOT / name).rglob("*.py")]
    assert sources
    assert [str(p) for p in sources if "reconcile_notes" in p.read_text()] == []


def test_its_command_and_its_option_do_what_they_say(installed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = ["run", "--model", "gru_demo", "--out", str(out)]
    found = call(
        installed, ["--help"], ["run", "--help"], [*run, "--note", "first try"], run, ["notes", str(out)],
        [*run, "--note", "a\nb"],
    )  # fmt: skip
    listed, helped, noted, plain, printed, refused = found["calls"]
    heading = listed[1].index("Notes of runs:\n")
    assert re.fullmatch(r"Notes of runs:\n  notes +Print the notes of past runs\.\n", listed[1][heading:])
    assert "--note TEXT" in helped[1]
    assert [code for code, _, _ in (noted, plain, printed)] == [EXIT_OK] * 3
    assert found["timeouts"] == [
        86400.0,
        600.0,
    ]  # what its option makes of the limit, and the limit of a run without it
    (note,) = out.glob("*.note")
    assert (note.read_text(), printed[1]) == ("first try (0)", f"{note.stem}: first try (0)\n")
    assert refused == [EXIT_USAGE, "", "Error: --note takes one line.\n"]


def test_the_command_in_a_report_repeats_its_option(installed: Path, tmp_path: Path) -> None:
    call(installed, ["run", "--model", "gru_demo", "--out", str(tmp_path), "--note", "first try"])
    (report,) = tmp_path.glob("*.md")
    assert "reconcile run --model gru_demo --note 'first try'" in report.read_text()


BROKEN = {
    "no such record": ("__init__.py", "PRODUCT = ", "ANOTHER = "),
    "no record": ("__init__.py", "PRODUCT = Product(", "PRODUCT = dict("),
    "a name that is taken": ("__init__.py", 'name="notes"', 'name="ranks"'),
    "commands that are none": ("__init__.py", "commands=(Command(", "commands=(tuple("),
    "a place without a name": ("__init__.py", ".command:notes", ".command"),
    "a field that no framework has": (
        "__init__.py",
        "run_options=",
        'framework_fields=(("torch", "rank", ""),), run_options=',
    ),
    "a field of another type": (
        "__init__.py",
        "run_options=",
        'framework_fields=(("torch", "steps", ""),), run_options=',
    ),
    "a number for an entry": ("__init__.py", "run_options=", "framework_fields=(3,), run_options="),
    "nothing for an entry": ("__init__.py", "run_options=", "framework_fields=(None,), run_options="),
    "a field without a framework": ("__init__.py", "run_options=", 'framework_fields=(("steps", True),), run_options='),
    "a command that is taken": ("__init__.py", 'Command("notes"', 'Command("run"'),
    "a module that is not there": ("__init__.py", ".command:notes", ".commands:notes"),
    "a command that is none": ("command.py", "@click.command()\n", ""),
    "options that cannot be imported": ("run_options.py", "import click", "import no_such_click"),
    "options that are none": ("run_options.py", "NOTES = NoteOptions()", "NOTES = object()"),
    "shared options that are none": ("__init__.py", "run_options=", 'options=(".command:notes",), run_options='),
    "a shared option that is taken": (
        "__init__.py",
        "run_options=",
        'options=("reconcile.products.files.options:OPTIONS",), run_options=',
    ),
    "an option that is taken": ("run_options.py", 'option("--note"', 'option("--quiet"'),
}
"""What is wrong: the file, its text, and what stands in place of that."""


@pytest.fixture
def broken(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, str], None]]:
    """``broken(file, old, new)``: the package with that change is installed in this process, until the test ends."""

    def change(name: str, old: str, new: str) -> None:
        file = installed / "reconcile_notes" / name
        text = file.read_text()
        assert text.count(old) == 1
        file.write_text(text.replace(old, new))
        monkeypatch.syspath_prepend(installed)
        registry.products.cache_clear()

    yield change
    registry.products.cache_clear()
    for name in [name for name in sys.modules if name.startswith("reconcile_notes")]:
        del sys.modules[name]


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_product_is_one_sentence(broken: Callable[[str, str, str], None], fault: str) -> None:
    def use() -> None:
        group = LazyGroup("reconcile")
        group.get_command(click.Context(group), "notes")
        _ = AddedOptions("options").products

    broken(*BROKEN[fault])
    with pytest.raises(UsageError) as refused:
        use()
    said = str(refused.value)
    assert "notes" in said
    assert said.endswith(". Fix or uninstall the package that provides it.")
    assert "\n" not in said


def test_the_tool_says_that_sentence(installed: Path, tmp_path: Path) -> None:
    (installed / "reconcile_notes" / "__init__.py").write_text("PRODUCT = None\n")
    done = reconcile(installed, tmp_path / "here", "--help")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (EXIT_USAGE, "", 1)
    assert "reconcile_notes:PRODUCT" in done.stderr
