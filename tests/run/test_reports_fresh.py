"""The committed files under reports/ are what the tool writes today; the README shows them as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.svg import lengths, said

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "reports"
FORMATS = "md,csv,json,html,svg"
SUFFIXES = ("md", "csv", "json", "html", "waterfall.svg", "layers.svg")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("reports")
    command = [sys.executable, "-m", "reconcile", "run", "--model", "gru_demo", "--out", str(out)]
    command += ["--quiet", "--format", FORMATS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_committed_report_is_what_the_tool_writes(written, suffix):
    name = f"gru_demo.{suffix}"
    held, now = ((folder / name).read_text() for folder in (COMMITTED, written))
    if suffix.endswith("svg"):  # outlines of letters differ between versions of the charting library
        held, now = ((said(text), lengths(text)) for text in (held, now))
    assert held == now, (
        f"reports/{name} is stale: run `reconcile run --model gru_demo --format {FORMATS}` and commit what changed"
    )


def test_reports_say_nothing_of_this_machine(written):
    import getpass
    import socket

    for suffix in SUFFIXES:
        text = (written / f"gru_demo.{suffix}").read_text()
        for private in (str(ROOT), str(Path.home()), socket.gethostname(), f"/{getpass.getuser()}/", str(written)):
            assert private not in text


def test_the_document_shows_the_statement_as_it_is():
    report = (COMMITTED / "gru_demo.md").read_text()
    table = report.split("## From tf.profiler@frozen to thop")[1].split("\n\n")[2].strip()
    assert table.startswith("| line |")
    assert table in (ROOT / "docs" / "reports.md").read_text()
