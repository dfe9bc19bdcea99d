"""Layers and snippets that nothing was tuned to: every counter's ledger reconciles with the work that ran, residual 0.

What is known not to is listed here with its reason, and an entry that no longer holds fails (strict).
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

HERE = Path(__file__).parent

KNOWN = {
    ("tf", "condin"): "the trace is incomplete: StatelessIf",  # another branch in every iteration
}

FAILS = {
    ("torch", "mv"): {"fvcore": "fvcore: IndexError"},  # jit_handles.py:222 on a vector
}


BACKENDS = {"tf": "tensorflow", "torch": "torch"}
GROUPS = ("tf", "torch", "keras_tf", "keras_torch")


def cases(group):
    """Names of the cases, read without importing a framework."""
    tree = ast.parse((HERE / f"{group.partition('_')[0]}_cases.py").read_text())
    table = next(n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "CASES")
    names = []
    for key, value in zip(table.keys, table.values, strict=True):
        if key is not None:
            names.append(key.value)
        else:  # a comprehension over a list of names
            names.extend(n.value for n in value.generators[0].iter.elts)
    return names


def examine_cases(*runs):
    """The cases of a framework and Keras' on it, of each of these words of reconcile_cases.py, in processes side by side."""
    env = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "TF_CPP_MIN_LOG_LEVEL": "3"}
    running = [
        subprocess.Popen(
            [sys.executable, str(HERE / "reconcile_cases.py"), *words],
            env={**env, "KERAS_BACKEND": BACKENDS[words[0]]},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in runs
    ]
    found = {}
    for process in running:
        out, err = process.communicate()
        assert process.returncode == 0, err[-3000:]
        found.update(json.loads(out.splitlines()[-1]))
    return found


@pytest.fixture(scope="module")
def examined():
    """Both frameworks' cases, with the counters that compile nothing."""
    return examine_cases(["tf"], ["torch"])


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_every_case_reconciles_where_inductor_counts_what_it_compiled():
    found = examine_cases(["torch", "inductor"])
    assert {
        (group, name): result["problems"]
        for group in found
        for name, result in found[group].items()
        if result["problems"]
    } == {}
    assert [(group, name) for group in found for name, result in found[group].items() if result["failed"]] == []


@pytest.mark.parametrize(("framework", "name"), [(f, n) for f in GROUPS for n in cases(f)])
def test_case_reconciles(examined, framework, name):
    result = examined[framework][name]
    known = KNOWN.get((framework, name))
    if known is None:
        assert result["problems"] == []
        assert result["totals"]
    else:
        assert [problem for problem in result["problems"] if problem.startswith(known)], result["problems"]
    expected = FAILS.get((framework, name), {})
    assert set(result["failed"]) == set(expected)
    for counter, said in expected.items():
        assert said.partition(": ")[2] in result["failed"][counter]
