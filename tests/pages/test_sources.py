"""The source lines that pages and rules cite are there, in the packages as they are pinned, and are no blank lines."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from reconcile.pages import names, page

pytestmark = pytest.mark.frameworks

COUNTERS = [name for name, kind in names().items() if kind == "counters"]
CITED = re.compile(r"([\w/]+\.py):(\d+)")


@cache
def lines(file: str) -> list[str]:
    """The lines of a file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(file.partition("/")[0])
    assert spec is not None
    assert spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]).parent / file).read_text().splitlines()


@pytest.mark.parametrize("name", COUNTERS)
def test_every_cited_line_is_there(name: str) -> None:
    found = page(name)
    known = {rule.source for rule in found.rules}
    cited = CITED.findall(found.text)
    full = {Path(file).name: file for file, _ in [*cited, *CITED.findall(" ".join(known))] if "/" in file}
    for file, number in [*cited, *(c for source in known for c in CITED.findall(source) if " (" not in source)]:
        where = full.get(Path(file).name, file)
        assert lines(where)[int(number) - 1].strip(), f"{where}:{number} is blank"


def test_a_blank_line_is_seen() -> None:
    blank = next(i for i, line in enumerate(lines("thop/profile.py"), 1) if not line.strip())
    assert not lines("thop/profile.py")[blank - 1].strip()
