"""A runnable copy of a concrete function's graph with variables of its own: runs do not change the model's variables.

Python 3.6, TensorFlow 2.x.
"""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from ...shared.refusal import BeyondCounter
from .graph import session_of, v1


class OwnGraph(NamedTuple):
    """``graph`` with the function's nodes by their names; running ``start`` with ``values`` initializes the variables."""

    graph: Any
    start: Tuple[Any, ...]
    values: Dict[Any, Any]


@contextmanager
def refuse_failed_run() -> Iterator[None]:
    """Within this block a copy of a model's graph runs. Raises BeyondCounter, in TensorFlow's words, if it cannot."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        said = [line.strip() for line in str(error.message).splitlines() if line.strip()]
        words = next((line for line in said if not line.startswith(HEADS)), type(error).__name__)
        raise BeyondCounter(f"a copy of the model's graph does not run on its own ({words[:SHOWN]})") from None


HEADS = ("Graph execution error", "Detected at node", "Node:", "2 root error", "(0)")
"""The beginnings of lines that do not say what is wrong."""
SHOWN = 160


def run_graph(own: OwnGraph, wanted: Any, feeds: Dict[str, Any], metadata: Any = None, every_node: bool = False) -> Any:
    """The values of ``wanted`` from one run on the CPU; with ``metadata`` the run is traced.

    ``every_node`` is that of ``session_of``.
    """
    options = v1().RunOptions(trace_level=v1().RunOptions.FULL_TRACE) if metadata is not None else None
    with refuse_failed_run(), session_of(own.graph, every_node) as session:
        session.run(own.start, own.values)
        return session.run(wanted, feeds, options=options, run_metadata=metadata)


def own_graph(concrete: Any, definition: Any = None) -> OwnGraph:
    """The copy of the function's graph, or of its ``definition`` with calls inlined (freezing.py, ``inline_calls``) or counted.

    Raises BeyondCounter if it reads anything but variables and tensors.
    """
    import tensorflow as tf

    raw, ours = tf.raw_ops, concrete.graph
    graph = tf.Graph()
    inside: Dict[str, Any] = {}
    start: List[Any] = []
    values: Dict[Any, Any] = {}
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
            first = v1().placeholder(dtype, shape, name=name + "_first")
            start.append(raw.AssignVariableOp(resource=handle, value=first, name=name + "_assigned"))
        values[first] = value
        inside[placeholder.name] = handle
    with graph.as_default():
        tf.import_graph_def(ours.as_graph_def() if definition is None else definition, input_map=inside, name="")
    return OwnGraph(graph, tuple(start), values)


def results_of(own: OwnGraph, concrete: Any) -> List[Any]:
    """The results of the function in the copy: its outputs, and its side effects. An inlined call has no op
    any more; the outputs wait for its side effects, as TensorFlow makes every output wait for all of them."""
    names = {operation.name for operation in own.graph.get_operations()}
    effects = [op.name for op in getattr(concrete.graph, "control_outputs", ()) if op.name in names]
    return [own.graph.as_graph_element(str(name)) for name in [t.name for t in concrete.outputs] + effects]


def _variable(handle: Any) -> Tuple[Any, Any]:
    """dtype and shape of the variable behind a handle in a graph."""
    import tensorflow as tf
    from tensorflow.python.ops import handle_data_util

    data = handle_data_util.get_resource_handle_data(handle)
    if not data.is_set or len(data.shape_and_type) != 1:
        raise BeyondCounter(
            f"the model reads {handle.name}, which is not a variable, so it cannot run in a graph of its own"
        )
    (variable,) = data.shape_and_type
    return tf.dtypes.as_dtype(variable.dtype), tf.TensorShape(variable.shape)
