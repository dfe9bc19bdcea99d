"""ResNet50: seconds of building it, of its concrete function and of one profile, then of the trace and of three ledgers."""

import json
import os
import time
from itertools import pairwise

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf

from reconcile.core.protocol import WorkerRequest
from reconcile.core.registry import frameworks
from reconcile.launch.runner import counters_of_request
from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs
from reconcile.worker.main import Worker

module = loading.load_pair(loading.pair_path("resnet50"))
values = loading.resolve(module, {})
params = pairs.Params(values)
TASKS = ("trace", "tf.profiler@function", "tf.profiler@frozen", "tf.profiler@runmeta")
REQUEST = WorkerRequest(frameworks()["tf"], TASKS, "", counters_of_request(TASKS[1:]))


def bare():
    """Seconds of the three steps, as anybody would write them."""
    times = [time.perf_counter()]
    model = module.build_tf(params)
    times.append(time.perf_counter())
    (given,) = module.inputs(params)
    function = tf.function(lambda x: model(x, training=False))
    concrete = function.get_concrete_function(tf.TensorSpec(given.shape, given.dtype))
    times.append(time.perf_counter())
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    tf.compat.v1.profiler.profile(concrete.graph, cmd="scope", options=options)
    times.append(time.perf_counter())
    return dict(zip(("build", "concrete function", "profile"), (b - a for a, b in pairwise(times)), strict=True))


def ours():
    """Seconds of each task of a worker."""
    worker, found = Worker(REQUEST, module), {}
    for task in TASKS:
        start = time.perf_counter()
        worker.take(task, values)
        found[task] = time.perf_counter() - start
    return found


for _ in range(3):  # the first rounds load what TensorFlow loads late
    tf.keras.backend.clear_session()
    found = bare()
    tf.keras.backend.clear_session()
    found.update(ours())
print(json.dumps(found))
