"""Help, messages and docstrings are written for a reader in a hurry: some words of an older style never come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLD = re.compile(r"\b(nobody|somebody|whoever|so many)\b", re.IGNORECASE)


def old_words(text: str) -> list[str]:
    """The old words of a text, also those that a line break parts."""
    return OLD.findall(" ".join(re.sub(r'["#]', " ", text).split()))


@pytest.mark.parametrize("folder", ["reconcile", "adapters", "model_zoo"])
def test_no_docstring_comment_or_string_has_an_old_word(folder: str) -> None:
    found = {str(path): old_words(path.read_text(encoding="utf-8")) for path in (ROOT / folder).rglob("*.py")}
    assert len(found) > 40
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize("text", ["Whoever runs it", "what nobody\nsaid", 'so "\n    "many', "so\n# many of them"])
def test_the_scan_sees_an_old_word(text: str) -> None:
    assert len(old_words(text)) == 1
