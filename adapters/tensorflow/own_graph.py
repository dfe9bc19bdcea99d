"""A copy of a concrete function's graph with its own variables: you can run and trace it any number of times, and the
variables of the model do not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .graph import session_of


@dataclass(frozen=True, slots=True)
class OwnGraph:
    """``graph`` with the function's nodes by their names; running ``start`` with ``values`` initializes the variables."""

    graph: Any
    start: tuple[Any, ...]
    values: dict[Any, Any]

    def run(self, wanted: Any, feeds: dict[str, Any], metadata: Any = None, every_node: bool = False) -> Any:
        """The values of ``wanted`` from one run on the CPU; with ``metadata`` the run is traced.

        ``every_node`` is that of ``session_of``.
        """
        import tensorflow as tf

        v1 = tf.compat.v1
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE) if metadata is not None else None
        with session_of(self.graph, every_node) as session:
            session.run(self.start, self.values)
            return session.run(wanted, feeds, options=options, run_metadata=metadata)


def own_graph(concrete: Any) -> OwnGraph:
    """The copy of the function's graph. Raises ValueError if it reads anything but variables and tensors."""
    import tensorflow as tf

    raw, ours = tf.raw_ops, concrete.graph
    graph, inside, start, values = tf.Graph(), {}, [], {}
    for number, (outside, placeholder) in enumerate(ours.captures):
        name = f"own_variables/v{number}"
        if outside.dtype != tf.resource:
            with graph.as_default():
                inside[placeholder.name] = tf.constant(outside.numpy(), name=name)
            continue
        dtype, shape = _variable(placeholder)
        value = raw.ReadVariableOp(resource=outside, dtype=dtype).numpy()
        with graph.as_default():
            handle = raw.VarHandleOp(dtype=dtype, shape=shape, shared_name=name, name=name)
            first = tf.compat.v1.placeholder(dtype, shape, name=name + "_first")
            start.append(raw.AssignVariableOp(resource=handle, value=first, name=name + "_assigned"))
        values[first] = value
        inside[placeholder.name] = handle
    with graph.as_default():
        tf.import_graph_def(ours.as_graph_def(), input_map=inside, name="")
    return OwnGraph(graph, tuple(start), values)


def _variable(handle: Any) -> tuple[Any, Any]:
    """dtype and shape of the variable behind a handle in a graph."""
    import tensorflow as tf
    from tensorflow.python.ops import handle_data_util

    data = handle_data_util.get_resource_handle_data(handle)
    if not data.is_set or len(data.shape_and_type) != 1:
        raise ValueError(
            f"the step reads {handle.name}, which is not a variable, so the step cannot run in a graph of its own"
        )
    (variable,) = data.shape_and_type
    return tf.dtypes.as_dtype(variable.dtype), tf.TensorShape(variable.shape)
