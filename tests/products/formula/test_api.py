"""``reconcile.polynomials``: a model of this process, and wrong arguments in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import reconcile

INPUTS = {"inputs": "B,4", "at": {"B": "1..9"}}


def head() -> nn.Module:
    return nn.Linear(4, 5, bias=False)


def test_a_model_of_this_process_has_its_closed_form(tmp_path: Path) -> None:
    counts = reconcile.polynomials(torch=head, inputs="B,T,4", at={"B": range(1, 4), "T": [2, 3, 5]}, counters=["thop"])
    assert counts.at(B=100, T=1000) == {"trace@torch": 2 * 4 * 5 * 100_000, "thop": 2 * 4 * 5 * 100_000}
    assert counts.result.not_polynomial == ()
    assert counts.exit_code == 0
    assert "40 B T" in str(counts)
    (file,) = counts.write(tmp_path, ["json"])
    total = json.loads(file.read_text())["polynomials"]["thop"]["total"]
    assert total == [{"coefficient": "40", "powers": {"B": 1, "T": 1}}]
    with pytest.raises(reconcile.UsageError, match=r"a size of each variable, and nothing else: B, T\."):
        counts.at(B=3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({**INPUTS}, "name a model"),
        ({**INPUTS, "torch": head, "timeout": 3}, "for worker processes"),
        ({**INPUTS, "torch": head, "counter": ["thop"]}, "unknown argument of reconcile.polynomials 'counter'"),
        ({**INPUTS, "torch": head, "counters": ["thopp"]}, "unknown counter 'thopp'"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(reconcile.UsageError, match=says):
        reconcile.polynomials(**arguments)
