"""The committed files under reports/ are what the tool writes today; the README shows them as they are."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.launch import runner
from tests.report.svg import lengths, said
from tests.zoo.choice import REPORTED

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "reports"
FORMATS = "md,csv,json,html,svg"
COMMITTED_ENDS = ("md", "csv", "html", "waterfall.svg", "layers.svg")


@pytest.fixture(scope="module")
def written(tmp_path_factory, collecting):
    """The command's reports, of real workers' records."""
    out = tmp_path_factory.mktemp("reports")
    words = ["run", "--model", "gru_demo", "--out", str(out), "--quiet", "--format", FORMATS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "collect", lambda _request, _progress: collecting("gru_demo"))
        done = CliRunner().invoke(cli, words, prog_name="reconcile")
    assert done.exit_code == 0, done.output
    return out


@pytest.mark.skipif(not REPORTED, reason="this Python has other releases than the committed reports name")
@pytest.mark.parametrize("suffix", COMMITTED_ENDS)
def test_committed_report_is_what_the_tool_writes(written, suffix):
    name = f"gru_demo.{suffix}"
    held, now = ((folder / name).read_text() for folder in (COMMITTED, written))
    if suffix.endswith("svg"):  # outlines of letters differ between versions of the charting library
        held, now = ((said(text), lengths(text)) for text in (held, now))
    assert held == now, (
        f"reports/{name} is stale: run `reconcile run --model gru_demo --format {FORMATS}` and commit what changed"
    )


def test_reports_say_nothing_of_this_machine(written):
    for suffix in (*COMMITTED_ENDS, "json"):
        text = (written / f"gru_demo.{suffix}").read_text()
        for private in (str(ROOT), str(Path.home()), socket.gethostname(), f"/{getpass.getuser()}/", str(written)):
            assert private not in text
