"""The cases by hand are what the installed counters' own functions say; fvcore's handles take nodes of a trace, tests/layers
runs those.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.adapters.counters.test_rules import FAMILIES

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("framework", "families"), [("tf", {"tf.profiler"}), ("torch", {"thop", "flop_counter"})])
def test_cases_are_what_the_counters_functions_say(framework: str, families: set[str]) -> None:
    command = [sys.executable, "-m", "tests.adapters.counters.real", framework]
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert set(said) == families
    for family, counted in said.items():
        releases, cases = FAMILIES[family]
        # PyTorch's is the installed one: rules have read later releases than the lock has.
        release = version("torch").partition("+")[0] if family == "flop_counter" else releases[-1]
        numbers = [number for number, case in enumerate(cases) if release in case.releases]
        assert [number for number, _ in counted] == numbers
        off = [
            (cases[number].op.op, cases[number].op.attrs, cases[number].total, value)
            for number, value in counted
            if (value or 0) != cases[number].total
        ]
        assert off == []
