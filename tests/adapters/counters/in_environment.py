"""A counter itself, in the environment that it needs, on one of our small networks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import reconcile
from reconcile.cli import cli
from reconcile.core.causes import Cause
from reconcile.core.results import LedgerResult, Statement
from reconcile.launch.environments.definitions import Environment, load
from reconcile.launch.environments.provision import ensure
from reconcile.launch.request import RunRequest
from reconcile.workflow import run


def explained(counter: str, net: Any, inputs: Any, convention: str = "matmul") -> tuple[int, dict[Cause, int]]:
    """The total that a counter of this environment reports, as its rules say, and the amounts of a closed statement by cause."""
    result = reconcile.run(torch=net, inputs=inputs, counters=(counter,), convention=convention).result
    (ledger,), (statement,) = result.ledgers, result.statements
    assert (ledger.mismatches, ledger.unchecked) == ((), 0)
    assert ([(r.layer, r.reason) for r in statement.residuals], statement.residual) == ([], 0)
    assert ledger.total is not None
    return ledger.total, statement.by_cause()


def settled(environment: str, counter: str, factory: str) -> tuple[LedgerResult, Statement]:
    """What the counter reports of ``package.module:function``, and the statement that leads to what ran."""
    result = reconcile.run(torch=factory, python=str(ensure(load()[environment])), counters=(counter,)).result
    (ledger,), (statement,) = result.ledgers, result.statements
    return ledger, statement


def settled_pair(environment: str, counter: str, model: str, **overrides: str) -> tuple[LedgerResult, Statement]:
    """What the counter reports of a pair of the zoo there, as its rules say, and the statement that leaves nothing open."""
    python = str(ensure(load()[environment]))
    result = run(RunRequest(model, overrides, counters=(counter,), python=python))
    (ledger,), (statement,) = result.ledgers, result.statements
    assert (ledger.mismatches, ledger.unchecked, statement.residual) == ((), 0, 0), ledger.reason
    return ledger, statement


def closes(environment: str, counter: str, factory: str, held: tuple[int, int, set[Cause]]) -> Statement:
    """The statement of a counter that reports what is ``held`` of it, as its rules say: these causes lead from there to the FLOPs
    that ran. An assertion fails if not."""
    reported, ran, causes = held
    ledger, statement = settled(environment, counter, factory)
    assert (ledger.total, ledger.mismatches, ledger.unchecked) == (reported, (), 0), ledger.reason
    assert (statement.to_total, statement.residual) == (ran, 0)
    assert {line.cause for line in statement.adjustments} == causes
    return statement


def invoked(counter: str, folder: Path, *words: str) -> Result:
    """``reconcile run`` of a counter alone in the environment of its name, which writes into ``folder``."""
    options = ["--counter", counter, "--environment", counter, "--out", str(folder / "out")]
    return CliRunner().invoke(cli, ["run", *words, *options])


def report_of(counter: str, folder: Path, *words: str) -> dict[str, Any]:
    """The JSON report of such a run, which has no residual."""
    done = invoked(counter, folder, *words)
    assert done.exit_code == 0, done.output
    (file,) = (folder / "out").glob("*.json")
    report: dict[str, Any] = json.loads(file.read_text())
    (ledger,) = report["ledgers"]
    assert (ledger["mismatches"], ledger["unchecked"]) == ([], 0)
    assert [statement["residual"] for statement in report["statements"]] == [0]
    return report


def values_of(environment: str | Environment, program: str, cases: Sequence[object]) -> list[Any]:
    """What a program there prints of these cases, which it reads as JSON: a line of JSON for each."""
    python = str(ensure(load()[environment] if isinstance(environment, str) else environment))
    done = subprocess.run([python, "-c", program], input=json.dumps(cases), capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(cases), done.stderr[-2000:]
    return found


def save_onnx(
    path: Path, nodes: Sequence[Any], shapes: Mapping[str, list[Any]], held: Mapping[str, Any], opset: int = 17
) -> str:
    """The path of a model of these nodes from ``x`` to ``y``, with these constants: arrays, or shapes of ones."""
    import numpy
    import onnx
    from onnx import helper, numpy_helper

    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shapes[name]) for name in "xy")
    arrays = {name: numpy.ones(value, "float32") if isinstance(value, tuple) else value for name, value in held.items()}
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), str(path))
    return str(path)
