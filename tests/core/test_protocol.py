"""A worker's request: what home writes is what the worker reads, and nothing else is a request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.framework import absolute, relative
from reconcile.core.protocol import ModelFile, UserModel, WorkerRequest, from_text, to_text
from reconcile.core.registry import frameworks
from tests.workers import model_file, request, user_model

TEXT = st.text(max_size=5)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
TABLE = st.dictionaries(TEXT, TEXT, max_size=2)
INPUTS = st.lists(st.tuples(TEXT, st.lists(st.integers(0, 2**70), max_size=3).map(tuple), TEXT), max_size=2).map(tuple)
ARGUMENTS = st.dictionaries(TEXT, st.one_of(st.integers(), TEXT, st.lists(st.integers())), max_size=2)
FILES = st.builds(ModelFile, TEXT, TEXT, st.integers(0), st.booleans(), TEXT)
MODELS = st.builds(UserModel, TEXT, TEXT, TABLE, NAMES, INPUTS, ARGUMENTS, st.none() | FILES, TEXT)
REQUESTS = st.builds(
    WorkerRequest,
    st.sampled_from(list(frameworks().values())),
    *(NAMES, TEXT, st.dictionaries(TEXT, st.tuples(TEXT, TEXT).map(list), max_size=2), TEXT, TABLE, st.none() | MODELS),
    *(TABLE, NAMES, TEXT, TABLE, TEXT, TEXT, TEXT, TEXT, st.booleans(), TEXT),
)  # fmt: skip


@settings(max_examples=12)
@given(REQUESTS)
def test_what_is_read_is_what_was_written(asked: WorkerRequest) -> None:
    assert from_text(to_text(asked)) == asked


def test_the_file_of_a_request_is_that_of_its_model() -> None:
    file = model_file()
    assert request("torch", model=user_model("net.pt2", file)).file is file
    assert request("torch", model=user_model()).file is None
    assert request("torch", pair="net.py").file is None


def without(data: Any, *path: str) -> Any:
    """The same data with the last name of the path taken out."""
    *parents, last = path
    inner = data
    for name in parents:
        inner = inner[name]
    del inner[last]
    return data


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: without(data, "schema"), "has the schema 2"),
        (lambda data: {**data, "schema": 1}, "has the schema 2"),
        (lambda data: [data], "has the schema 2"),
        (lambda data: without(data, "tasks"), "WorkerRequest: missing or unknown: tasks"),
        (lambda data: {**data, "task": "trace"}, "WorkerRequest: missing or unknown: task"),
        (lambda data: without(data, "framework", "title"), "Framework: missing or unknown: title"),
        (lambda data: without(data, "model", "file", "size"), "ModelFile: missing or unknown: size"),
        (lambda data: {**data, "model": "net:make"}, "UserModel: missing or unknown: net:make"),
    ],
)
def test_what_is_not_a_request(change: Any, why: str) -> None:
    text = to_text(request("torch", model=user_model("net.pt2", model_file())))
    with pytest.raises(ValueError, match=why):
        from_text(json.dumps(change(json.loads(text))))


@pytest.mark.parametrize("name", ["reconcile.adapters.onnx.load", "reconcile.work.aten"])
def test_a_module_of_this_package_travels_without_its_root(name: str) -> None:
    assert relative(name) == name.removeprefix("reconcile")
    assert absolute(relative(name)) == name


@pytest.mark.parametrize("name", ["reconcile_numpy", "reconcilement.core", "numpy_flops.adapter"])
def test_a_module_of_another_package_keeps_its_name(name: str) -> None:
    assert relative(name) == absolute(name) == name
