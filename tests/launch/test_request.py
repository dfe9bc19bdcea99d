"""The options of a run are declared once: each interface has the declared defaults, and one function makes the request."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import reconcile
from reconcile.cli import cli
from reconcile.core import registry
from reconcile.core.errors import UsageError
from reconcile.core.option import CHECK, MATRIX, PYTEST, PYTHON, RUN, Group, words
from reconcile.core.registry import every_counter, known_counters
from reconcile.launch.options import OPTIONS, by_parameter, keywords_taken_by, model_options, taken_by
from reconcile.launch.request import RunRequest, models_of, run_request
from reconcile.model_zoo.pair import Input
from reconcile.pytest_plugin import Flops
from tests.outside import NUMPY

ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = {"python", "python_version", "user_python", "trace", "arguments", "paths"}
"""Fields of a request that no option decides: launch/ sets them, and sweeps and Python add what only they have."""


def declared(defaults: dict[str, Any]) -> dict[str, Any]:
    """Those of an interface's parameters that a request has."""
    known = by_parameter()
    return {name: value for name, value in defaults.items() if name in known and known[name].field}


def calls(source: str, function: str) -> list[int]:
    """The lines on which a function of this name is called."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [(getattr(node.func, "attr", getattr(node.func, "id", "")), node.lineno) for node in nodes]
    return [line for name, line in names if name == function]


def test_one_function_makes_every_request() -> None:
    assert calls("a = RunRequest()\nb = runner.RunRequest(1)", "RunRequest") == [1, 2]
    files = [*(ROOT / "reconcile").rglob("*.py"), *(ROOT / "docs").glob("*.py")]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    making = {file: calls(text, "RunRequest") for file, text in texts.items() if "RunRequest" in text}
    assert [(file.name, len(lines)) for file, lines in making.items() if lines] == [("request.py", 1)]


def test_every_field_is_decided_by_an_option() -> None:
    fields = {field.name for field in dataclasses.fields(RunRequest)}
    assert {option.field for option in by_parameter().values()} - {""} == fields - LAUNCHERS


@pytest.mark.parametrize("function", [reconcile.run, Flops.check, Flops.budget])
def test_the_defaults_of_a_function_make_the_default_request(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    given = declared({p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty})
    assert {"timeout", "pass_", "optimizer"} <= given.keys()
    given.pop("convention") if function == Flops.budget else None  # its own: the work under it is no matter of the run
    assert run_request(**given) == RunRequest()


@pytest.mark.parametrize(("taker", "function"), [(PYTHON, reconcile.run), (PYTEST, Flops.check)])
def test_a_function_spells_no_option_that_its_record_denies_it(taker: str, function: Callable[..., Any]) -> None:
    spelled = {option.parameter for option in OPTIONS.values()} & inspect.signature(function).parameters.keys()
    positional = {"model", "inputs"} if function is Flops.check else set()
    assert spelled - positional - set(keywords_taken_by(taker)) == set()
    assert len(spelled) > 4


@pytest.mark.parametrize("taker", [RUN, CHECK, MATRIX])
def test_a_command_has_the_options_that_it_takes(taker: str) -> None:
    there = {flag for parameter in commands()[taker.partition(" ")[2]].values() for flag in parameter.opts}
    taken = {option.flag for option in taken_by(taker)}
    others = {option.flag for option in by_parameter().values()} - taken
    own = {"--format"} if taker == CHECK else set()  # the same word for something else
    assert (taken - there, others & there - own) == (set(), set())
    assert {option.name for option in taken_by(taker, *Group)} == {option.name for option in taken_by(taker)}


def commands() -> dict[str, dict[str, click.Parameter]]:
    """The parameters of every command, by its name."""
    return {name: {str(p.name): p for p in command.params} for name, command in cli.walk(click.Context(cli))}


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("run", []),
        ("check", ["--model", "m"]),
        ("check", ["a.json", "b.json"]),
        ("decode", ["--model", "m", "1"]),
        ("matrix", ["--model", "m"]),
        ("sweep", ["m"]),
    ],
)
def test_the_defaults_of_a_command_make_the_default_request(command: str, needed: list[str]) -> None:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    parent = click.Context(cli, **cli.context_settings)  # click keeps a command's -h from its first context
    given = declared(found.make_context(command, needed, parent=parent).params)
    assert {"convention_files", "formulas"} <= given.keys()
    ours = {name: value for name, value in given.items() if name not in ("model", "formats")}
    assert run_request(**ours) == RunRequest()


def test_every_command_spells_an_option_alike() -> None:
    """Those that take several environments, models or passes call the parameter otherwise."""
    spelled = {option.flag: {option.parameter} for option in by_parameter().values()}
    spelled["--environment"] |= {"names", "environments"}
    spelled["--model"] |= {"models"}
    spelled["--pass"] |= {"passes"}
    wrong = [
        (command, parameter.opts, name)
        for command, parameters in commands().items()
        for name, parameter in parameters.items()
        for flag in parameter.opts
        if name not in spelled.get(flag, {name})
    ]
    assert wrong == []


def test_each_option_arrives_in_its_field() -> None:
    made = run_request(
        model="m", overrides={"units": 3}, convention="all", convention_files=["c.toml"], counters=["thop"], device="meta",
        timeout="7", formulas=["f.py"], inputs=["x=1,3:int64"], mapping="m.csv", formats=("md", "html"), pass_="training",
        optimizer="adam", torch="a:b", tf="c:d",
    )  # fmt: skip
    assert made == RunRequest(
        "m",
        {"units": "3"},
        convention="all",
        convention_files=(Path("c.toml"),),
        counters=("thop",),
        device="meta",
        timeout=7.0,
        formulas=(Path("f.py"),),
        inputs=(Input("x", (1, 3), "int64"),),
        mapping=Path("m.csv"),
        every_convention=True,
        training="adam",
        standard=True,
        factories={"tf": "c:d", "torch": "a:b"},
    )
    assert list(made.factories) == ["tf", "torch"]  # in the order of the registry, however they were given


def test_a_file_is_looked_at_as_its_options_say(tmp_path: Path) -> None:
    model = tmp_path / "saved_model.pb"
    model.write_bytes(b"\x08\x01\x12\x00")
    made = run_request(tf=str(tmp_path), trust_file=True, signature="other")
    (file,) = made.files.values()
    assert (file.trusted, file.signature, file.kind) == (True, "other", "saved_model")


@pytest.mark.parametrize("name", ["timout", "environment", "quiet"])
def test_what_a_request_does_not_have_is_a_mistake_of_the_caller(name: str) -> None:
    with pytest.raises(TypeError, match=f"a request has no option {name}"):
        run_request(**{name: "x"})


def test_the_words_of_a_command() -> None:
    assert words("--set", {"a": "1", "b": "2"}) == ["--set", "a=1", "--set", "b=2"]
    assert words("--counter", ("thop", "fvcore")) == ["--counter", "thop", "--counter", "fvcore"]
    assert words("--trust-file", True) == ["--trust-file"]
    assert words("--convention-file", [Path("a/b.toml")], lambda path: path.name) == ["--convention-file", "b.toml"]


def test_a_registered_framework_has_an_option_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(model_options())
    monkeypatch.setitem(registry.frameworks(), "numpy", NUMPY)
    assert list(model_options()) == [*before, "numpy"]
    assert run_request(numpy="net:make").factories == {"numpy": "net:make"}
    assert models_of({"numpy": "a:b", "torch": "c:d", "onnx": None, "model": None}) == {"torch": "c:d", "numpy": "a:b"}


@pytest.mark.parametrize("name", ["timeout", "file", "over-flow", "quiet"])
def test_a_framework_whose_name_is_no_option_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(registry.frameworks(), name, NUMPY._replace(name=name))
    with pytest.raises(
        UsageError, match=f"the framework NumPy is registered as '{name}', which cannot be the option --{name}"
    ):
        run_request()


def test_all_leaves_formulas_out_and_formula_all_names_them() -> None:
    formulas = tuple(name for name in known_counters() if name.startswith("formula:"))
    assert "formula:6n" in formulas
    assert [name for name in every_counter() if name in formulas] == []
    assert run_request(counters=("formula:all",)).counters == formulas
    assert run_request(counters=("all", "formula:all", "formula:6n")).counters == (*every_counter(), *formulas)
    assert run_request(counters=("thop",)).counters == ("thop",)


def test_the_name_of_a_family_names_its_counters() -> None:
    assert run_request(counters=("ptflops",)).counters == ("ptflops@pytorch", "ptflops@aten")
    assert run_request(counters=("calflops",)).counters == ("calflops",)  # a counter's own name
    profilers = run_request(counters=("tf.profiler",)).counters
    assert "tf.profiler@function" in profilers
    assert [name for name in profilers if known_counters()[name].recipe] == []
    assert run_request(counters=("formula",)).counters == (
        "formula",
    )  # formulas are asked for one by one, or by formula:all


def test_a_librarys_model_is_where_the_library_has_it() -> None:
    """``--torch timm:resnet18`` in every interface; a module of one's own stays as it is written."""
    made = run_request(torch="timm:resnet18", inputs=("1,3,224,224",))
    assert dict(made.factories) == {"torch": "timm.models:resnet18"}
    assert dict(run_request(torch="net:make", inputs=("1,3",)).factories) == {"torch": "net:make"}
