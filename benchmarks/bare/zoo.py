"""``zoo.py FRAMEWORK MODEL``: every counter of one framework on a pair of the zoo, each on a model built afresh.

Nothing of the tool's captures or tracers is used, only the pair's build function. Prints {counter: [seconds, total]}.
"""

import json
import sys
import time

from reconcile.model_zoo import pair as pairs

module = pairs.load_pair(pairs.pair_path(sys.argv[2]))
params = pairs.Params(pairs.resolve(module, {}))
specs = module.inputs(params)


def tensorflow():
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2_as_graph as freeze

    v1 = tf.compat.v1
    kept = []  # a concrete function does not keep its variables alive

    def concrete():
        model = module.build_tf(params)
        kept.append(model)

        def infer(*inputs):
            if isinstance(model, tf.keras.Model):
                return model(inputs[0] if len(inputs) == 1 else list(inputs), training=False)
            return model(*inputs)

        return tf.function(infer).get_concrete_function(*(tf.TensorSpec(s.shape, s.dtype, name=s.name) for s in specs))

    def profile(graph, run_meta=None):
        options = v1.profiler.ProfileOptionBuilder.float_operation()
        options["output"] = "none"
        return v1.profiler.profile(graph, run_meta=run_meta, cmd="scope", options=options).total_float_ops

    def runmeta():
        frozen, graph_def = freeze(concrete())
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(graph_def, name="")
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        found = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        feeds = {t.name: np.zeros(t.shape, t.dtype.as_numpy_dtype) for t in frozen.inputs}
        with v1.Session(graph=graph, config=config) as session:
            session.run([t.name for t in frozen.outputs], feeds, options=options, run_metadata=found)
        return profile(graph, found)

    return {
        "tf.profiler@function": lambda: profile(concrete().graph),
        "tf.profiler@frozen": lambda: profile(freeze(concrete())[0].graph),
        "tf.profiler@runmeta": runmeta,
    }


def torch():
    import torch
    from fvcore.nn import FlopCountAnalysis
    from thop import profile
    from torch.utils.flop_counter import FlopCounterMode

    def built():
        inputs = []
        for spec in specs:
            dtype = getattr(torch, spec.dtype)
            inputs.append(
                torch.zeros(spec.shape, dtype=dtype) if not dtype.is_floating_point else torch.randn(spec.shape)
            )
        return module.build_torch(params).eval(), tuple(inputs)

    def fvcore():
        model, inputs = built()
        return FlopCountAnalysis(model, inputs).unsupported_ops_warnings(False).uncalled_modules_warnings(False).total()

    def thop():
        model, inputs = built()
        return profile(model, inputs, verbose=False)[0]

    def flop_counter():
        model, inputs = built()
        with FlopCounterMode(display=False) as counter:
            model(*inputs)
        return counter.get_total_flops()

    return {"thop": thop, "fvcore": fvcore, "flop_counter": flop_counter}


found = {}
if sys.argv[1] == "torch":
    __import__("torch").set_grad_enabled(False)  # inference, as the tool runs it: encoder layers take their fused path
for name, count in {"tf": tensorflow, "torch": torch}[sys.argv[1]]().items():
    start = time.perf_counter()
    total = int(count())
    found[name] = [time.perf_counter() - start, total]
print(json.dumps(found))
