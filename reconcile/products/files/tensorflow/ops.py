"""A check of every op in a TensorFlow graph from a file: it must be on the list of op_names.py and have harmless attributes.

Every other op is refused unless the user trusts the file, whatever TensorFlow's registration says about the op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..model_file import show_name
from .op_names import COMPUTING

ENCODINGS = frozenset(
    ["UTF-8", "UTF-16", "UTF-16-BE", "UTF-16-LE", "UTF-32", "UTF-32-BE", "UTF-32-LE", "US-ASCII", "ASCII"]
)
ATTRIBUTES: Mapping[str, tuple[str, frozenset[str]]] = {
    "PrintV2": ("output_stream", frozenset(["stderr", "stdout", "log(info)", "log(warning)", "log(error)"])),
    "FixedUnigramCandidateSampler": ("vocab_file", frozenset([""])),
    "UnicodeDecode": ("input_encoding", ENCODINGS),
    "UnicodeDecodeWithOffsets": ("input_encoding", ENCODINGS),
    "UnicodeTranscode": ("input_encoding", ENCODINGS),
}
"""Listed ops that use a file or a converter of the system if an attribute names one: {op: (attribute, its values that name
none)}."""

HERE = re.compile(r"(/job:localhost)?(/replica:\d+)?(/task:\d+)?(/(device:)?[A-Za-z_]+(:(\d+|\*))?)?")
"""A device of this process, as a node requests it; '' for any."""


def first_forbidden(nodes: Iterable[Any], functions: frozenset[str], more: frozenset[str] = frozenset()) -> str | None:
    """The reason why the first forbidden one of these NodeDefs must not run; None if all may run.

    ``functions`` are those of the graph, which nodes may call by type; ``more`` are further allowed ops.
    """
    for node in nodes:
        why = forbidden(node, functions, more)
        if why:
            return why
    return None


def forbidden(node: Any, functions: frozenset[str] = frozenset(), more: frozenset[str] = frozenset()) -> str | None:
    """Why this NodeDef must not run; None if it may."""
    from tensorflow.python.framework import op_def_registry

    if not HERE.fullmatch(node.device):
        device = show_name(node.device)
        return f"places {show_name(node.name)} on {device}, which is not a device of this machine; pass --trust-file to allow it"
    if node.op in COMPUTING or node.op in more:
        return None if _harmless(node) else _refusal(node.op)
    if op_def_registry.get(node.op) is not None:
        return _refusal(node.op)
    if node.op in functions:
        return None
    return (
        f"holds the op {show_name(node.op)}, which this TensorFlow does not have: it comes from a library that a factory can "
        "load first"
    )


def _refusal(op: str) -> str:
    return f"holds the op {op}, which may touch files, processes or other machines; pass --trust-file to allow it"


def _harmless(node: Any) -> bool:
    """Whether the attribute that could name a file names none. Inside a function, its caller may set it: that is not harmless."""
    name, values = ATTRIBUTES.get(node.op, ("", frozenset()))
    if name not in node.attr:
        return True
    value = node.attr[name]
    return value.WhichOneof("value") == "s" and value.s.decode("utf-8", "replace") in values
