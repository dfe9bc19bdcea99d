"""What a check says on GitHub: the verdict first, a row for everything that moved, short enough, and no name that acts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from rich.console import Group
from rich.text import Text

from reconcile.cli.screen import PlainConsole
from reconcile.cli.streams import say
from reconcile.core.conventions import BUILT_IN
from reconcile.core.escaping import escape_line, escape_lines
from reconcile.core.work import Work
from reconcile.drift.changes import Change, Drift, TraceDrift
from reconcile.drift.check import Checked
from reconcile.drift.compare import compare
from reconcile.drift.match import Compared
from reconcile.drift.report import details
from reconcile.products.ci import github
from tests.drift.takes import GRU, NEW, OLD, take

BASELINE = Path("reports/baselines/toy/current.json")
EVIL = "a`b|c\n::error::x <script> %0A \x1b[31m @everyone"


def checked(drift: Drift | None) -> Checked:
    return Checked(BASELINE, take(), drift, ())


def upgraded() -> Checked:
    return checked(compare(take(OLD), take(NEW), BUILT_IN["matmul"]))


def many(count: int, name: str = "layers.{}.a_long_name_of_a_layer") -> Checked:
    """This number of layers of a trace with twice the work."""

    def entry(layer: str, macs: int) -> Compared:
        return Compared(layer, layer, "aten.mm", Work(mac=macs), 1, "", "(1, 2)")

    changes = tuple(
        Change(layer, "aten.mm", entry(layer, 5), entry(layer, 10)) for layer in (name.format(n) for n in range(count))
    )
    before = compare(take(), take(), BUILT_IN["matmul"])
    trace = TraceDrift("torch", ({}, {}), changes, (), ())
    return checked(Drift(**{**{n: getattr(before, n) for n in before.__slots__}, "traces": (trace,)}))


def test_the_verdict_comes_first_and_layers_that_moved_have_rows() -> None:
    text = github.comment(upgraded(), [], "reconcile check --model toy --update")
    first, _, *rest = text.splitlines()
    assert first == f"❌ **toy: not as in {BASELINE}: thop moved, at dense, gru**"
    rows = [line for line in rest if line.startswith("| thop |")]
    assert len(rows) == 2
    assert f"| thop | gru | torch.nn.modules.rnn.GRU | no entry | {GRU:,} |" in text
    assert "```sh\nreconcile check --model toy --update\n```" in text
    assert text.index("<details>") > text.index(rows[-1])
    assert text.endswith("</details>\n")


def test_nothing_moved_is_one_line() -> None:
    done = checked(compare(take(), take(), BUILT_IN["matmul"]))
    assert github.comment(done, []) == f"✅ **toy: unchanged: 1 counter and 1 trace as in {BASELINE}**\n"
    assert github.annotate_layers(done) == []


@pytest.mark.parametrize("count", [10, 300, 3_000])
def test_a_comment_is_short_however_much_moved(count: int) -> None:
    """What is left out is counted: rows that are shown and those that are not are all."""
    done = many(count)
    text = github.comment(done, ["a remark"], "reconcile check")
    assert len(text.encode()) <= github.LIMIT
    rows = [line for line in text.splitlines() if line.startswith("| trace@torch |")]
    cut = [line for line in text.splitlines() if " more rows: run `reconcile check --verbose`" in line]
    rest = int(cut[0].strip("| ").split()[0].replace(",", "")) if cut else 0
    assert len(rows) + rest == count
    assert bool(cut) == (count > 10)
    assert len(github.annotate_layers(done)) == github.ANNOTATED


def test_names_are_text() -> None:
    done = many(1, EVIL)
    text = github.comment(done, [])
    table = text[: text.index("<details>")]
    assert "<script>" not in table
    assert "\x1b" not in text
    (row,) = [line for line in table.splitlines() if line.startswith("| trace@torch |")]
    assert row.count("|") - row.count("\\|") == 7
    (line,) = github.annotate_layers(done)
    assert "\n" not in line
    assert line.startswith(f"::error file={BASELINE},title=toy%3A a")
    assert line.count("::error") - line.count("%3A%3Aerror") - line.count("\\n::error") <= 1


LIVE = (
    "@octocat", "a @octocat/team", "https://example.org/x", "http://example.org", "www.example.org", "mailto:a@example.org",
    "a@example.org", "#12", "owner/name#12", "GH-12", "ftp://example.org", "HTTPS://example.org",
)  # fmt: skip


@pytest.mark.parametrize("name", LIVE)
def test_no_name_becomes_a_link_or_calls_somebody(name: str) -> None:
    """GitHub finds these in what is one text. Neither part of it is one, and together they read as the name."""
    text = github.comment(many(1, name), [f"a remark on {name}"])
    table = text[: text.index("<details>")]
    parts = [part for part in re.split("<!-- -->", table) if re.search(GITHUBS, part)]
    assert parts == []
    assert table.replace("<!-- -->", "").count(name) == 3  # in the headline, its row and the remark


GITHUBS = (
    r"(?i)(https?|ftp)://\w|www\.\w|(?<!\w)@\w|[\w.]@[\w-]+\.\w|mailto:\w|#\d|gh-\d"  # autolinks, mentions, references
)


COMMANDS = (
    "::error::x",
    "a ##[add-mask]x",
    "\n::error::x",
    "\t::stop-commands::x",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_name_is_a_command_to_the_workflow(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = many(1, name)
    drift = done.drift
    assert drift is not None
    for text in (github.comment(done, [name]), *details(drift, verbose=True), escape_line(name), escape_lines(name)):
        say(text)
    PlainConsole(sys.stdout).print(Group(Text(name), name))
    heard = [line for line in capsys.readouterr().out.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    assert heard == []


def test_a_message_is_escaped_as_the_runner_reads_it() -> None:
    """actions/toolkit, packages/core/src/command.ts: escapeData and escapeProperty."""
    assert github._data("50 % of\nit, a:b") == "50 %25 of%0Ait, a:b"
    assert github._property("50 % of\nit, a:b") == "50 %25 of%0Ait%2C a%3Ab"
