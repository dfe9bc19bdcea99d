"""Runs in a process of its own, Keras on PyTorch: models of keras.applications traced on meta, as JSON; all if none is named.

Prints {name: {"device", "macs", "unknown"} or {"refused"}}: multiply-adds of one image, ops of unknown work, or what Keras
says where it does not make the model.
"""

from __future__ import annotations

import json
import sys
import warnings

import keras

from reconcile.adapters.pytorch import model as torch_model
from reconcile.adapters.pytorch import trace as trace_torch
from reconcile.adapters.shared import keras_model
from reconcile.adapters.shared.refusal import OutOfMemory
from reconcile.model_zoo.pair import Pair
from reconcile.work import UnknownWork, load, work_of
from reconcile.worker.introspect import inputs_of


class Application(Pair):
    """A pair's PyTorch side: one model of keras.applications."""

    user_model = True

    def __init__(self, name):
        super().__init__(name)
        self.factory = getattr(keras.applications, name)
        self.model = None

    def build_torch(self, _params):
        keras_model.rename({})
        self.model = self.factory(weights=None)
        return self.model

    def arguments(self, _params):
        return inputs_of(self.model, self.factory.__doc__), {}


def traced(name):
    try:
        # on meta alone: a run on the CPU beside it would make every model twice
        trace = trace_torch.trace(torch_model.TorchModel(Application(name), {}), ("left out",))
    except OutOfMemory as error:  # nor on meta: Keras refuses it there as well
        return {"refused": str(error.__cause__)}
    macs, unknown = 0, []
    for op in trace.ops:
        try:
            macs += work_of(op).mac * op.calls
        except UnknownWork:
            unknown.append(op.op)
    return {"device": trace.device, "macs": macs, "unknown": unknown}


def main(*names):
    warnings.simplefilter("ignore")
    load()
    names = names or [name for name in dir(keras.applications) if callable(getattr(keras.applications, name))]
    print(json.dumps({name: traced(name) for name in names}))


if __name__ == "__main__":
    main(*sys.argv[1:])
