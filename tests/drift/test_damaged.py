"""Damaged baselines: whatever stands in the file is read, compared or refused in a sentence, and is never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError, short
from reconcile.core.user_files import MAX_DEPTH, Unsound, parse_json
from reconcile.drift import baselines
from reconcile.drift.check import compare_files
from reconcile.launch.request import RunRequest
from tests.drift.takes import put, take

GOOD = json.loads(baselines.dumps(take()))


CONV = ("ledgers", 0, "sightings", 0, "op", "attrs")
READ = {
    "no version": (put("ledgers", 0, "versions", "thop", value="odd"), "depend on the version of thop, and 'odd' is not"),
    "an attribute that is gone": (put(*CONV, value={}), "does not fit torch.nn.modules.conv.Conv2d 'conv#0' as it is recorded"),
    "an attribute of another kind": (put(*CONV, "groups", value=0), "as it is recorded: ZeroDivisionError"),
    "an attribute beyond print": (put(*CONV, "weight", value=[1] + [10**50] * 90), "must be at least 0 and have at most 1,000"),
}  # fmt: skip
"""What is of the right form, and what a rule of a counter cannot read."""


@pytest.mark.parametrize("name", READ)
def test_what_a_rule_cannot_read_is_a_sentence(tmp_path: Path, name: str) -> None:
    text, words = READ[name]
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(json.dumps(GOOD))
    with pytest.raises(UsageError) as error:
        compare_files(tmp_path / "a.json", tmp_path / "b.json", RunRequest())
    assert words in str(error.value)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain.json", tmp_path / "marked.json"
    plain.write_text(json.dumps(GOOD))
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert baselines.load(marked) == baselines.load(plain)


@pytest.mark.parametrize(
    "text", ['{"a": 1e400}', '{"a": -Infinity}', "[NaN]", '"\\ud83d\\ude00"', "[" * MAX_DEPTH + "]" * MAX_DEPTH]
)
def test_what_json_of_ours_may_hold(text: str) -> None:
    parse_json(text)


@pytest.mark.parametrize(
    "text", ["", "{", "nul", "'a'", "[1,]", '{"a" 1}', "\0", "1" * 101, "-" + "1" * 101, '["\\udc00"]']
)
def test_what_is_no_json_of_ours(text: str) -> None:
    with pytest.raises(Unsound):
        parse_json(text)


def test_values_in_a_sentence() -> None:
    assert short("x") == "'x'"
    assert short("x" * 99) == f"'{'x' * 58}…"
    assert short(10**5000) == "a value of type int"
