"""``trace_recurrent.py tf|torch STEPS``: seconds of building the GRU and tracing it; the framework is imported before."""

import importlib
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from reconcile.core.protocol import WorkerRequest
from reconcile.core.registry import frameworks
from reconcile.model_zoo import loading
from reconcile.worker.main import Worker

framework, steps = sys.argv[1], sys.argv[2]
module = loading.load_pair(str(Path(__file__).parents[1] / "models" / "recurrent.py"))
record = frameworks()[framework]
importlib.import_module(record.package)
request = WorkerRequest(record, ("trace",), "", device="meta" if framework == "torch" else "cpu")  # runs no step
for _ in range(2):  # the first one loads what a framework loads late
    params = loading.resolve(module, {"steps": steps})
    start = time.perf_counter()
    trace = Worker(request, module).take("trace", params)
    seconds = time.perf_counter() - start
work = {"torch": "aten.gru", "tf": "MatMul"}[framework]
if trace.problems or not any(op.op == work for op in trace.ops):
    sys.exit(f"the trace of {steps} steps is not whole")
if framework == "tf" and int(steps) not in {op.calls for op in trace.ops}:
    sys.exit(f"no op of the trace runs {steps} times")
print(seconds)
