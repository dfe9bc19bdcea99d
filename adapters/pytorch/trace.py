"""The trace of a PyTorch model: every ATen op that reaches the dispatcher in one inference call, with its module.

A recurrent layer and an attention call are recorded as one op each (tracing/fused_calls.py).  Where the model takes gradients or
maps a call over a batch, the call is recorded op by op (tracing/followed_calls.py).
"""

from __future__ import annotations

import torch

from ...core.records import Problem, Trace
from .compiled import SCRIPT, TORCHSCRIPT_RUNS_KERNELS, kind_of_kernel
from .lazy import take_lazy
from .model import TorchModel, versions
from .tracing import higher_order
from .tracing.fused_calls import FusedCalls
from .tracing.module_path import ModulePath
from .tracing.numpy_crossings import keep_numbers
from .tracing.recorder import Recorder
from .tracing.seal import Seal
from .tracing.second_call import record_twice, shake
from .tracing.trace_device import record_model
from .tracing.trace_notes import depends_on, keep_fast_path, of_ways
from .tracing.unrecorded_work import THREAD


def trace(model: TorchModel, died: tuple[str, ...] = ()) -> Trace:
    """Trace of one inference call where the model is asked to run; on ``meta`` if it does not fit there, with a note.

    ``died`` says how each earlier process ended that traced the model.
    """
    recorder, device, notes = record_model(_record, model, died)
    return finish_trace(recorder, device, notes + tuple(of_ways(recorder.path.modules, list(recorder.ops.values()))))


def finish_trace(recorder: Recorder, device: str, notes: tuple[str, ...]) -> Trace:
    """The trace of what was recorded; layers in order of execution."""
    ops = tuple(recorder.ops.values())
    layers = tuple(dict.fromkeys(op.layer for op in ops))
    kernels = {layer: kind_of_kernel(module) for module, layer in recorder.path.scripts.items()}
    problems = [
        Problem(layer, SCRIPT, layer, TORCHSCRIPT_RUNS_KERNELS % kind) for layer, kind in kernels.items() if kind
    ]
    problems += [Problem(layer, THREAD, layer, recorder.unfollowed) for layer in dict.fromkeys(recorder.path.unseen)]
    named = {problem.layer for problem in problems}
    problems += recorder.problems + [
        problem for problem in recorder.list_computed_elsewhere() if problem.layer not in named
    ]
    notes += tuple(depends_on(ops)) + tuple(recorder.remarks)
    path = recorder.path
    return Trace("torch", versions(path.root), device, ops, tuple(problems), (), layers, notes, path.count_parameters())


def _record(model: TorchModel, device: str) -> Recorder:
    def call(module: torch.nn.Module, seal: Seal | None, shaken: str) -> Recorder:
        inputs = shake(model.example(device), shaken)
        path = ModulePath(module)
        recorder = Recorder(path)
        calls, uncompiled = FusedCalls(recorder), higher_order.write_out()
        with recorder.follow_seal(seal, module, inputs), keep_numbers(), torch.no_grad():
            with recorder.watch_surroundings(), uncompiled, calls, recorder, path, keep_fast_path():
                result = take_lazy(module(*inputs))
            recorder.check_result(result)
        return recorder

    return record_twice(call, lambda: model.build(device), device, model.quick)
