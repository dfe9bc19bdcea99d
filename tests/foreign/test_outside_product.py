"""Another author's product: a package adds a command and an option of ``run``; and nothing here knows such a package."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from reconcile.cli.command_group import LazyGroup
from reconcile.cli.run_options import AddedOptions
from reconcile.core.errors import EXIT_OK, EXIT_USAGE, UsageError
from tests.programs import output_of

from .installing import installed_as, reconcile

PACKAGE = Path(__file__).parent / "small_product"
COUNTER = Path(__file__).parent / "tiny_counter"
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
    found: dict[str, Any] = json.loads(output_of("-c", STUBBED, json.dumps(commands), folder=site, paths=[site]))
    return found


def test_its_command_and_its_option_do_what_they_say(installed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = ["run", "--model", "gru_demo", "--out"]
    found = call(
        installed, ["--help"], ["run", "--help"], [*run, str(out), "--note", "first try"], [*run, str(tmp_path / "plain")],
        ["notes", str(out)], [*run, str(out), "--note", "a\nb"],
    )  # fmt: skip
    listed, helped, noted, plain, printed, refused = found["calls"]
    heading = listed[1].index("Notes of runs:\n")
    assert re.fullmatch(r"Notes of runs:\n  notes +Print the notes of past runs\.\n", listed[1][heading:])
    assert "--note TEXT" in helped[1]
    assert [code for code, _, _ in (noted, plain, printed)] == [EXIT_OK] * 3
    assert found["timeouts"] == [86400.0, 600.0]  # as its option makes it, and without it
    (note,) = out.glob("*.note")
    assert (note.read_text(), printed[1]) == ("first try (0)", f"{note.stem}: first try (0)\n")
    (report,) = out.glob("*.md")  # it repeats the option
    assert "reconcile run --model gru_demo --note 'first try'" in report.read_text()
    assert refused == [EXIT_USAGE, "", "Error: --note takes one line.\n"]


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
    "a field of another type": ("__init__.py", "run_options=", 'framework_fields=(("torch", "steps", True),), run_options='),
    "a field that no counter has": (
        "__init__.py",
        "run_options=",
        'counter_fields=(("flop_counter", "steps", ""),), run_options=',
    ),
    "a number for an entry": ("__init__.py", "run_options=", "framework_fields=(3,), run_options="),
    "nothing for an entry": ("__init__.py", "run_options=", "framework_fields=(None,), run_options="),
    "a field without a framework": ("__init__.py", "run_options=", 'framework_fields=(("steps", ""),), run_options='),
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
}  # fmt: skip
"""What is wrong: the file, its text, and what stands in place of that."""


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_product_is_one_sentence(installed: Path, registered: Callable[[Path], None], fault: str) -> None:
    def use() -> None:
        group = LazyGroup("reconcile")
        group.get_command(click.Context(group), "notes")
        _ = AddedOptions("options").products

    name, old, new = BROKEN[fault]
    file = installed / "reconcile_notes" / name
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    registered(installed)
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
