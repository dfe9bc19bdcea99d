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
