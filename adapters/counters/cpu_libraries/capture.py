"""Runs a model on the CPU with the logs of MKL and oneDNN on, and returns their ledger, one entry per module and ATen op.

The logs are turned on at run time, for this call alone, and read after each op: a line belongs to the op in which it was written.
The amounts are those of the lines; the op gives the layer and the tensors on which it ran.
"""

from __future__ import annotations

import torch

from ....core.records import MAC, Entry, Ledger, Sighting
from ...pytorch.model import TorchModel, versions
from ...pytorch.tracing import higher_order
from ...pytorch.tracing.fused_calls import FusedCalls
from ...pytorch.tracing.module_path import ModulePath
from ...pytorch.tracing.recorder import Recorder
from ...shared.refusal import BeyondCounter
from .algorithm_notes import notes_of
from .log_reader import Listening, check
from .log_recorders import Log, TrainingWitness, Witness

COUNTER = "cpu_libraries"
ON_META = "on %s nothing is multiplied on the CPU, so MKL and oneDNN write nothing: let the model run on the CPU (--device cpu)"


def _record_call(model: TorchModel, log: Log) -> Recorder:
    module = model.build(model.device)
    inputs = model.example(model.device)
    path = ModulePath(module)
    witness = Witness(path)
    witness.log = log
    log.listening.read_products()
    with torch.no_grad(), higher_order.write_out(), FusedCalls(witness), witness, path:
        module(*inputs)
    return witness


def _record_training(model: TorchModel, log: Log) -> Recorder:
    from ...pytorch.optimizers import update_of
    from ...pytorch.tracing.fused_gradients import TrainedFusedCalls
    from ...pytorch.tracing.nodes import TrainingPath
    from ...pytorch.training import step

    module = model.build(model.device)
    module.train()
    inputs = model.example(model.device)
    path = TrainingPath(module)
    witness = TrainingWitness(path, module)
    witness.log = log
    calls = TrainedFusedCalls(witness)
    log.listening.read_products()
    with torch.enable_grad(), calls, witness, path:
        step(module, inputs, update_of(model), witness, calls)
    return witness


def capture(counter: str, model: TorchModel) -> Ledger:
    """Run one inference call or one training step of a fresh module on the CPU, and record what the libraries wrote."""
    if model.device != "cpu":
        raise BeyondCounter(ON_META % model.device)
    check()
    with Listening() as listening:
        log = Log(listening)
        witness = (_record_training if model.training else _record_call)(model, log)
        after = log.rest()
    sightings = tuple(Sighting(op, f"{op.layer}|{op.op}") for op in witness.ops.values())
    entries = entries_of(log, after)
    of = versions(witness.path.root)
    return Ledger(COUNTER, "torch", MAC, model.device, of, log.total, entries, sightings, notes=notes_of(sightings))


def entries_of(log: Log, after: int) -> tuple[Entry, ...]:
    """An entry for each layer and op with lines, and one of what came after the last op."""
    entries = [Entry("{}|{}".format(*key), *key, value, calls) for key, (value, calls) in log.amounts.items()]
    if after:
        entries.append(Entry("(after)", "", "after the last op", after, 1))
    return tuple(entries)
