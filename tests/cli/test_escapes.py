"""Names do nothing to a terminal: whatever a file, a factory or a log says is shown, and never obeyed."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import reconcile.cli
from reconcile.cli import progress
from reconcile.cli.screen import PlainConsole
from reconcile.cli.streams import say
from reconcile.core.errors import UsageError
from reconcile.core.escaping import escape_line, escape_lines
from reconcile.launch.workers.supervisor import Event
from tests.cli.conftest import Stub, Terminal
from tests.report import samples

EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[red]b\x7f"
SHOWN = r"a\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[red]b\x7f"
MARKS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def harmless(text: str) -> bool:
    """Whether a terminal only shows it: no control character but ends of lines and tabs, no mark of direction."""
    return all(
        c in "\n\t" or not (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c in MARKS or 0xD800 <= ord(c) < 0xE000)
        for c in text
    )


@settings(deadline=None)
@given(
    st.text(
        st.one_of(st.characters(), st.sampled_from("\x1b\x9b\r\n\t\x08\x7f" + MARKS), st.characters(categories=["Cs"]))
    )
)
def test_text_leaves_harmless_and_harmless_text_as_it_is(text: str) -> None:
    assert harmless(escape_lines(text))
    assert harmless(escape_line(text))
    assert "\n" not in escape_line(text)
    hears = "::" in text or "##[" in text  # an order to a build server: it is broken
    assert (
        hears
        or not harmless(text)
        or escape_lines(text).replace(r"\u2028", "\u2028").replace(r"\u2029", "\u2029") == text
    )


def test_the_checks_can_fail() -> None:
    assert not harmless(EVIL)
    assert escape_lines(EVIL) == SHOWN
    assert escape_lines("two\n\tlines") == "two\n\tlines"


def test_an_error_shows_what_it_quotes(stub: Stub) -> None:
    stub.answer = UsageError(f"the file {EVIL} cannot be used.")
    assert stub.run().stderr == f"Error: the file {SHOWN} cannot be used.\n"


@pytest.mark.parametrize(
    "args",
    [
        ("run", "--format", EVIL),
        ("run", f"--{EVIL}"),
        ("run", "--model", "gru_demo", "--timeout", EVIL),
        ("explain", EVIL),
        ("zoo", EVIL),
        (EVIL,),
        ("run", "--torch", EVIL),
        ("run", "--torch", f"{EVIL}.pt2"),
        ("check", EVIL, EVIL),
        ("check", "--model", "gru_demo", "--against", EVIL),
        ("run", "--model", "gru_demo", "--python", EVIL),
    ],
)
def test_words_of_the_command_line_come_back_harmless(stub: Stub, args: tuple[str, ...]) -> None:
    result = stub.call(*args)
    assert result.exit_code == 2
    assert harmless(result.stderr)
    assert "Error: " in result.stderr
    assert "x1b]0;owned" in result.stderr


@pytest.mark.parametrize("verbose", [(), ("-v",)])
def test_a_statement_shows_names_as_written(stub: Stub, verbose: tuple[str, ...]) -> None:
    stub.answer = samples.renamed(samples.unexplained(), "loop", EVIL)
    result = stub.run(*verbose)
    assert harmless(result.stdout)
    assert "".join(SHOWN.split()) in "".join(result.stdout.split())


def test_events_on_a_terminal_and_off_it(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.events = (Event(EVIL, EVIL, "started"), Event(EVIL, EVIL, "failed"))
    assert stub.run("-v").stderr == f"{SHOWN}: {SHOWN} started\n{SHOWN}: {SHOWN} failed\n"
    terminal = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", terminal)
    with progress.progress(quiet=False, verbose=True) as tell:
        for event in stub.events:
            tell(event)
    with progress.bar(1, quiet=False) as (begun, told):
        begun(EVIL)
        told(EVIL, f"not run: {EVIL}")
    drawn = terminal.getvalue()
    assert "\x1b[2K" in drawn  # it was a terminal
    assert "\x1b]0;" not in drawn
    assert "\x1b[2J" not in drawn
    assert not set(drawn) & {"\x07", "\x9b", "\u202e", "\x7f"}
    assert r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[red]b" in drawn


@pytest.mark.parametrize("name", [EVIL, ":smile: [bold]x[/bold] [link=x]y[/link]"])
def test_the_console_takes_nothing_for_markup(name: str) -> None:
    out = io.StringIO()
    console = PlainConsole(out)
    console.width = 300
    table = Table(name, title=name, caption=name)
    table.add_row(name)
    table.add_row(Text(name))
    console.print(table, name, Text(name))
    assert harmless(out.getvalue())
    shown = escape_lines(name.replace("\x07", ""))  # rich leaves the bell out
    assert "".join(out.getvalue().split()).count("".join(shown.split())) >= 4


def test_a_warning_shows_the_line_it_is_about(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile.cli, "cli", lambda **_named: None)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    reconcile.cli.main()
    warnings.showwarning(UserWarning(EVIL), UserWarning, f"{EVIL}.py", 1, None, EVIL)
    said = capsys.readouterr().err
    assert said == f"{SHOWN}.py:1: UserWarning: {SHOWN}\n  {SHOWN}\n"


def test_text_of_ours_keeps_its_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(click, "echo", lambda text, **_options: seen.append(text))
    bold = click.style("x", bold=True)
    say(bold, styled=True)
    say(bold)
    assert seen == [bold, escape_lines(bold)]
    assert bold != escape_lines(bold)


PRINTS = re.compile(
    r"(?<![\w.])(print|click\.s?echo|Console|sys\.std(?:out|err)\.write)\(|^from (rich\.console) import", re.M
)


def test_all_that_is_printed_leaves_by_one_function_and_console() -> None:
    folder = Path(reconcile.cli.__file__).parent
    found = {path.name: {a or b for a, b in PRINTS.findall(path.read_text())} for path in folder.glob("*.py")}
    assert {name: names for name, names in found.items() if names} == {
        "streams.py": {"click.echo"}, "screen.py": {"rich.console"},
    }  # fmt: skip
