"""Another author's counter: a package that registers itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.registry import known_counters

from .installing import installed_as, reconcile

PACKAGE = Path(__file__).parent / "tiny_counter"
POINT = "[reconcile.counters]\ntiny = reconcile_tiny:COUNTERS\n"
DENSE = 96 * 256
"""Weights of gru_demo's last layer."""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return installed_as(tmp_path / "site", PACKAGE, "reconcile_tiny", POINT)


def ledgers(folder: Path, model: str) -> dict[str, dict[str, object]]:
    return {x["counter"]: x for x in json.loads((folder / "out" / f"{model}.json").read_text())["ledgers"]}


def test_it_is_listed_and_has_a_page(installed: Path, tmp_path: Path) -> None:
    done = reconcile(installed, tmp_path / "here", "explain", "counters")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^tiny +tiny: Linear and Conv2d \[torch, MAC\]$", done.stdout, re.MULTILINE)
    (installed / "reconcile_tiny" / "tiny.md").write_text("It leaves out biases.")
    done = reconcile(installed, tmp_path / "here", "explain", "tiny")
    assert (done.returncode, done.stderr) == (0, "")
    assert "O in_features, bias left out" in done.stdout
    assert "It leaves out biases." in done.stdout


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("name=", "name='thop' or "), "a counter named thop is already registered"),
        (("name=", "name='a b' or "), "'a b' cannot name a counter"),
        (("blind=", "framework='mxnet', blind="), "tiny counts models of 'mxnet', which is not a framework"),
        (("unit=", "unit='GFLOP' or "), "the unit of tiny is 'GFLOP', and has to be MAC or FLOP"),
        (("blind=", "default=True, blind="), "tiny states default=True"),
        (("COUNTERS = torch_counter", "COUNTERS = str; torch_counter"), "it is neither a Counter nor a tuple of them"),
        (("COUNTERS", "COUNTER"), "it cannot be loaded (AttributeError: "),
    ],
)
def test_one_that_is_wrong_is_refused(
    installed: Path, registered: Callable[[Path], None], change: tuple[str, str], why: str
) -> None:
    file = installed / "reconcile_tiny" / "__init__.py"
    file.write_text(file.read_text().replace(*change))
    registered(installed)
    with pytest.raises(UsageError) as refused:
        known_counters()
    point = "the entry point tiny = reconcile_tiny:COUNTERS (group reconcile.counters)"
    assert str(refused.value).startswith(f"{point} cannot be used: {why}")


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_new_one_runs(tmp_path: Path) -> None:
    """The skeleton that ``reconcile counter new`` writes, installed as it is."""
    here = tmp_path / "here"
    done = reconcile(tmp_path, here, "counter", "new", "mine")
    assert (done.returncode, done.stderr) == (0, "")
    point = re.search(r'^mine = "(.+)"$', (here / "reconcile-mine" / "pyproject.toml").read_text(), re.MULTILINE)
    assert point is not None
    site = installed_as(
        tmp_path / "site", here / "reconcile-mine", "reconcile_mine", f"[reconcile.counters]\nmine = {point[1]}\n"
    )
    done = reconcile(site, here, "run", "--model", "gru_demo", "--counter", "mine", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert ledgers(here, "gru_demo")["mine"]["total"] == 97 * DENSE
    again = reconcile(tmp_path, here, "counter", "new", "mine")
    assert (again.returncode, again.stdout) == (2, "")
    assert "already exists" in again.stderr


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("change", "names"),
    [
        (('source="', 'source="Q:1, '), ("'Q'",)),
        (('source="T:15", ', ""), ("source=''",)),
        (("prod(", "op.attrs['has_bias'] * prod("), ("has_bias", "weight")),
    ],
)
def test_a_mistake_in_its_rules_is_its_authors(
    installed: Path, tmp_path: Path, change: tuple[str, str], names: tuple[str, ...]
) -> None:
    file = installed / "reconcile_tiny" / "rules.py"
    file.write_text(file.read_text().replace(*change))
    done = reconcile(installed, tmp_path / "here", "run", "--model", "gru_demo", "--counter", "tiny")
    assert done.returncode == 2, done.stderr
    missing = [name for name in (f"{file} line ", *names) if name not in done.stderr]
    assert not missing, done.stderr
    assert "defect" not in done.stderr
