"""What is read from the command line before anything runs: factories and inputs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.registry import frameworks
from reconcile.launch import user_models
from reconcile.model_zoo.pair import Input
from reconcile.worker.factory import FactoryPair
from tests.cli.conftest import Stub, stub

__all__ = ["stub"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1,3,224,224", Input("", (1, 3, 224, 224), "")),
        ("7", Input("", (7,), "")),
        ("(7,)", Input("", (7,), "")),
        ("( 1, 2 ) : int32", Input("", (1, 2), "int32")),
        ("ids=1,128:int64", Input("ids", (1, 128), "int64")),
        ("()", Input("", (), "")),
        ("steps=():int64", Input("steps", (), "int64")),
        ("0,4", Input("", (0, 4), "")),
        ("tf:1,128,80,1", Input("tf:", (1, 128, 80, 1), "")),
        ("torch:ids=2:int64", Input("torch:ids", (2,), "int64")),
    ],
)
def test_an_input_is_a_name_a_shape_and_a_dtype(text: str, read: Input) -> None:
    assert user_models.read_input(text) == read
    assert user_models.read_input(user_models.text_of(read)) == read


def test_an_input_of_one_framework_reaches_that_one_alone() -> None:
    inputs = user_models.read_inputs(["tf:1,8,4,1", "tf:2", "torch:1,1,4,8", "mask=3"])
    given = {}
    for name in ("tf", "torch", "jax"):
        pair: Any = SimpleNamespace(framework=frameworks()[name])
        FactoryPair.give(pair, inputs)
        given[name] = [(i.name, i.shape) for i in pair.given_inputs]
    mask = ("mask", (3,))
    assert given == {"tf": [("", (1, 8, 4, 1)), ("", (2,)), mask], "torch": [("", (1, 1, 4, 8)), mask], "jax": [mask]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1,x,3", "'x' is not a size"),
        ("1,-3", "'-3' is not a size"),
        ("1,,3", "'' is not a size"),
        ("1x3x4", "'1x3x4' is not a size"),
        ("1,3:float", "'float' is not one of float32, float64"),
        ("1,3:", "'' is not one of"),
        ("", "it has no shape"),
        ("ids=", "it has no shape"),
        ("two words=1", "'two words' is not an argument name"),
        (f"1,{'9' * 5000}", "'99999"),
        ("1,9223372036854775808", "'9223372036854775808' is too large for a size"),
        ("4294967296,4294967296", "it has more elements than any tensor can have"),
        ("1,nan", "'nan' is not a size"),
        ("1,٣", "'٣' is not a size"),
    ],
)
def test_an_input_that_cannot_be_read_is_said_with_the_form(text: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        user_models.read_input(text)
    said = str(refused.value)
    assert f" cannot be read: {why}" in said
    assert said.endswith(user_models.FORM_OF_INPUT)


def test_a_name_cannot_be_given_twice() -> None:
    with pytest.raises(UsageError, match="--input gives 'ids' twice"):
        user_models.read_inputs(["ids=1", "1", "2", "ids=3"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("net", "--torch 'net' does not name a factory. Write MODULE:FUNCTION, such as net:make_model."),
        ("./models/net.py",
         "--torch './models/net.py' does not name a factory. Write MODULE:FUNCTION, such as models.net:make_model."),
        ("models/net.py:make", "'models/net.py' is not a module name. Write it with dots, such as models.net:make."),
        ("nets.Net", "Write MODULE:FUNCTION, such as nets:Net."),
        ("net:", "'' is not a function name. Write MODULE:FUNCTION, such as net:make."),
        (":make", "'' is not a module name."),
        ("net:make()", "'make()' is not a function name."),
    ],
)  # fmt: skip
def test_a_factory_that_is_not_one_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        user_models.factory("torch", text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "name a model: --model NAME"),
        (
            ("--model", "gru_demo", "--torch", "net:make"),
            "--model names a pair, and --torch, --tf and --jax name your own model",
        ),
        (("--model", "gru_demo", "--input", "1"), "--input is for --torch, --tf and --jax"),
        (("--torch", "net:make", "--set", "a=1"), "--set is for the parameters of a pair"),
        (("--torch", "net:make", "--input", "x"), "--input 'x' cannot be read"),
        (("--torch", "net:make", "--input", "tf:1"), "--input tf: is for a TensorFlow model"),
        (("--torch", "net:make", "--counter", "6n"), "Did you mean formula:6n or"),
        (("--torch", "net:make", "--counter", "tohp"), "unknown counter 'tohp'"),
        (("--torch", "net:make", "--counter", "tf.profiler@frozen"), "give one with --tf MODULE:FUNCTION"),
        (("--tf", "net:make", "--counter", "tf.profiler@session"), "which needs a pair file"),
        (("--torch", "net:make", "--to", "tf.profiler@frozen"), "unknown counter for --to 'tf.profiler@frozen'"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(stub: Stub, args: tuple[str, ...], said: str) -> None:
    result = stub.call("run", *args, "--out", str(stub.folder))
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert stub.requests == []


def test_one_framework_is_shown_by_its_own_counters(stub: Stub, tmp_path: Path) -> None:
    """An end that is not given is the work that ran, never a counter of the other framework."""
    result = stub.call("run", "--torch", "net:make", "--to", "fvcore", "--out", str(tmp_path / "out"))
    assert "From trace@torch to fvcore" in result.stdout


@pytest.mark.parametrize("name", ["net.pt2", "folder", "./nowhere/net.pb"])
def test_without_what_reads_it_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.pt2").touch()
    Path("folder").mkdir()
    monkeypatch.setattr(user_models, "load_places", lambda _field: ())
    with pytest.raises(UsageError) as refused:
        user_models.read_models({"torch": name}, {})
    assert str(refused.value) == (
        f"--torch {name!r} is a file, and the product `files`, which reads models in files, is missing: write MODULE:FUNCTION, "
        "a function that makes the model."
    )
    assert user_models.read_models({"torch": "net:make"}, {}) == ({}, {"torch": "net:make"})
