"""A check that the configuration in a Keras file names only classes and functions that Keras exports for building models.

Keras imports every name in a configuration and calls it with the arguments in the configuration. So a name passes only if
it is spelled as Keras spells it: the exact module and class of an object in the namespaces below of the installed Keras.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ..model_file import FileError, show_name

CODE = frozenset([
    "Lambda", "TorchModuleWrapper", "JaxLayer", "FlaxLayer", "TFSMLayer", "__lambda__", "__typespec__",
    "TFOpLambda", "SlicingOpLambda", "ClassMethod", "InstanceMethod", "InstanceProperty",
])  # fmt: skip
"""Classes of Keras that run code which a file contains or names, or that load another file."""

CLASSES = (
    "layers", "models", "initializers", "regularizers", "constraints", "losses", "metrics", "optimizers",
    "optimizers.schedules", "dtype_policies", "mixed_precision", "quantizers", "random",
)  # fmt: skip
FUNCTIONS = ("activations", "losses", "metrics", "ops.nn")
"""Namespaces whose classes a configuration may name, and whose functions where Keras takes a function (an activation)."""

NO_FUNCTIONS = frozenset(["get", "serialize", "deserialize"])
"""Functions in the same namespaces that make an object from any argument."""

HIDDEN = (
    ("keras.src.models.functional", "Functional"), ("keras.src.engine.functional", "Functional"),
    ("tf_keras.src.engine.functional", "Functional"),
)  # fmt: skip
"""Classes that files name and that no namespace exports."""

ROOTS = ("keras", "keras._legacy")
"""Prefixes of a namespace in Keras; the second is for names that only TensorFlow still exports."""

OPERATIONS = "keras.src.ops."
"""Start of the modules of a functional model's operations, such as an addition."""

VALUES = frozenset([
    "__keras_tensor__", "__tensor__", "__numpy__", "__bytes__", "__ellipsis__", "__slice__", "__tuple__", "TensorShape",
    "TypeSpec",
])  # fmt: skip
"""Class names that stand for a value."""


def check_config(where: str, config: Any) -> None:
    """Refuse a configuration that names anything else. Raises FileError."""
    import tensorflow as tf

    if isinstance(config, dict):  # compiling is skipped, with functions that the user wrote
        config = {name: value for name, value in config.items() if name != "compile_config"}
    keras = tf.keras
    classes, functions = _classes(keras), _functions(keras)
    known = frozenset(name for _, name in classes)
    for node in _nodes(config):
        if isinstance(node.get("vocabulary"), str):
            raise FileError(
                f"{where} makes Keras read the file {show_name(node['vocabulary'])}; pass --trust-file to allow it."
            )
        name = node.get("class_name")
        if name is None:
            continue
        if str(name).rpartition(">")[2] in CODE:
            raise FileError(
                f"{where} holds a {show_name(name)}, which runs code from the file; pass --trust-file to allow it."
            )
        if name == "function":
            allowed = _is_function(node, functions)
        elif node.get("module") is None:
            allowed = isinstance(name, str) and (name in VALUES or (name in known and _registered_as(node, name)))
        else:
            allowed = _is_class(keras, node, classes)
        if not allowed:
            raise FileError(
                f"{where} needs {_name_of(node)}, which is not part of Keras. Write a factory that imports it and loads the file."
            )


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every dict in a configuration."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _name_of(node: Mapping[str, Any]) -> str:
    """The name in a node, for a sentence."""
    if node["class_name"] == "function":
        return f"the function {show_name(node.get('config'))}"
    return f"the class {show_name(node.get('registered_name') or node['class_name'])}"


def _registered_as(node: Mapping[str, Any], *names: Any) -> bool:
    """Whether a node uses no name under which user code registered an object."""
    return node.get("registered_name") in (None, "", *names)


def _is_class(keras: Any, node: Mapping[str, Any], classes: frozenset[tuple[str, str]]) -> bool:
    module, name = node["module"], node["class_name"]
    if not isinstance(module, str) or not isinstance(name, str) or not _registered_as(node, name):
        return False
    if (module, name) in classes:
        return True
    value = vars(sys.modules[module]).get(name) if module in sys.modules and module.startswith(OPERATIONS) else None
    return isinstance(value, type) and value.__module__ == module and issubclass(value, keras.Operation)


def _is_function(node: Mapping[str, Any], functions: Mapping[str, frozenset[str]]) -> bool:
    module, name = node.get("module"), node.get("config")
    if not isinstance(name, str) or not _registered_as(node, name, "function"):
        return False
    if module == "builtins":
        return any(name in each for each in functions.values())
    return isinstance(module, str) and name in functions.get(module, ())


def _public(keras: Any, space: str) -> Iterator[tuple[str, Any]]:
    """Names and values in a namespace of Keras; none if this Keras does not have it.

    Keras 3 has each namespace twice: as TensorFlow exports it, with names of older versions, and its own.
    """
    for namespace in (keras, sys.modules.get("keras")):
        for part in space.split("."):
            namespace = getattr(namespace, part, None)
        for name in dir(namespace):
            if not name.startswith("_"):
                yield name, getattr(namespace, name)


def _classes(keras: Any) -> frozenset[tuple[str, str]]:
    """(module, class) of each allowed class: in the namespace, in `keras` itself, and in the module that defines it."""
    allowed = set(HIDDEN)
    for space in CLASSES:
        for name, value in _public(keras, space):
            if isinstance(value, type) and not {each.__name__ for each in value.__mro__} & CODE:
                allowed |= {(f"{root}.{space}", name) for root in ROOTS} | {(value.__module__, value.__name__)}
                if getattr(keras, name, None) is value:
                    allowed.add(("keras", name))
    return frozenset(allowed)


def _functions(keras: Any) -> dict[str, frozenset[str]]:
    """{module: functions} that are allowed; the ops of neural networks also belong to the module above."""
    by_module: dict[str, frozenset[str]] = {}
    for space in FUNCTIONS:
        names = {n for n, v in _public(keras, space) if callable(v) and not isinstance(v, type)} - NO_FUNCTIONS
        by_module.update({f"{root}.{space}": frozenset(names) for root in ROOTS})
    return {**by_module, "keras.ops": by_module["keras.ops.nn"]}
