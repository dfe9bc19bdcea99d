"""Layers and snippets that nothing was tuned to: every counter's ledger reconciles with the work that ran, residual 0.

What is known not to is listed here with its reason, and an entry that no longer holds fails (strict).
"""

from __future__ import annotations

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
    ("torch", "mv"): {"fvcore": "IndexError"},  # jit_handles.py:222 on a vector
}


BACKENDS = {"tf": "tensorflow", "torch": "torch"}


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


def judge(found, known, failing):
    """Hold every case against what is known not to reconcile, and which counter is known to fail."""
    cases = {(group, name): result for group in found for name, result in found[group].items()}
    off = {case: result["problems"] for case, result in cases.items() if result["problems"]}
    assert set(off) == set(known), off
    assert [case for case, said in known.items() if not any(p.startswith(said) for p in off[case])] == []
    failed = {case: result["failed"] for case, result in cases.items() if result["failed"]}
    assert {case: set(counters) for case, counters in failed.items()} == {c: set(said) for c, said in failing.items()}
    assert [case for case, said in failing.items() for n in said if said[n] not in failed[case][n]] == []
    assert [case for case, result in cases.items() if not result["totals"] and case not in known] == []


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_every_case_reconciles_where_inductor_counts_what_it_compiled():
    judge(examine_cases(["torch", "inductor"]), {}, {})


def test_every_case_reconciles():
    """With the counters that compile nothing."""
    found = examine_cases(["tf"], ["torch"])
    assert set(found) == {"tf", "torch", "keras_tf", "keras_torch"}
    judge(found, KNOWN, FAILS)
