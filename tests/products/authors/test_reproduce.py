"""The programs of `reconcile counter reproduce`: each runs alone and prints the counter's number and the closed form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconcile.core.conventions import MATMUL, Conventions
from reconcile.core.counter import Counter
from reconcile.core.errors import UsageError
from reconcile.core.records import MAC
from reconcile.core.registry import known_counters
from reconcile.engine.settle import settle
from reconcile.launch.request import run_request
from reconcile.launch.runner import collect
from reconcile.products.authors import reproduce
from reconcile.products.authors.conform import families
from reconcile.work import load
from tests.zoo.bugs import CHEAP, HERE
from tests.zoo.family_forms import BRICKS, macs

load()
RUN = Path(__file__).parents[2] / "pages" / "programs.py"


def printed(programs: dict[str, str], folder: Path) -> dict[str, list[str]]:
    """The last two lines that each program prints, after what the counter says; the programs share a process, which has no path
    to this repository but for the runner."""
    files = {}
    for index, (name, code) in enumerate(programs.items()):
        files[name] = str(folder / f"program{index}.py")
        Path(files[name]).write_text(code + "del net\n")  # no model is left to the runner
    request, result = folder / "request.json", folder / "result.json"
    request.write_text(json.dumps(files))
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(RUN), str(request), str(result)], capture_output=True, text=True, cwd=folder, env=env
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(result.read_text())
    return {name: outcome.get("printed", [outcome.get("failed", "")])[-2:] for name, outcome in outcomes.items()}


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("counter", "case"),
    [pytest.param(*bug, marks=pytest.mark.slow if bug in CHEAP else pytest.mark.heavy) for bug in HERE],
)
def test_a_bug_on_record_is_shown_by_the_counter_alone(counter: str, case: str, tmp_path: Path) -> None:
    reported, expected, says = HERE[counter, case]
    code = reproduce.program(counter, case)
    assert "reconcile" not in code
    assert says in " ".join(code.replace("\n#", "").split())
    assert printed({case: code}, tmp_path)[case] == [f"reported {reported}", f"expected {expected}"]


@pytest.mark.parametrize(
    ("counter", "case", "sentence"),
    [
        ("thop", "family_dense", "names no layer"),
        ("thop", "family_dens:dense", "Did you mean family_dense"),
        ("thop", "family_dense:dens", "Did you mean dense"),
        ("tf.profiler@session", "family_dense:dense", "has no program that runs it alone"),
    ],
)
def test_bad_input_gets_a_sentence(counter: str, case: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        reproduce.program(counter, case)


@pytest.mark.frameworks
@pytest.mark.slow
def test_an_exact_count_has_no_program() -> None:
    with pytest.raises(UsageError, match=r"counts family_dense:dense as it ran, 70 MACs"):
        reproduce.program("thop", "family_dense:dense")  # 2 samples, 7 inputs, 5 units


IN_ZOO = ("family_dense",)
"""Families whose programs `make slow` runs: one, and `make programs` runs all."""


def runs_everywhere() -> list[str]:
    """The counters that have a program and need no environment of their own."""
    found = []
    for name, counter in known_counters().items():
        try:
            reproduce.template_of(counter)
        except UsageError:
            continue
        if not counter.recipe and not counter.requirements:
            found.append(name)
    return found


def expected(counter: Counter, layer: str) -> int:
    """The closed form, in the counter's unit."""
    tf, torch = macs(layer, BRICKS[layer].shape)
    return 2 * (tf if counter.framework == "tf" else torch) * (1 if counter.unit == MAC else 2)


@pytest.mark.parametrize(
    "family",
    [pytest.param(family, marks=pytest.mark.slow if family in IN_ZOO else pytest.mark.heavy) for family in families()],
)
@pytest.mark.parametrize("name", runs_everywhere())
def test_every_program_prints_the_ledgers_and_the_closed_number(name: str, family: str, tmp_path: Path) -> None:
    counter = known_counters()[name]
    result = settle(collect(run_request(model=family, counters=(name,))), Conventions(MATMUL))
    if [ledger for ledger in result.ledgers if ledger.total is None]:  # it stops on this family, and says why
        assert result.ledgers[0].reason
        return
    layers = {row.layer: row.counters[name] // (2 if counter.unit == MAC else 1) for row in result.layers}
    cases = [brick.name for brick in reproduce.one.bricks(family)]
    lines = reproduce.layer_source_lines([f"{family}:{layer}" for layer in cases], counter.framework)
    template = reproduce.template_of(counter)
    programs = {}
    for layer, made in zip(cases, lines, strict=True):
        shown = reproduce.layer_result(result, name, layers.get(layer, 0), layer)
        programs[layer] = reproduce.write_program(f"{family}:{layer}", shown, template, made)
    wanted = {layer: [f"reported {layers.get(layer, 0)}", f"expected {expected(counter, layer)}"] for layer in programs}
    prints = printed(programs, tmp_path)
    for layer in programs:
        if (
            prints[layer] != wanted[layer]
        ):  # one whose number depends on the whole model, such as an average over the batch
            wanted[layer][0] = f"reported {reproduce.run_alone(counter, f'{family}:{layer}').reported}"
    assert {layer: (prints[layer], wanted[layer]) for layer in programs if prints[layer] != wanted[layer]} == {}
