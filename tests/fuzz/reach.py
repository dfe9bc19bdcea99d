"""Which nodes of a TensorFlow graph reach out of it, by what their ops declare: an oracle that knows no list of ops to allow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from . import mutate
from .harness import Wrong

REACHES = re.compile(
    r"(^|_)(files?|filenames?|filepattern|paths?|directory|address|hosts|library|output_stream|debug_urls|program|ckpt_path)($|_)"
)
"""Names of inputs and attributes by which an op is told where to read, write or connect."""
KNOWN = mutate.words(
    "PyFunc PyFuncStateless EagerPyFunc RpcCall TryRpc XlaCustomCall XlaCustomCallV2 Send Recv _Send _Recv DebugIdentity "
    "BatchFunction RemoteCall ImportEvent WriteSummary"
)
TOP_PATHS = frozenset(("CTCBeamSearchDecoder",))
"""Its ``top_paths`` are no paths of files."""
NOWHERE = (b"", b"stderr", b"stdout", b"log(info)", b"log(warning)", b"log(error)")
"""What such an attribute may say: no file."""
RESTORING = frozenset(("RestoreV2", "Restore", "RestoreSlice"))


@cache
def dangerous() -> dict[str, tuple[str, ...]]:
    """Ops that are told where to read, write or connect, with the attributes that say it; () where an input does, or always."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry

    found: dict[str, tuple[str, ...]] = dict.fromkeys(KNOWN, ())
    for name in dir(tf.raw_ops):
        definition = op_def_registry.get(name)
        if definition and name not in TOP_PATHS:
            attributes = tuple(part.name for part in definition.attr if REACHES.search(part.name))
            if any(REACHES.search(part.name) for part in definition.input_arg):
                found[name] = ()
            elif attributes:
                found.setdefault(name, attributes)
    return found


def reaches(node: Any) -> bool:
    """Whether a node is told such a place, or may be."""
    attributes = dangerous().get(node.op)
    if not attributes:
        return attributes is not None
    return any(
        node.attr[name].s not in NOWHERE or len(node.attr[name].list.s) for name in attributes if name in node.attr
    )


def none_reaches(nodes: Iterable[Any], where: str, but: frozenset[str] = frozenset()) -> None:
    bad = sorted({node.op for node in nodes if node.op not in but and reaches(node)})
    if bad:
        raise Wrong(f"{bad[0]} is let pass{where}")


def needed(graph: Any, names: Iterable[str]) -> list[Any]:
    """The nodes that these need, those of the functions that they call included."""
    nodes = {node.name: node for node in graph.node}
    functions = {function.signature.name: function for function in graph.library.function}
    pending, found, entered = [nodes.get(_plain(name)) for name in names], list[Any](), set[str]()
    while pending:
        node = pending.pop()
        if node is None or any(node is other for other in found):
            continue
        found.append(node)
        pending += [nodes.get(_plain(name)) for name in node.input]
        called = [value.func.name for value in node.attr.values()] + [
            f.name for v in node.attr.values() for f in v.list.func
        ]
        for name in {*called, node.op} & set(functions) - entered:
            entered.add(name)
            pending += functions[name].node_def
    return found


def _plain(name: str) -> str:
    return name.lstrip("^").split(":")[0]
