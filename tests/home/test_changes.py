"""A change touches as few files as CONTRIBUTING.md says: each is made in a copy of the repository, and the files that differ are
counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.home.modules import ROOT
from tests.home.test_changes_options import Copy

pytestmark = pytest.mark.text

COPIED = ("reconcile", "adapters", "model_zoo", "docs")
CAUSE, BEFORE = "bias-read-twice", "non-mac-doubled"
CONVENTION = "products"
MEANING = "The formula counts a bias twice; its layer reads it once."
RECORD = f"""    BIAS_READ_TWICE = CauseRecord(
        "{CAUSE}", "{MEANING}", Setting.FORMULA
    )
"""
WEIGHTS = """PRODUCTS = Convention("products", mac=1, mul=1, meaning="Every multiplication at 1.")
"""
PAGE = """A formula that adds every bias to its layer and to its sum counts it twice.

## See it

```python
print(2 * 3 - 3)  # 3 = 2 * 3 - 3
```

## How to avoid it

Add it once.

## Where users met it

Nowhere: it belongs to a test.
"""
PROBE = """
import json, sys
from dataclasses import replace

import jsonschema
from click.testing import CliRunner

from docs.write import main
from reconcile.cli import cli
from reconcile.core.causes import Cause
from reconcile.report.json import to_json
from reconcile.report.schema import schema
from tests.adapters.counters.test_lies import find_untested_causes
from tests.report import samples

main()
name, convention = sys.argv[1:]
answer = samples.full()
number, statement = next((i, s) for i, s in enumerate(answer.statements) if s.adjustments)
line = replace(statement.adjustments[0], cause=Cause(name))
booked = replace(statement, adjustments=(line, *statement.adjustments[1:]))
report = json.loads(to_json(replace(answer, statements=(*answer.statements[:number], booked, *answer.statements[number + 1 :]))))
jsonschema.validate(report, schema())
print(json.dumps({
    "convention": CliRunner().invoke(cli, ["explain", convention]).output,
    "page": CliRunner().invoke(cli, ["explain", name]).output,
    "list": CliRunner().invoke(cli, ["explain", "causes"]).output,
    "schema": schema()["$defs"]["cause"]["enum"],
    "booked": report["statements"][number]["adjustments"][0]["cause"],
    "untested": find_untested_causes(),
}))
"""


def read_files(tree: Path) -> dict[str, str]:
    """Every file of a copy."""
    texts = {}
    for folder in COPIED:
        for path in (tree / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                text = path.read_bytes().decode(errors="replace")
                texts[path.relative_to(tree).as_posix()] = text
    return texts


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A cause and a convention are added to a copy: the files that changed, and what the copy then says of them."""
    pytest.importorskip("numpy")  # the probe imports tests that need it
    tree = Copy(tmp_path_factory.mktemp("changes") / "tree", COPIED)
    before = read_files(tree.folder)
    place = f"    {BEFORE.upper().replace('-', '_')} = CauseRecord("
    tree.replace("reconcile/core/causes.py", place, RECORD + place)
    conventions = "reconcile/core/conventions.py"
    tree.replace(conventions, "BUILT_IN = {", WEIGHTS + "BUILT_IN = {")
    end = "CAUSAL.name: CAUSAL}"
    tree.replace(conventions, end, end[:-1] + ", PRODUCTS.name: PRODUCTS}")
    tree.write(f"reconcile/pages/causes/{CAUSE}.md", PAGE)
    tree.write(f"reconcile/pages/conventions/{CONVENTION}.md", PAGE)
    found = json.loads(tree.run("-c", PROBE, CAUSE, CONVENTION, paths=(ROOT,)))  # the tests are those of the repository
    after = read_files(tree.folder)
    touched = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return {"touched": touched, **found}


def test_a_cause_is_two_files_and_two_generated_ones(changed: dict[str, Any]) -> None:
    by_hand = {"reconcile/core/causes.py", f"reconcile/pages/causes/{CAUSE}.md"}
    touched = {path for path in changed["touched"] if "convention" not in path}
    assert touched == {*by_hand, "docs/causes/README.md", f"docs/causes/{CAUSE}.md"}


def test_a_convention_is_two_files_and_two_generated_ones(changed: dict[str, Any]) -> None:
    by_hand = {"reconcile/core/conventions.py", f"reconcile/pages/conventions/{CONVENTION}.md"}
    touched = {path for path in changed["touched"] if "cause" not in path}
    assert touched == {*by_hand, "docs/conventions/README.md", f"docs/conventions/{CONVENTION}.md"}
    assert "Weights: mac 1, mul 1; all others 0." in changed["convention"]


def test_a_new_cause_is_known_in_its_place(changed: dict[str, Any]) -> None:
    assert MEANING in " ".join(changed["page"].split())
    listed = [line.split()[0] for line in changed["list"].splitlines() if line and not line.startswith(" ")]
    for names in (listed, changed["schema"]):
        assert names.index(CAUSE) + 1 == names.index(BEFORE)


def test_a_statement_with_a_new_cause_meets_the_schema(changed: dict[str, Any]) -> None:
    assert changed["booked"] == CAUSE


def test_a_new_cause_without_a_test_is_named(changed: dict[str, Any]) -> None:
    assert changed["untested"] == [CAUSE]
