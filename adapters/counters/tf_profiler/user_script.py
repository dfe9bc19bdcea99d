"""Source of the shortest user program for tf.profiler; ``reconcile counter reproduce`` fills in the model.

One program each for the concrete function's graph, the frozen graph, and the metadata of a run.
"""

_FREEZE = "convert_variables_to_constants_v2"
_TRACED = """\

{model}
function = tf.function(lambda x: net(x, training=False)).get_concrete_function(tf.TensorSpec(x.shape, x.dtype))
"""
_COUNTED = """\
options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
options["output"] = "none"
reported = tf.compat.v1.profiler.profile(function.graph, cmd="scope", options=options).total_float_ops
"""
_RAN = """\
v1 = tf.compat.v1
graph, run_meta, config = tf.Graph(), v1.RunMetadata(), v1.ConfigProto()
config.graph_options.rewrite_options.disable_meta_optimizer = True  # it renames nodes
with graph.as_default():
    tf.import_graph_def(graph_def, name="")
with v1.Session(graph=graph, config=config) as session:
    fed = {function.inputs[0].name: numpy.zeros(x.shape, x.dtype)}
    full = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    session.run([tensor.name for tensor in function.outputs], fed, options=full, run_metadata=run_meta)
options = {**v1.profiler.ProfileOptionBuilder.float_operation(), "output": "none"}
reported = v1.profiler.profile(graph, run_meta=run_meta, cmd="scope", options=options).total_float_ops
"""


def _frozen(function: str, results: str) -> str:
    """The lines that freeze the function, with the imports before them."""
    start = f"import tensorflow as tf\nfrom tensorflow.python.framework.convert_to_constants import {function}\n"
    return f"{start}{_TRACED}{results} = {function}(function)\n"


PROGRAM = {
    "tf.profiler@function": "import tensorflow as tf\n" + _TRACED + _COUNTED,
    "tf.profiler@frozen": _frozen(_FREEZE, "function") + _COUNTED,
    "tf.profiler@runmeta": "import numpy\n" + _frozen(_FREEZE + "_as_graph", "function, graph_def") + _RAN,
}
TABLE = "tensorflow/python/profiler/internal/flops_registry.py"
