"""The source lines that pages and rules cite are there, in the packages as they are pinned, and are no blank lines."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from reconcile.core.registry import known_counters
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from reconcile.pages import names, page
from tests.zoo.choice import REPORTED

pytestmark = pytest.mark.frameworks

ELSEWHERE = {"formula"}
"""Cites repositories at a commit, papers, and no installed package."""
COUNTERS = [name for name, kind in names().items() if kind == "counters" and name not in ELSEWHERE]
OWN = {name for c in known_counters().values() if c.requirements for name in (c.name, c.family)}
"""Counters whose packages are in an environment of their own."""
CITED = re.compile(r"([\w/]+\.py):(\d+)")


@cache
def lines(file: str) -> list[str]:
    """The lines of a file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(file.partition("/")[0])
    assert spec is not None
    assert spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]).parent / file).read_text().splitlines()


@pytest.mark.skipif(not REPORTED, reason="this Python has other releases than those whose lines are cited")
@pytest.mark.parametrize("name", [name for name in COUNTERS if name not in OWN])
def test_every_cited_line_is_there(name: str) -> None:
    check(name, lines)


@pytest.mark.matrix
@pytest.mark.parametrize("name", sorted(OWN))
def test_every_cited_line_is_in_the_counters_environment(name: str) -> None:
    (site,) = ensure(load()[name.partition("@")[0]]).parents[1].glob("lib/python*/site-packages")
    check(name, lambda file: (site / file).read_text().splitlines())


def check(name: str, lines: Callable[[str], list[str]]) -> None:
    """Every line that the page cites, or a rule, is in its file and has text."""
    found = page(name)
    known = {rule.source for rule in found.rules}
    cited = CITED.findall(found.text)
    full = {Path(file).name: file for file, _ in [*cited, *CITED.findall(" ".join(known))] if "/" in file}
    for file, number in [*cited, *(c for source in known for c in CITED.findall(source) if " (" not in source)]:
        where = full.get(Path(file).name, file)
        assert lines(where)[int(number) - 1].strip(), f"{where}:{number} is blank"
