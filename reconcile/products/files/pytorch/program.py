"""Checks the JSON of a ``.pt2`` archive before torch.export.load of PyTorch 2.13 reads it: no string in it may run as code.

That function unpickles every part that is marked as pickled, evaluates symbolic expressions (sympy.sympify is eval), calls any
attribute of ``torch`` that a node names, imports the modules that a tree of arguments names (utils/_pytree.py), and writes the
names of nodes and arguments into Python source that it runs (fx/graph.py). So every string in the program must be one
that is allowed in its field, by the field's name; without another rule, it must be a plain name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..model_file import FileError, show_name, words
from .arithmetic import is_arithmetic

HIGHER_ORDER = words("""
    associative_scan cond flex_attention invoke_subgraph map map_impl out_dtype scan while_loop wrap_with_autocast
    wrap_with_set_grad_enabled""")
"""Operators of torch.ops.higher_order that run parts of the program itself."""
SIZES = words("""
    _operator.add _operator.and_ _operator.eq _operator.floordiv _operator.ge _operator.getitem _operator.gt _operator.le
    _operator.lshift _operator.lt _operator.mod _operator.mul _operator.ne _operator.neg _operator.not_ _operator.or_
    _operator.pos _operator.pow _operator.rshift _operator.sub _operator.truediv _operator.xor math.ceil math.floor math.sqrt
    math.trunc torch._sym_sqrt torch.sym_float torch.sym_int torch.sym_ite torch.sym_max torch.sym_min torch.sym_not
    torch.sym_sum""")
"""Python's functions of sizes that an exported graph may call beside operators."""

HOLDS_A_PICKLE = "{} holds something pickled, and a pickle runs whatever code it brings along; --trust-file lets it."
DEEPEST = 200
"""How deep a program's JSON is nested at most."""

NAME = re.compile(r"\w*")
PATH = re.compile(r"[^\"'\\\x00-\x1f\x7f]*")
"""Paths of modules and parameters, and keys of dictionaries: they are quoted in source."""
NUMBER = re.compile(r"[-+]?\w*")
PAYLOAD = re.compile(r"(weight|tensor)_\d+", re.ASCII)
"""Members that hold a tensor's bytes as they are; custom_obj_0 and opaque_obj_0 are pickles."""

PATHS = words("""
    parameter_name buffer_name tensor_constant_name custom_obj_name user_input_name fqn class_fqn torch_version
    nn_module_stack""")
NUMBERS = words("as_float as_floats as_float_lists real imag")
QUOTED = frozenset(("as_string", "as_strings"))
"""Arguments of operators: strings that are passed on as they are."""

TREES = words("""
    builtins.tuple builtins.list builtins.dict collections.OrderedDict collections.deque torch.Size
    torch.fx.immutable_collections.immutable_list torch.fx.immutable_collections.immutable_dict""")
"""Containers of arguments and results. A defaultdict's factory, and an enum as a key, are imported from anywhere."""


def looked_at(where: str, name: str, data: bytes) -> bytes:
    """A member of an exported program as it may be loaded: its JSON without what is not needed. Raises FileError."""
    if not name.endswith(".json"):
        return data
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{where} cannot be loaded: its {name} is no JSON.") from error
    try:
        (_check_program if name.startswith("models/") else _check_config)(where, found)
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise FileError(f"{where} cannot be loaded: its {name} is not what torch.export.save writes.") from error
    return json.dumps(found).encode()


def _check_config(where: str, config: Any) -> None:
    """Refuse tensors that are pickled."""
    for entry in config["config"].values():
        if entry.get("use_pickle") or not PAYLOAD.fullmatch(entry["path_name"]):
            raise FileError(HOLDS_A_PICKLE.format(where))
    _check_texts(where, config["config"])


def _check_program(where: str, program: Any) -> None:
    """Refuse a program that would evaluate, import or call anything but operators."""
    program["guards_code"] = []  # the source of Python functions
    program["graph_module"]["metadata"] = {}
    _check_texts(where, program)


def _check_texts(where: str, root: Any) -> None:
    pending = [("", root, 0)]
    while pending:
        key, item, depth = pending.pop()
        if depth > DEEPEST:
            raise FileError(f"{where} cannot be loaded: its program is nested too deep.")
        if isinstance(item, list):
            pending.extend((key, value, depth + 1) for value in item)
        elif isinstance(item, dict):
            if isinstance(item.get("target"), str):  # of a node, only which module it is of is needed
                item["metadata"] = {k: v for k, v in item["metadata"].items() if k == "nn_module_stack"}
            for name, value in item.items():
                _check_text(where, "fqn", name)
                pending.append((name, value, depth + 1))
        elif isinstance(item, str):
            _check_text(where, key, item)


def _check_text(where: str, key: str, text: str) -> None:
    """Raise FileError unless this string may stand in this field of a program."""
    if key in ("target", "as_operator"):
        if not is_operator(text):
            raise FileError(
                f"{where} calls {text[:80]}, which is no operator of the installed PyTorch; --trust-file lets it."
            )
    elif key == "expr_str":
        if not is_arithmetic(text):
            raise FileError(f"{where} has a size that is no arithmetic; --trust-file lets it.")
    elif key in ("in_spec", "out_spec"):
        _check_tree(where, key, text)
    elif key not in QUOTED:
        allowed = PATH if key in PATHS else NUMBER if key in NUMBERS else NAME
        if not allowed.fullmatch(text):
            raise FileError(
                f"{where} has the name {text[:80]!r}, which PyTorch would run as code; --trust-file lets it."
            )


def is_operator(target: str) -> bool:
    """Whether a node calls an overload of an operator, or arithmetic of sizes, and not another function of Python."""
    parts = target.split(".")
    if parts[:2] != ["torch", "ops"]:
        return target in SIZES
    if parts[2:3] == ["higher_order"]:
        return len(parts) == 4 and parts[3] in HIGHER_ORDER
    if len(parts) != 5:
        return False
    import torch

    packet = getattr(getattr(torch.ops, parts[2]), parts[3], None)
    return isinstance(packet, torch._ops.OpOverloadPacket) and parts[4] in packet.overloads()


def _check_tree(where: str, key: str, text: str) -> None:
    """Refuse a tree of arguments that holds anything but containers, and names of arguments that are none."""
    others: list[str] = []
    try:
        _, root = json.loads(text)
        named = root["children_spec"][1]["context"] if key == "in_spec" else "[]"
        plain = all(NAME.fullmatch(name) for name in json.loads(named))
        others = [str(node["type"]) for node in _nodes(root) if node["type"] not in TREES]
        sound = plain and not others and all(_is_context(node["context"]) for node in _nodes(root))
    except RecursionError as error:
        raise FileError(f"{where} cannot be loaded: its arguments are nested too deep.") from error
    except ValueError:
        sound = False
    if not sound:
        named = f" ({show_name(others[0])})" if others else ""
        raise FileError(
            f"{where} takes or gives back something else than tensors in lists and dictionaries{named}; --trust-file lets "
            "it."
        )


def containers(program: Any) -> Iterator[str]:
    """The types of all containers in the trees of arguments and results of a program."""
    pending = [program]
    while pending:
        item = pending.pop()
        pending.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        for key in ("in_spec", "out_spec"):
            if isinstance(item, dict) and isinstance(item.get(key), str):
                yield from (str(node["type"]) for node in _nodes(json.loads(item[key])[1]))


def _nodes(root: Any) -> Iterator[Any]:
    """The containers in a tree of arguments."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node["type"] is not None:
            yield node
        pending.extend(node["children_spec"])


def _is_context(text: Any) -> bool:
    """Whether a container's own data are nothing, a length or its keys."""
    if not isinstance(text, str):
        return False
    found = json.loads(text)
    return all(
        key is None or isinstance(key, (int, float)) or (isinstance(key, str) and PATH.fullmatch(key) is not None)
        for key in (found if isinstance(found, list) else [found])
    )
