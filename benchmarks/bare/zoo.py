"""``zoo.py FRAMEWORK MODEL [training]``: every counter of one framework on a pair of the zoo, each on a model built afresh.
With ``training``, those that see a training step count one: mean of squares as the loss, gradients, one step of SGD.

Nothing of the tool's captures or tracers is used, only the pair's build function. Prints {counter: [seconds, total]}.
"""

import json
import sys
import time

from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs

module = loading.load_pair(loading.pair_path(sys.argv[2]))
training = sys.argv[3:] == ["training"]
at = dict(module.training) if training else {}
device = at.pop("device", "cpu")
params = pairs.Params(loading.resolve(module, at))
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

    def step():
        model = module.build_tf(params)
        kept.append(model)

        def train(*inputs):
            with tf.GradientTape() as tape:
                outputs = tf.nest.flatten(model(inputs[0] if len(inputs) == 1 else list(inputs), training=True))
                loss = tf.add_n([tf.reduce_mean(tf.square(t)) for t in outputs if t.dtype.is_floating])
            variables = model.trainable_variables
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                if gradient is not None:
                    variable.assign_sub(0.01 * tf.convert_to_tensor(gradient))
            return loss

        return tf.function(train).get_concrete_function(*(tf.TensorSpec(s.shape, s.dtype, name=s.name) for s in specs))

    def step_runmeta():
        from tensorflow.python.eager import context

        function = step()
        context.enable_run_metadata()
        function(*(tf.zeros(s.shape, s.dtype) for s in specs))
        return profile(function.graph, context.export_run_metadata())

    if training:
        return {"tf.profiler@function": lambda: profile(step().graph), "tf.profiler@runmeta": step_runmeta}
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
        return module.build_torch(params).eval().to(device), tuple(given.to(device) for given in inputs)

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

    def step():
        model, inputs = built()
        model.train()
        with FlopCounterMode(display=False) as counter:
            outputs = model(*inputs)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            loss = sum(torch.square(t).mean() for t in outputs if t.is_floating_point())
            if loss.requires_grad:
                loss.backward()
                torch.optim.SGD(model.parameters(), foreach=False).step()
        return counter.get_total_flops()

    if training:
        return {"flop_counter": step}
    return {"thop": thop, "fvcore": fvcore, "flop_counter": flop_counter}


found = {}
if sys.argv[1] == "torch":
    __import__("torch").set_grad_enabled(
        training
    )  # inference, as the tool runs it: encoder layers take their fused path
for name, count in {"tf": tensorflow, "torch": torch}[sys.argv[1]]().items():
    start = time.perf_counter()
    total = int(count())
    found[name] = [time.perf_counter() - start, total]
print(json.dumps(found))
