"""The lines of a program that build one brick in the bare framework: they define ``net`` and its input ``x``.

``main`` prints the lines of cases, in a process that has the framework.
A layer of the framework is written as the call that makes it, from its class's signature and its own attributes; a block is a
class of its parts and its function (spelled.py).
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from . import Brick
from .one import brick, input_of
from .spelled import Unspelled, literal, source, spelled, surroundings, text

SAME_ON_ALL_AXES = (
    "kernel_size", "stride", "strides", "padding", "output_padding", "dilation", "dilation_rate", "pool_size", "size",
)  # fmt: skip
"""Settings that one number gives for all axes."""
MISSING: Any = object()


def lines(case: str, framework: str, batch: int) -> list[str]:
    """The lines that define ``net`` and ``x``. Raises Unspelled if the brick has parts that cannot be printed."""
    one = brick(case)
    made = {"torch": _torch, "tf": _tf}.get(framework)
    if made is None:
        raise Unspelled(f"the layers of the zoo have no form in {framework}")
    return made(one, batch)


def main(framework: str, batch: str, *cases: str) -> None:
    """Print the lines of each case, as JSON."""
    print(json.dumps([lines(case, framework, int(batch)) for case in cases]))


def _torch(one: Brick, batch: int) -> list[str]:
    given = input_of(one, batch, "torch")
    parts = _Torch()
    made = parts.expression(one.torch(one.shape))
    shape = ", ".join(map(str, given.shape))
    drawn = (
        f"torch.randn({shape})"
        if given.dtype.startswith("float")
        else f"torch.zeros({shape}, dtype=torch.{given.dtype})"
    )
    return [*parts.before, f"net = {made}.eval()", f"x = {drawn}"]


def _tf(one: Brick, batch: int) -> list[str]:
    given = input_of(one, batch, "tf")
    parts = _Keras()
    layer = one.tf(one.name, one.shape)
    called = parts.called(layer)
    kind = "" if given.dtype == "float32" else f", dtype={given.dtype!r}"
    return [*parts.before, f"x = tf.keras.Input(batch_shape={given.shape}{kind})", f"net = tf.keras.Model(x, {called})"]


class _Parts:
    """Expressions for layers; ``before`` are the lines that have to come first. ``names`` are those of parts that have one."""

    base = ""
    method = ""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.names: dict[int, str] = {}

    def expression(self, part: Any) -> str:
        raise NotImplementedError

    def describe(self, value: Any) -> str | None:
        raise NotImplementedError

    def children(self, part: Any) -> list[Any]:
        raise NotImplementedError

    def block(self, function: FunctionType, parts: Mapping[str, Any]) -> str:
        """The call of a class that is defined before: its parts, and a function of them."""
        name = "Net" if not any(line.startswith("class Net") for line in self.before) else f"Part{len(self.before)}"
        own = []
        inside = [child for part in parts.values() for child in self.children(part)]
        shared = {id(child): child for child in inside if sum(other is child for other in inside) > 1}
        for part in [child for key, child in shared.items() if key not in set(map(id, parts.values()))]:
            variable = f"shared{len(self.names) or ''}"
            own.append(f"        {variable} = {self.expression(part)}")
            self.names[id(part)] = variable
        for key, part in parts.items():
            own.append(f"        self.{key} = {self.expression(part)}")
            self.names[id(part)] = f"self.{key}"
        self.names.clear()
        definition = spelled(function, self.describe)
        definition.name = self.method
        definition.args.args[0].arg = "self"
        start = ["    def __init__(self):", "        super().__init__()", *own, ""] if own else []
        self.before += [f"class {name}({self.base}):", *start, *_indented(definition), "", ""]
        return f"{name}()"

    def call(self, class_name: str, kind: type, settings: Mapping[str, Any]) -> str:
        """``Conv2d(4, 6, 3, stride=2)``: what has no default by position, and what differs from its default by name."""
        words = []
        for parameter in _parameters(kind):
            value = settings.get(parameter.name, MISSING)
            if value is MISSING:
                if parameter.default is parameter.empty:
                    raise Unspelled(f"{class_name} does not keep its argument {parameter.name}")
                continue
            value = _shortened(parameter.name, value, parameter.default)
            if value == parameter.default and type(value) is type(parameter.default):
                continue
            shown = self.value(value)
            if shown is not None:
                words.append(shown if parameter.default is parameter.empty else f"{parameter.name}={shown}")
        return f"{class_name}({', '.join(words)})"

    def value(self, value: Any) -> str | None:
        """A setting as an expression; None for one that is left to its default."""
        plain = literal(value)
        return None if plain is None else text(plain)


class _Torch(_Parts):
    base = "torch.nn.Module"
    method = "forward"

    def children(self, part: Any) -> list[Any]:
        return list(part.children()) if hasattr(part, "children") else []

    def expression(self, part: Any) -> str:
        import torch

        if id(part) in self.names:
            return self.names[id(part)]
        if isinstance(part, torch.nn.Parameter):
            return f"torch.nn.Parameter(torch.randn({', '.join(map(str, part.shape))}))"
        kind = type(part)
        if isinstance(part, torch.nn.Sequential):
            return f"torch.nn.Sequential({', '.join(map(self.expression, part))})"
        if kind.__module__.startswith("torch.nn."):
            settings = dict(vars(part))
            if "bias" in part._parameters:
                settings["bias"] = part._parameters["bias"] is not None
            if getattr(part, "_qkv_same_embed_dim", False):
                del settings["kdim"], settings["vdim"]
            return self.call(f"torch.nn.{kind.__qualname__}", kind, settings)
        around = surroundings(kind.forward)
        if isinstance(around.get("forward"), FunctionType):
            return self.block(around["forward"], {**part._parameters, **part._modules})
        raise Unspelled(f"a module of class {kind.__qualname__} is neither a layer of PyTorch nor a block of them")

    def describe(self, value: Any) -> str | None:
        import torch

        if isinstance(value, torch.nn.Module):
            return self.expression(value)
        for space, name in ((torch.nn.functional, "torch.nn.functional"), (torch, "torch")):
            called = getattr(value, "__name__", "")
            if called and getattr(space, called, None) is value:
                return f"{name}.{called}"
        return None


class _Keras(_Parts):
    base = "tf.keras.layers.Layer"
    method = "call"

    def children(self, part: Any) -> list[Any]:
        return list(getattr(part, "layers", ()))

    def called(self, layer: Any) -> str:
        """The layer's output for ``x``."""
        if not isinstance(layer, FunctionType):
            return f"{self.expression(layer)}(x)"
        function = spelled(layer, self.describe, {source(layer).args.args[0].arg: ast.Name("x", ast.Load())})
        result = function.body[-1]
        if not isinstance(result, ast.Return) or result.value is None or len(function.body) > 1:
            raise Unspelled("the layer is called by more than one expression")
        return text(result.value)

    def expression(self, part: Any) -> str:
        import tensorflow as tf

        if id(part) in self.names:
            return self.names[id(part)]
        kind = type(part)
        if isinstance(part, tf.keras.Sequential):
            return f"tf.keras.Sequential([{', '.join(map(self.expression, part.layers))}])"
        if kind.__module__.startswith("keras."):
            names = (name for name, value in vars(tf.keras.layers).items() if value is kind)
            return self.call(f"tf.keras.layers.{next(names, kind.__qualname__)}", kind, self.settings(part))
        around = surroundings(kind.call)
        if isinstance(around.get("call"), FunctionType) and kind.__qualname__.endswith("Block"):
            return self.block(around["call"], surroundings(kind.__init__)["parts"])
        return self.written(kind)

    def settings(self, part: Any) -> dict[str, Any]:
        """What the layer was made with: parts as they are, everything else from its configuration."""
        config = dict(part.get_config())
        for name in ("layer", "cell", "activation"):
            if name in config and not isinstance(config[name], str | None):
                config[name] = getattr(part, name, None) or part.forward_layer  # Bidirectional keeps its layer so
        unsaid = {
            "activation": "linear",
            "recurrent_activation": "linear",
            "data_format": "channels_last",
            "dtype": config.get("dtype"),
        }
        return {
            name: value
            for name, value in config.items()
            if name != "name" and not isinstance(value, dict) and (name not in unsaid or value != unsaid[name])
        }

    def written(self, kind: type) -> str:
        """The call of a class of the zoo that is written out."""
        methods = [f for f in vars(kind).values() if isinstance(f, FunctionType)]
        body = [line for f in methods for line in (*_indented(spelled(f, self.describe)), "")]
        self.before += [f"class {kind.__name__}({self.base}):", *body, ""]
        return f"{kind.__name__}()"

    def value(self, value: Any) -> str | None:
        import tensorflow as tf

        if isinstance(value, tf.keras.layers.Layer) or hasattr(value, "get_config"):
            return self.expression(value)
        if isinstance(value, FunctionType):
            function = spelled(value, self.describe)
            (result,) = function.body
            assert isinstance(result, ast.Return)
            assert result.value is not None
            return text(ast.Lambda(function.args, result.value))
        return super().value(value)

    def describe(self, value: Any) -> str | None:
        import tensorflow as tf

        return self.expression(value) if isinstance(value, tf.keras.layers.Layer) else None


def _indented(node: ast.AST) -> Iterator[str]:
    return (f"    {line}" for line in text(node).splitlines())


def _parameters(kind: type) -> list[inspect.Parameter]:
    """The arguments of the first class, from this one up, that names them; ``nonlinearity`` of a recurrent one as well."""
    for owner in kind.__mro__:
        if "__init__" not in vars(owner):
            continue
        _, *named = inspect.signature(vars(owner)["__init__"]).parameters.values()
        if any(p.kind is p.VAR_POSITIONAL for p in named):
            continue
        found = [p for p in named if p.kind is not p.VAR_KEYWORD and p.name not in ("device", "dtype", "mode_", "name")]
        if owner is not kind and found and found[0].name == "mode":
            extra = inspect.Parameter("nonlinearity", inspect.Parameter.KEYWORD_ONLY, default="tanh")
            return [*found[1:], extra]
        return found
    return []


def _shortened(name: str, value: Any, default: Any) -> Any:
    """One number for the same number on every axis."""
    if name in SAME_ON_ALL_AXES and isinstance(value, list | tuple) and len(set(value)) == 1:
        return value[0]
    return tuple(value) if isinstance(default, tuple) and isinstance(value, list) else value
