"""To which framework a model at hand belongs, where several are imported and more than one could call it."""

from __future__ import annotations

import functools
import itertools
import sys
import types
from typing import Any

import pytest

from reconcile.adapters.shared import keras_model
from reconcile.api import fixture
from reconcile.core.errors import UsageError
from reconcile.core.registry import frameworks
from reconcile.launch import ownership

PACKAGES = ("tensorflow", "torch", "jax", "onnx", "keras")


def made(*bases: str, call: bool = True) -> Any:
    """An object of a user's class below one class of each of these modules."""
    parents = tuple(type("Base", (), {"__module__": module}) for module in bases)
    members = {"__module__": "net", **({"__call__": lambda self, x: x} if call else {})}
    return type("Net", parents, members)()


def function(module: str, code: str = "net") -> Any:
    """A function that says that it is of ``module``, with the code of the module ``code``."""
    found = types.FunctionType((lambda x: x).__code__, {"__name__": code})
    found.__module__ = module
    return found


CASES = [
    (made("torch.nn.modules.module"), "torch"),
    (made("torch.jit._script", "torch.nn.modules.module"), "torch"),
    (made("tensorflow.python.module.module"), "tf"),
    (made("tensorflow.python.eager.polymorphic_function"), "tf"),
    (made("jaxlib._jax"), "jax"),
    (made("flax.nnx.module"), "jax"),
    (made("equinox._module"), "jax"),
    (made("onnx.onnx_ml_pb2", call=False), "onnx"),
    (function("torch.nn.functional"), "torch"),
    (function("net", "torch._dynamo.eval_frame"), "torch"),
    (function("net", "jax._src.api"), "jax"),
    (functools.partial(made("torch.nn.modules.module")), "torch"),
    (made("torch.nn.modules.module").__call__, "torch"),
    (made(), None),
    (function("net"), None),
    (5, None),
]


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(("value", "owner"), CASES)
def test_its_class_says_so_in_every_order(value: Any, owner: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    records = dict(frameworks())
    for names in itertools.permutations(("tf", "torch", "jax", "onnx", "tflite")):
        monkeypatch.setattr(ownership, "frameworks", lambda names=names: {name: records[name] for name in names})
        found = ownership.owner_of(value)
        assert (found.name if found is not None else None) == owner


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(("backend", "owner"), [("torch", "torch"), ("jax", "jax"), ("tensorflow", "tf"), ("", "tf")])
def test_what_keras_made_belongs_to_its_backend(backend: str, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras_model, "backend", lambda: backend)
    layer = made("keras.src.layers.layer", "torch.nn.modules.module")  # whatever else its class is
    for value in (layer, function("keras.src.activations.activations")):
        found = ownership.owner_of(value)
        assert found is not None
        assert found.name == owner


@pytest.mark.usefixtures("everything")
def test_a_package_that_is_not_imported_owns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert ownership.owner_of(made("torch.nn.modules.module")) is None


@pytest.mark.usefixtures("everything")
def test_another_framework_is_refused_and_a_function_is_not() -> None:
    tf, torch = frameworks()["tf"], frameworks()["torch"]
    with pytest.raises(UsageError, match="a Net of PyTorch was given for a model in TensorFlow"):
        ownership.check_owner(tf, made("torch.nn.modules.module"))
    ownership.check_owner(torch, made("torch.nn.modules.module"))
    ownership.check_owner(tf, function("jax.experimental.jax2tf"))  # it may be made for TensorFlow
    ownership.check_owner(tf, made())


class Calls:
    """An adapter that calls anything, and one that knows its own."""

    def __init__(self, knows: bool) -> None:
        self.knows = knows

    def is_made(self, value: object) -> bool:
        return self.knows

    def is_model(self, value: object) -> bool:
        return callable(value)


def test_what_several_could_call_needs_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [frameworks()["tf"], frameworks()["jax"]]
    knowing: set[str] = set()
    monkeypatch.setattr(fixture, "list_imported", lambda: records)
    monkeypatch.setattr(fixture, "owner_of", lambda _model: None)
    monkeypatch.setattr(fixture, "adapter_of", lambda record: Calls(record.name in knowing))
    with pytest.raises(UsageError, match='add framework="tf" or framework="jax"'):
        fixture._find_framework(made(), "")
    assert fixture._find_framework(made(), "jax") == "jax"
    knowing.add("jax")  # a container of arrays, say, which no package tells
    assert fixture._find_framework(made(), "") == "jax"
    with pytest.raises(UsageError, match="unknown framework 'jaxx'"):
        fixture._find_framework(made(), "jaxx")
