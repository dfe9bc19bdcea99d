"""How many nodes a model has once its functions are written out in place of their calls: counted, before anything writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..shared.model_file import FileError, show_name

NODES = 200_000
"""The most nodes of a model whose functions are written out. A large language model has fewer than a tenth of them."""

Name = tuple[str, str, str]
"""Domain, name and overload of a function, or of the operation that a node calls."""


def check(where: str, proto: Any) -> None:
    """Raise FileError for functions that call themselves, and for those that give more than NODES nodes: ten functions, each of
    which calls the next ten times, are 10^10."""
    functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in proto.functions}
    if not functions:
        return
    calls = {name: list(_called_functions(function.node)) for name, function in functions.items()}
    nodes: dict[Name, int] = {}
    for first in functions:
        pending, open_ = [first], set[Name]()
        while pending:
            name = pending[-1]
            inner = [call for call in calls[name] if call in functions and call not in nodes]
            looped = next((call for call in inner if call in open_ or call == name), None)
            if looped is not None:
                raise FileError(f"{where} is not a valid ONNX model: its function {show_name(looped[1])} calls itself.")
            if name not in nodes and inner:
                open_.add(name)
                pending.append(inner[0])
            else:
                nodes.setdefault(name, sum(nodes.get(call, 1) for call in calls[name]))
                open_.discard(name)
                pending.pop()
    total = sum(nodes.get(call, 1) for call in _called_functions(proto.graph.node))
    if total > NODES:
        raise FileError(
            f"{where} has {total:,} nodes if its functions are written out, more than the limit of {NODES:,}: export the model "
            "without functions, or a smaller one."
        )


def _called_functions(nodes: Any) -> Iterator[Name]:
    """What these nodes call, those of the graphs inside them included."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            yield node.domain, node.op_type, getattr(node, "overload", "")
            for attribute in node.attribute:
                pending += [graph.node for graph in (attribute.g, *attribute.graphs) if graph.node]
