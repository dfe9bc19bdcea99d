"""Networks of bricks: a plan that both frameworks build alike, and what a pair file needs of it.

A family's pair is the simplest plan, every brick on an input of its own shape.  Where one layer stands at two places of
a plan, both frameworks call the very same layer twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..pair import Input, Layer, Pair
from . import Brick, Shape, channels_first, module, unwrapped


@dataclass(frozen=True, slots=True)
class Node:
    """One place in a network: a brick on what ``sources`` (nodes or inputs) gave, or without a brick their sum.

    ``like`` names the node whose layer is called here again.
    """

    name: str
    brick: Brick | None
    sources: tuple[str, ...]
    like: str = ""


@dataclass(frozen=True, slots=True)
class Net:
    """Inputs without their batch, and the nodes in an order in which each comes after its sources."""

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]

    def shapes(self) -> dict[str, Shape]:
        """What every input and node gives."""
        found = {i.name: tuple(i.shape) for i in self.inputs}
        for node in self.nodes:
            first = found[node.sources[0]]
            found[node.name] = first if node.brick is None else node.brick.out(first)
        return found

    def outputs(self) -> tuple[str, ...]:
        """Nodes that are no other node's source."""
        taken = {source for node in self.nodes for source in node.sources}
        return tuple(node.name for node in self.nodes if node.name not in taken)

    def layers(self) -> tuple[Layer, ...]:
        """One row per layer; one that is called at two places has the name of the first."""
        return tuple(Layer(node.name, node.name, node.name) for node in self.nodes if not node.like)


def branches(bricks: Iterable[Brick]) -> Net:
    """Every brick on an input of its own shape; bricks of the same shape share it."""
    inputs: dict[tuple[Shape, str], Input] = {}
    nodes = []
    for brick in bricks:
        key = (brick.shape, brick.dtype)
        given = inputs.setdefault(key, Input(f"x{len(inputs)}", brick.shape, brick.dtype))
        nodes.append(Node(brick.name, brick, (given.name,)))
    return Net(tuple(inputs.values()), tuple(nodes))


def inputs(net: Net, p: Any) -> list[Input]:
    """The network's inputs with their batch."""
    return [i._replace(shape=(p.batch, *i.shape)) for i in net.inputs]


def build_keras(net: Net, p: Any) -> Any:
    """The Keras model. Raises ValueError where a layer gives another shape than its brick says."""
    import keras

    starts = [keras.Input(batch_shape=i.shape, dtype=i.dtype, name=i.name) for i in inputs(net, p)]
    values = dict(zip((i.name for i in net.inputs), starts, strict=True))
    shapes = net.shapes()
    made: dict[str, Callable[[Any], Any]] = {}
    for node in net.nodes:
        given = [values[source] for source in node.sources]
        if node.brick is None:
            values[node.name] = keras.layers.Add(name=node.name)(given)
            continue
        made[node.name] = made[node.like] if node.like else node.brick.tf(node.name, shapes[node.sources[0]])
        values[node.name] = made[node.name](given[0])
        got = tuple(values[node.name].shape[1:])
        if got != shapes[node.name]:
            raise ValueError(f"{node.name} ({node.brick.name}) gives {got}, not {shapes[node.name]}")
    ends = [values[name] for name in net.outputs()]
    return keras.Model(starts if len(starts) > 1 else starts[0], ends if len(ends) > 1 else ends[0])


def build_torch(net: Net, _p: Any) -> Any:
    """The PyTorch module."""
    import torch

    shapes = net.shapes()

    def made(node: Node) -> Any:
        if node.brick is None:
            return module(lambda _self, given: sum(given[1:], given[0]))
        found = node.brick.torch(shapes[node.sources[0]])
        return channels_first(found) if node.brick.channels_first else found

    class Network(torch.nn.Module):
        """The nodes under their names."""

        def __init__(self) -> None:
            super().__init__()
            for node in net.nodes:
                if not node.like:
                    self.add_module(node.name, made(node))

        def forward(self, *given: Any) -> Any:
            values = dict(zip((i.name for i in net.inputs), given, strict=True))
            for node in net.nodes:
                call = getattr(self, node.like or node.name)
                sources = [values[source] for source in node.sources]
                values[node.name] = call(sources if node.brick is None else sources[0])
            ends = tuple(values[name] for name in net.outputs())
            return ends if len(ends) > 1 else ends[0]

    return Network()


def copy_weights(net: Net, tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    for node in net.nodes:
        if node.brick is not None and not node.like:
            node.brick.copy(tf_model.get_layer(node.name), unwrapped(getattr(torch_model, node.name)))


class Parts(NamedTuple):
    """What a pair file defines. It calls the third ``build_tf`` if a brick of its needs TensorFlow beside Keras."""

    PAIR: Pair
    inputs: Callable[[Any], list[Input]]
    build_keras: Callable[..., Any]
    build_torch: Callable[[Any], Any]
    copy_weights: Callable[[Any, Any], None]


def pair(
    name: str,
    net: Net,
    notes: tuple[str, ...] = (),
    params: Mapping[str, Any] | None = None,
    resized: Callable[[Shape, Any], Shape] = lambda shape, _p: shape,
) -> Parts:
    """A network as a pair. ``resized`` gives an input's shape under the pair's parameters."""

    def sized(p: Any) -> Net:
        return replace(net, inputs=tuple(i._replace(shape=resized(i.shape, p)) for i in net.inputs))

    return Parts(
        Pair(name, {"batch": 2, **(params or {})}, net.layers(), notes),
        lambda p: inputs(sized(p), p),
        lambda p, _keras=None: build_keras(sized(p), p),
        lambda p: build_torch(sized(p), p),
        lambda tf_model, torch_model: copy_weights(net, tf_model, torch_model),
    )
