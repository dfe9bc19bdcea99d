"""Tables of small models: what a line says, and which lines are refused."""

from __future__ import annotations

import re

import pytest
import torch

from reconcile.products.sweep.small_models import diffusers, table, transformers
from reconcile.products.sweep.small_models.table import Row, load, make_input, match_sequences, parse

pytestmark = pytest.mark.frameworks
HEAD = '{"library": "nets", "release": "1.2"}\n'


def test_a_line_is_a_class() -> None:
    text = HEAD + '{"class": "Net", "configuration": {"layers": 2}, "inputs": {"x": {"shape": [1, 3]}}}\n'
    assert parse(text, "nets.jsonl") == table.Table(
        "nets", "1.2", {"Net": Row({"layers": 2}, {"x": {"shape": [1, 3]}})}
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "Expecting property name"),
        ('{"configuration": {}, "inputs": {}}', "class"),
        ('{"class": "Net", "configuration": {}}', "inputs"),
        ('{"class": "Net", "configuration": {}, "inputs": {}, "outputs": {}}', "outputs"),
        ('{"class": "Net", "configuration": {}, "inputs": {"x": {"value": 1}}}', "a tensor has a shape"),
        ('{"class": "Net", "configuration": {}, "inputs": {"x": [{"shape": [1], "device": "meta"}]}}', "device"),
        ('{"class": "Net", "configuration": {}, "inputs": {"x": {"shape": [2, 2], "runs": [[0, 3, 1]]}}}', "do not fill"),
    ],
)  # fmt: skip
def test_a_malformed_line_is_refused(line: str, why: str) -> None:
    first = '{"class": "First", "configuration": {}, "inputs": {}}\n'
    with pytest.raises(ValueError, match=f"^nets.jsonl, line 3: .*{re.escape(why)}"):
        parse(HEAD + first + line, "nets.jsonl")


def test_an_input_is_numbers_or_itself() -> None:
    runs = make_input({"shape": [2, 3], "runs": [[7, 3, 1], [99, 2, 0], [5, 1, 0]]})
    assert (runs.dtype, runs.tolist()) == (torch.int64, [[7, 8, 9], [99, 99, 5]])
    for value, dtype in ((1, torch.int64), (True, torch.bool), (0.5, torch.float32)):
        made = make_input({"shape": [1, 2], "value": value})
        assert (made.dtype, made.tolist()) == (dtype, [[value, value]])
    assert make_input({"shape": [1], "value": 1, "dtype": "int32"}).dtype == torch.int32
    one, same = make_input({"shape": [2, 5]}), make_input({"shape": [2, 5]})
    assert (one.dtype, tuple(one.shape), torch.equal(one, same)) == (torch.float32, (2, 5), True)
    assert len(set(one.flatten().tolist())) == 10
    assert make_input([[1, 4], {"shape": [1], "value": 2}, None]) == [[1, 4], torch.tensor([2]), None]


def test_a_sequence_is_what_the_default_is() -> None:
    assert match_sequences([1, [2, 3], [4]], (0, (1, 1))) == (1, (2, 3), [4])
    assert match_sequences([1], [0]) == match_sequences([1], None) == [1]
    assert match_sequences({"a": [1]}, ()) == {"a": [1]}


@pytest.mark.parametrize("library", ["transformers", "diffusers"])
def test_every_row_is_read(library: str) -> None:
    """In the order of names; each input is a value, or a tensor of the shape that its row gives."""
    found = load(library)
    assert found.library == library
    assert list(found.rows) == sorted(found.rows)
    assert len(found.rows) > 90
    for row in found.rows.values():
        for value in row.inputs.values():
            if isinstance(value, dict):
                assert list(make_input(value).shape) == value["shape"]


def test_each_library_has_a_module() -> None:
    assert transformers.SmallModel.library == "transformers"
    assert diffusers.SmallModel.library == "diffusers"
