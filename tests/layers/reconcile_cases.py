"""Runs in a process of its own beside one framework: every case traced, counted and reconciled; problems as JSON.

``python reconcile_cases.py torch|tf [COUNTER]``: prints {"torch": cases, "keras_torch": cases}, those of Keras on that framework
apart, with that counter alone, or with all but those that compile each case. Cases are
{name: {"problems": [...], "failed": {...}, "totals": {...}, "notes": [...]}}.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import sys
import warnings
from pathlib import Path

from reconcile.adapters.shared import keras_model
from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.align.alignment import Alignment
from reconcile.core import conventions
from reconcile.core.causes import State
from reconcile.engine.reconcile import Missing, books_of, gather_facts
from reconcile.model_zoo.pair import Input, Pair, Params

COMPILE = {"inductor"}
"""Counters that compile each case, which takes minutes: by themselves."""


class OneModel(Pair):
    """A pair in memory."""

    def __init__(self, framework, build, inputs, names):
        super().__init__(name="case")
        self._inputs = [Input(f"x{i}", *spec) for i, spec in enumerate(inputs)]
        self._build, self._names = build, names
        setattr(self, f"build_{framework}", self._made)

    def _made(self, _p):
        keras_model.rename(self._names)  # Keras numbers layers through, whatever model they are for
        return self._build()

    def inputs(self, _p):
        return self._inputs


def capture_torch(model, counters):
    from reconcile.adapters.pytorch import model as torch_model
    from reconcile.adapters.pytorch import trace as trace_torch

    trace = trace_torch.trace(torch_model.TorchModel(model, Params({})))
    return trace, _ledgers(counters, lambda: torch_model.TorchModel(model, Params({})))


def capture_tf(model, counters):
    from reconcile.adapters.tensorflow import model as tf_model
    from reconcile.adapters.tensorflow import trace as trace_tf

    held = tf_model.TfModel(model, Params({}))
    trace = trace_tf.trace_function(held.concrete, held.scopes, held.count_runs, tf_model.versions())
    return trace, _ledgers(counters, lambda: held)


def choose_counters(framework, name):
    """The counter of this name, or every counter of the framework that runs here and compiles nothing."""
    from reconcile.core.registry import known_counters

    able = [
        counter
        for counter in known_counters().values()
        if counter.framework == framework and not (counter.recipe or counter.requirements or counter.quoted)
    ]
    if name:
        return [next(counter for counter in able if counter.name == name)]
    return [counter for counter in able if counter.name not in COMPILE]


def _ledgers(counters, make):
    found = []
    for counter in counters:
        module = importlib.import_module(f"{counter.module}.capture")
        try:
            found.append(module.capture(counter.name, make()))
        except Exception as error:  # a counter that runs only when asked for may refuse a case in its own words
            refused = isinstance(error, BeyondCounter) and not counter.default
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            found.append(
                Missing(counter.name, counter.framework, State.NOT_COMPARABLE if refused else State.FAILED, reason)
            )
    return found


def examine(trace, ledgers):
    """Everything that is not as it should be, under two conventions."""
    problems, failed = [], {}
    for convention in (conventions.MATMUL, conventions.TEXTBOOK):
        books = books_of(gather_facts([trace], ledgers, Alignment([])), conventions.Conventions(convention))
        if not books.traces[0].complete:
            return {"problems": [books.traces[0].reason], "failed": {}, "totals": {}, "notes": list(trace.notes)}
        for statement, ledger in zip(books.statements, books.ledgers, strict=True):
            if ledger.state is State.FAILED:
                failed[ledger.counter] = ledger.reason
            elif statement.residual or statement.residuals or ledger.unchecked or ledger.mismatches:
                problems.append(f"{convention.name} {statement.from_}: {statement.residual} {statement.reason}")
    return {"problems": problems, "failed": failed, "totals": dict(books.traces[0].totals), "notes": list(trace.notes)}


def examined(cases, framework, counters):
    """Every case of a file."""
    spec = importlib.util.spec_from_file_location("cases", Path(__file__).parent / f"{cases}_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    capture = {"torch": capture_torch, "tf": capture_tf}[framework]
    names = keras_model.names()
    found = {}
    for name, (make, *spec) in module.CASES.items():
        build = make if cases == "torch" else functools.partial(make, spec[0])
        inputs = spec if cases == "torch" else [tuple(spec)]
        try:
            found[name] = examine(*capture(OneModel(framework, build, inputs, names), counters))
        except Exception as error:
            found[name] = {"problems": [f"{type(error).__name__}: {error}"], "failed": {}, "totals": {}, "notes": []}
    return found


def main(framework, name=""):
    warnings.simplefilter("ignore")
    counters = choose_counters(framework, name)
    found = {cases: examined(cases, framework, counters) for cases in (framework, "keras")}
    print(json.dumps({framework: found[framework], f"keras_{framework}": found["keras"]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
