"""The list of steps that a newcomer reads first: it names what is there, and the documents lead to it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from reconcile import workflow

PACKAGE = Path(workflow.__file__).resolve().parent
ROOT = PACKAGE.parent
TABLE = re.search(r"^=+ +=+$\n(.*?)^=+ +=+$", workflow.__doc__ or "", re.MULTILINE | re.DOTALL)


def functions(file: Path) -> set[str]:
    """The functions that a file defines at its top."""
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


def missing(table: str) -> list[str]:
    """The functions that the table names and that are not in the file that it names next."""
    lost = []
    for text, name in re.findall(r"(.*?)\((\w+/\w+\.py)\)", table, re.DOTALL):
        there = functions(PACKAGE / name)
        steps = {step.__name__ for step in workflow.STEPS}
        lost += [f"{name}: {each}" for each in re.findall(r"``(\w+)``", text) if each not in {*there, *steps, "Answer"}]
    return lost


def test_the_table_lists_the_steps_in_their_order() -> None:
    assert TABLE is not None
    first = [line.split()[0].strip("`") for line in TABLE[1].splitlines() if line and not line.startswith(" ")]
    assert first == ["read", *(step.__name__ for step in workflow.STEPS), "render"]


def test_what_the_table_names_is_there() -> None:
    assert TABLE is not None
    assert len(re.findall(r"\w+/\w+\.py", TABLE[1])) > len(workflow.STEPS)
    assert missing(TABLE[1]) == []
    assert missing("gone     a step: ``no_such_function`` (launch/choose.py)") == ["launch/choose.py: no_such_function"]


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_the_documents_lead_to_it(document: str) -> None:
    assert "reconcile/workflow.py" in (ROOT / document).read_text()
