"""Names of tensors that one run fetches to learn loop counts and branches, in a graph with inlined calls.  Python 3.6."""

from typing import Any, Dict, List, NamedTuple, Optional

from .loops import Frame, place_of


class Fetch(NamedTuple):
    """A tensor of the outermost graph, or of a function that it calls: (operation name once calls are inlined, output index)."""

    op: str
    output: int


def fetch_of(tensor: Any, frame: Optional[Frame]) -> Optional[Fetch]:
    """Where one run has the value of a tensor; None inside a loop or a branch, where it may have several or none."""
    while frame is not None and frame.call.type.endswith("PartitionedCall"):
        argument = place_of(frame.graph, tensor)
        if argument is None:
            break
        tensor, frame = frame.call.inputs[argument], frame.outer
    names = [tensor.op.name]
    while frame is not None:
        if not frame.call.type.endswith("PartitionedCall"):
            return None
        names.append(frame.call.name)
        frame = frame.outer
    return Fetch("/".join(reversed(names)), tensor.value_index)


def present(graph: Any, wanted: List[Fetch]) -> Dict[Fetch, str]:
    """The names of those of these tensors that a graph has."""
    names = {operation.name for operation in graph.get_operations()}
    return {fetch: f"{fetch.op}:{fetch.output}" for fetch in wanted if fetch.op in names}
