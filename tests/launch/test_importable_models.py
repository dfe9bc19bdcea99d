"""What goes to a worker process and what does not, with a runner that only listens: no framework is started."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reconcile
from reconcile import workflow
from reconcile.core import registry
from reconcile.core.errors import UsageError
from reconcile.engine.answer import Answer
from reconcile.launch import importable_models
from reconcile.launch.request import RunRequest
from reconcile.launch.workers.supervisor import Event
from reconcile.model_zoo.pair import Input
from tests.outside import NUMPY
from tests.report import samples


class Model:
    """Stands for a model that is there already."""


class Net:
    @classmethod
    def make(cls) -> Model:
        return Model()


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[RunRequest]:
    requests: list[RunRequest] = []

    def listen(request: RunRequest, tell: Callable[[Event], None], take: object = None) -> Answer:
        requests.append(request)
        tell(Event("torch", "thop", "done"))
        return samples.clean()

    monkeypatch.setattr(workflow, "run", listen)
    return requests


def test_names_shapes_and_options_make_the_request(heard: list[RunRequest], tmp_path: Path) -> None:
    events: list[Event] = []
    reconcile.run(
        torch="net:Net",
        tf="net.keras:make",
        inputs=["1,3", "ids=2:int64"],
        convention="all",
        convention_files=[str(tmp_path / "c.toml")],
        formulas=[tmp_path / "f.py"],
        counters=["thop"],
        timeout=7,
        python=Path(sys.executable),
        progress=events.append,
    )
    (request,) = heard
    assert dict(request.factories) == {"tf": "net.keras:make", "torch": "net:Net"}
    assert request.inputs == (Input("", (1, 3), ""), Input("ids", (2,), "int64"))
    assert (request.convention, request.counters, request.timeout) == ("all", ("thop",), 7)
    assert (request.convention_files, request.formulas) == ((tmp_path / "c.toml",), (tmp_path / "f.py",))
    assert request.paths == importable_models.paths()
    with pytest.raises(UsageError, match=r"python does not exist\. Give an interpreter"):
        reconcile.run(torch="net:Net", inputs="1,3", python=tmp_path / "python")
    assert events == [Event("torch", "thop", "done")]


def test_models_of_other_frameworks_go_by_their_names(heard: list[RunRequest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.frameworks(), "numpy", NUMPY)
    reconcile.run(torch="net:Net", numpy="net:make")
    reconcile.run(numpy=json.dumps, isolated=True)
    made = [dict(request.factories) for request in heard]
    assert made == [{"torch": "net:Net", "numpy": "net:make"}, {"numpy": "json:dumps"}]


def test_a_function_goes_by_its_name(heard: list[RunRequest]) -> None:
    reconcile.run(torch=json.dumps, tf=json.JSONDecoder, isolated=True)
    assert dict(heard[0].factories) == {"tf": "json.decoder:JSONDecoder", "torch": "json:dumps"}
    assert heard[0].timeout == 600


def test_the_callers_folders_go_along_and_installed_ones_do_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    site = next(path for path in sys.path if path.endswith("site-packages"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "path", ["", str(mine), site, os.path.dirname(json.__file__), str(tmp_path / "gone"), str(mine)]
    )
    assert importable_models.paths() == (str(tmp_path.resolve()), str(mine.resolve()))


def test_what_cannot_travel_is_one_sentence(heard: list[RunRequest]) -> None:
    def inner() -> Model:
        return Model()

    stranger = functools.wraps(json.dumps)(lambda: Model())
    cases: list[tuple[dict[str, Any], str]] = [
        ({"torch": Model(), "isolated": True}, "torch= is an object of the class Model, and a model object cannot be sent"),
        ({"tf": functools.partial(inner), "isolated": True}, "tf= is an object of the class partial, .* makes the TensorFlow"),
        ({"torch": Net().make, "isolated": True}, "torch= is an object of the class method, "),
        ({"torch": inner, "isolated": True}, "inner, which is defined inside another function, where a worker process cannot"),
        ({"torch": lambda: Model(), "isolated": True}, "<lambda>, which is defined inside another function, "),
        ({"torch": stranger, "isolated": True}, "torch= is dumps, but json:dumps is another object"),
        ({"torch": "net:Net", "inputs": Model()}, "inputs= holds tensors or other values, which cannot be sent to a worker "),
        ({"torch": "net:Net", "inputs": [1, 2]}, "inputs= holds tensors or other values"),
        ({"torch": "net:Net", "inputs": "1,x"}, "inputs='1,x' cannot be read"),
        ({"torch": "net", "isolated": True}, "torch='net' does not name a factory"),
        ({"torch": "net:Net", "tf": Model()}, "tf= is an object of the class Model"),
        ({"torch": "net:Net", "isolated": False}, "torch='net:Net' is a name, which is for a worker process: leave iso"),
        ({"torch": Model(), "timeout": 3}, "timeout= and python= are for worker processes: give isolated=True."),
        ({"torch": Model(), "python": "python3"}, "timeout= and python= are for worker processes"),
        ({}, "give a model"),
        ({"torhc": Model()}, "unknown argument of reconcile.run 'torhc'. Did you mean torch"),
        ({"torch": "net:Net", "numpy": None}, "unknown argument of reconcile.run 'numpy'"),
        ({"torch": "n:m", "onnx": "n.onnx", "mapping": "m.csv"}, "mapping= is for two models: give both torch= and tf="),
    ]  # fmt: skip
    for given, sentence in cases:
        with pytest.raises(UsageError, match=sentence) as caught:
            reconcile.run(**given)
        assert "\n" not in str(caught.value)
    assert heard == []


def test_a_function_of_the_main_program_cannot_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Net, "__module__", "__main__")
    with pytest.raises(
        UsageError, match="Net, which is defined in the main program, where a worker process cannot find it"
    ):
        reconcile.run(torch=Net, isolated=True)
