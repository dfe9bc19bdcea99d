"""The programs of `reconcile counter reproduce` for counters with their own environment: each runs there and shows a bug."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reconcile.core.registry import known_counters
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from reconcile.launch.environments.runs import collect_in
from reconcile.products.authors import reproduce
from tests.pages.reading import THERE as FENCE
from tests.pages.reading import numbers, programs, value
from tests.zoo.bugs import THERE

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]


@pytest.mark.parametrize(("counter", "case"), THERE)
def test_a_program_shows_a_bug_in_the_counters_environment(counter: str, case: str, tmp_path: Path) -> None:
    reported, ran, names = THERE[counter, case]
    environment = load()[known_counters()[counter].family]
    there = collect_in(environment, lambda _text: None)
    code = reproduce.program(counter, case, lambda request: there(request, lambda _event: None))
    assert "reconcile" not in code
    assert names in " ".join(code.replace("\n#", "").split())
    file = tmp_path / "program.py"
    file.write_text(code)
    done = subprocess.run([ensure(environment), str(file)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.splitlines()[-2:] == [f"reported {reported}", f"expected {ran}"], done.stderr[-2000:]


PAGE = Path(__file__).parents[3] / "docs" / "bugs.md"


@pytest.mark.parametrize(("number", "counter"), [(0, "torch_flops"), (1, "pthflops")])
def test_a_bug_without_a_product_shows_there(number: int, counter: str, tmp_path: Path) -> None:
    """docs/bugs.md: what a program prints is its closed form, and its last line stops with the words beside it."""
    code = programs(PAGE.read_text(), FENCE)[number]
    done = subprocess.run(
        [ensure(load()[counter]), "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    printed = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    assert printed == [value(form) for _, form in numbers(code)] == [found for found, _ in numbers(code)]
    assert code.rstrip().rpartition("  # ")[2] in done.stdout + done.stderr
    assert done.returncode == 1


STARTED_AGAIN = """\
import torch
from deepspeed.profiling.flops_profiler import FlopsProfiler

net, x = torch.nn.Linear(3, 4), torch.ones(2, 3)
profiler = FlopsProfiler(net)
for _ in range(3):
    profiler.start_profile()
    net(x)
    profiler.stop_profile()
    print(profiler.get_total_flops())
"""


def test_deepspeeds_count_no_longer_grows_with_each_start(tmp_path: Path) -> None:
    """It did in 0.6.5 (DeepSpeed#2292): a linear layer of 3 x 4 weights, on 2 rows."""
    command = [ensure(load()["deepspeed"]), "-c", STARTED_AGAIN]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.splitlines()[-3:] == [str(2 * 2 * 3 * 4)] * 3, done.stderr[-2000:]
