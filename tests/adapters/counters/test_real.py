"""The cases by hand are what the installed counters' own functions say; fvcore's handles take nodes of a trace, tests/layers
runs those.
"""

from __future__ import annotations

from importlib.metadata import version

import pytest

from tests.adapters.counters import real
from tests.adapters.counters.test_rules import FAMILIES

pytestmark = pytest.mark.frameworks


@pytest.mark.filterwarnings("ignore:distutils Version classes", "ignore:This API is being deprecated")  # thop's own
@pytest.mark.parametrize("family", ["tf.profiler", "thop", "flop_counter"])
def test_cases_are_what_the_counters_functions_say(family: str) -> None:
    if family == "tf.profiler":
        pytest.importorskip("tensorflow")
        counted = list(real.tf_profiler())
    else:
        pytest.importorskip("torch")
        counted = list(real.flop_counter() if family == "flop_counter" else real.thop())
    releases, cases = FAMILIES[family]
    # PyTorch's is the installed one: rules have read later releases than the lock has.
    release = version("torch").partition("+")[0] if family == "flop_counter" else releases[-1]
    assert [number for number, _ in counted] == [
        number for number, case in enumerate(cases) if release in case.releases
    ]
    off = [
        (cases[number].op.op, cases[number].op.attrs, cases[number].total, value)
        for number, value in counted
        if (value or 0) != cases[number].total
    ]
    assert off == []
