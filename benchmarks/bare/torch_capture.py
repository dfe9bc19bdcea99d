"""``torch_capture.py PAIR [name=value ...]``: seconds of building a pair's PyTorch model and calling it, of the same under
flop_counter, as anybody would write them, and of the tool's trace and its ledger of flop_counter; of a trace on meta as well.

Each makes the model afresh. Nothing of the tool's captures or tracers is used in the first two, only the pair's functions.
"""

import json
import sys
import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from reconcile.core.protocol import WorkerRequest
from reconcile.core.registry import frameworks
from reconcile.launch.runner import counters_of_request
from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs
from reconcile.worker.main import Worker

ROUNDS = 3
"""After one that loads what PyTorch loads late."""
found = loading.pair_path(sys.argv[1])
module = loading.load_pair(found)
values = loading.resolve(module, dict(word.split("=") for word in sys.argv[2:]))
params = pairs.Params(values)
FLOP_COUNTER = "flop_counter"


def made():
    """The model and its inputs."""
    inputs = []
    for spec in module.inputs(params):
        dtype = getattr(torch, spec.dtype)
        inputs.append(torch.zeros(spec.shape, dtype=dtype) if not dtype.is_floating_point else torch.randn(spec.shape))
    return module.build_torch(params).eval(), inputs


def call():
    model, inputs = made()
    model(*inputs)


def alone():
    model, inputs = made()
    with FlopCounterMode(display=False) as counter:
        model(*inputs)
    return counter.get_total_flops()


def task(name, device):
    request = WorkerRequest(frameworks()["torch"], (name,), "", counters_of_request((FLOP_COUNTER,)), device=device)
    return lambda: Worker(request, module).take(name, values)


STEPS = {
    "call": call,
    FLOP_COUNTER: alone,
    "trace on meta": task("trace", "meta"),
    "trace": task("trace", "cpu"),
    "ledger": task(FLOP_COUNTER, "cpu"),
}
seconds = {name: [] for name in STEPS}
made_by = {}
with torch.no_grad():
    for turn in range(ROUNDS + 1):
        for name, step in STEPS.items():
            start = time.perf_counter()
            made_by[name] = step()
            if turn:
                seconds[name].append(time.perf_counter() - start)
if made_by["trace"].device != "cpu" or made_by["trace"].problems:
    sys.exit("the trace is not of the call on the CPU")
if made_by["ledger"].total != made_by[FLOP_COUNTER]:
    sys.exit(f"flop_counter reports {made_by[FLOP_COUNTER]:,} alone and {made_by['ledger'].total:,} in the tool")
print(json.dumps(seconds))
