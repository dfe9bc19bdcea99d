"""The commands that run nothing, and the command line itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from reconcile.cli import cli
from reconcile.cli.command_group import OPTION_HEADINGS, LazyGroup
from reconcile.core.causes import Cause
from reconcile.core.conventions import NAMED
from reconcile.core.registry import known_counters
from reconcile.launch.options import by_parameter
from reconcile.model_zoo.loading import zoo_names
from tests.cli.conftest import Stub
from tests.programs import output_of


@pytest.mark.parametrize(
    ("kind", "names"),
    [("counters", list(known_counters())), ("causes", [c.value for c in Cause]), ("conventions", list(NAMED))],
)
def test_explain_names_everything_in_order_and_describes_each(stub: Stub, kind: str, names: list[str]) -> None:
    result = stub.call("explain", kind)
    assert result.exit_code == 0
    shown = [line.split() for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert [words[0] for words in shown] == names
    assert [words for words in shown if len(words) <= 2] == []


@pytest.mark.parametrize("cause", list(Cause))
def test_explain_gives_meaning_and_order(stub: Stub, cause: Cause) -> None:
    result = stub.call("explain", cause.value)
    assert result.exit_code == 0
    text = " ".join(result.stdout.replace("-\n  ", "-").split())
    assert cause.meaning in text
    earlier = list(Cause)[: list(Cause).index(cause)]
    assert [c for c in earlier if c.value not in text] == []
    assert f"Number {len(earlier) + 1} of {len(Cause)}" in text


def test_explain_of_nothing_known_names_the_nearest(stub: Stub) -> None:
    result = stub.call("explain", "loop-count-once")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: unknown name 'loop-count-once'. Did you mean loop-counted-once")


def test_a_part_of_a_name_finds_the_names_that_contain_it(stub: Stub) -> None:
    """Letter by letter, `loop` is nearer to `thop`."""
    assert "Did you mean loop-counted-once?" in stub.call("explain", "loop").stderr
    assert "Did you mean formula:6n or" in stub.call("explain", "6n").stderr


def test_the_name_of_a_file_here_finds_the_file(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_pair.py").touch()
    assert "./my_pair.py" in stub.call("check", "--model", "my_pair").stderr


def test_an_unknown_command_names_the_nearest(stub: Stub) -> None:
    result = stub.call("auditt")
    assert (result.exit_code, result.stderr) == (2, "Error: unknown command 'auditt'. Did you mean audit?\n")


@pytest.mark.parametrize("args", [("--help",), ("-h",), ("counter", "new", "-h")])
def test_help(stub: Stub, args: tuple[str, ...]) -> None:
    result = stub.call(*args)
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: reconcile")


def groups() -> list[LazyGroup]:
    """The group itself and those in it."""
    return [cli, *(command for _, command in cli.walk(click.Context(cli)) if isinstance(command, LazyGroup))]


@pytest.mark.parametrize("group", groups(), ids=lambda group: group.name)
def test_the_groups_help_says_what_each_command_says_of_itself(group: LazyGroup) -> None:
    lines = {name: line for part in group.groups.values() for name, line in part.items()}
    assert len(lines) >= 3
    for name, line in lines.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(limit=200).rstrip(".") == line.rstrip(".")


def test_the_list_of_commands_fits_one_screen() -> None:
    """80 by 40: at most sixteen commands, in groups, and room for the prompt."""
    context = click.Context(cli, info_name="reconcile", terminal_width=80, **cli.context_settings)
    shown = context.get_help().splitlines()
    assert len(cli.list_commands(context)) <= 16
    assert len(cli.groups) == 5
    assert len(shown) <= 39
    assert [line for line in shown if len(line) > 80] == []


@pytest.mark.parametrize(("name", "command"), list(cli.walk(click.Context(cli))), ids=lambda found: str(found))
def test_every_help_fits_80_columns_and_a_screen_and_a_half(name: str, command: click.Command) -> None:
    """80 by 60; click leaves two columns free. Every option of a run stands under the heading of its group, and one that takes a
    model shows two command lines."""
    context = click.Context(command, info_name=f"reconcile {name}", terminal_width=78, **cli.context_settings)
    shown = context.get_help().splitlines()
    assert [line for line in shown if len(line) > 80] == []
    assert len(shown) <= 60
    headings = [line.rstrip(":") for line in shown if line[:1].isalpha()]
    groups = {OPTION_HEADINGS[o.group] for p in command.params for o in by_parameter().values() if o.flag in p.opts}
    assert groups <= set(headings)
    if " " not in name and not isinstance(command, LazyGroup):
        assert sum(re.match(r"  (\S+ )*reconcile [a-z]+ \S", line) is not None for line in shown) >= 2


def test_explain_without_a_name_lists_all_names(stub: Stub) -> None:
    shown = stub.call("explain").stdout
    every = [*zoo_names(), *known_counters(), *(c.value for c in Cause), *NAMED]
    assert [name for name in every if name not in shown.split()] == []
    assert [line for line in shown.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [("gru_demo", "Run it with: reconcile run --model gru_demo"), ("formula:6n", "formula\n")],
    ids=["a model", "a counter without a page of its own"],
)
def test_explain_explains_every_name_that_it_lists(stub: Stub, name: str, said: str) -> None:
    result = stub.call("explain", name)
    assert (result.exit_code, said in result.stdout) == (0, True)


def test_every_option_has_help() -> None:
    options = {name: [p for p in c.params if isinstance(p, click.Option)] for name, c in cli.walk(click.Context(cli))}
    assert [(name, p.name) for name, found in options.items() for p in found if not p.help and not p.hidden] == []


def test_help_loads_no_command_and_no_renderer() -> None:
    code = """if 1:
        import sys
        from reconcile.cli import cli
        try:
            cli(["--help"], prog_name="reconcile")
        except SystemExit as end:
            assert end.code == 0
        loaded = {"rich", "jinja2", "reconcile.cli.commands.run", "reconcile.report"} & set(sys.modules)
        assert not loaded, loaded
    """
    output_of("-c", code)


def test_a_closed_pipe_does_not_change_the_verdict_of_a_run(tmp_path: object) -> None:
    code = f"""if 1:
        import sys
        from reconcile import workflow
        from tests.report import samples
        workflow.run = lambda request, progress, take: samples.unexplained()
        sys.argv = ["reconcile", "run", "--model", "gru_demo", "--out", {str(tmp_path)!r}]
        from reconcile.cli import main
        main()
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(timeout=300)) == (b"", 1)


def test_models_are_listed_with_weights_work_and_distance(stub: Stub) -> None:
    done = stub.call("explain", "models")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines() if not line.startswith(" ")] == zoo_names()
    assert "not measured yet" not in " ".join(done.stdout.split())


@pytest.mark.parametrize("command", [("check", "--model", "gru_demo"), ("zoo", "gallery")])
@pytest.mark.parametrize("pass_", ["prefill", "decode"])
def test_commands_of_pairs_have_no_call_with_a_cache(stub: Stub, command: tuple[str, ...], pass_: str) -> None:
    result = stub.call(*command, "--pass", pass_)
    assert result.exit_code == 2
    assert f"'{pass_}' is not one of 'forward', 'training'." in result.stderr
