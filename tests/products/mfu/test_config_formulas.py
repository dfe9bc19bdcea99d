"""``--config``: the step of a model of a config.json, and each published formula as a factor. The formulas by hand.

The model is a small decoder in place of the one that transformers makes of the file; the rest is what the command runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.engine.settle import Collected
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import RunRequest, run_request
from reconcile.products.llm.comparison import Comparison
from reconcile.products.llm.request import make_comparison
from reconcile.products.mfu import config_formulas

torch = pytest.importorskip("torch")
decoders = pytest.importorskip("tests.adapters.counters.test_formulas")
B, T, L, H, V = decoders.B, decoders.T, decoders.L, decoders.H, decoders.V

pytestmark = pytest.mark.frameworks

BLOCKS, NORMS, TABLE = L * decoders.LAYER, L * decoders.NORM, V * H
ATTENTION = 12 * L * H * T
PALM = 6 * (BLOCKS + NORMS + 2 * TABLE) + ATTENTION
"""6N + 12LhT, with the table of the embedding and that of the head."""
RAN = 6 * (BLOCKS + TABLE) + ATTENTION
"""What a step multiplies, per token: each weight of a product and the head, forward and twice backward, and whole attention."""
TOKENS = 1234567
"""Per second."""
Found = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def ran() -> Comparison:
    """A training step of the decoder, and every formula beside it."""
    ids, request = torch.zeros(B, T, dtype=torch.int64), run_request(counters=("formula:all",), pass_="training")

    def take(asked: RunRequest, tell: Any) -> Collected:
        return collect_live({"torch": decoders.Decoder()}, ids, asked, tell)

    return make_comparison(request, "tiny", take, lambda _event: None)


@pytest.fixture
def found(ran: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Found:
    """The command on the utilisation of so many FLOPs per token, with a peak of 10 GFLOP/s, printed with two decimals."""
    config = tmp_path / "config.json"
    config.write_text("{}")
    given: list[tuple[Path, int]] = []

    def configured(file: Path, seq: int) -> Any:
        given.append((file, seq))
        return ()

    monkeypatch.setattr(config_formulas, "read_request", configured)
    monkeypatch.setattr(config_formulas, "make_comparison", lambda _tell: ran)

    def found(per_token: int, *more: str) -> tuple[int, dict[str, Any]]:
        claim = f"{100 * TOKENS * per_token / 10**10:.2f}%"
        words = ["mfu", claim, "--peak", "10G", "--tokens-per-second", str(TOKENS), "--config", str(config), *more]
        result = CliRunner().invoke(cli, [*words, "--seq", str(T), "--format", "json"])
        assert given == [(config, T)]
        return result.exit_code, json.loads(result.stdout) if result.exit_code < 2 else {"said": result.stderr}

    return found


def test_palm_is_what_is_stated(found: Found) -> None:
    code, told = found(PALM)
    assert (code, told["factors"]) == (0, [])


def test_what_ran_is_a_factor_with_its_causes(found: Found) -> None:
    code, told = found(RAN)
    (factor,) = told["factors"]
    assert (code, factor["reading"]) == (0, "what ran in place of palm")
    assert factor["factor"] == str(Fraction(RAN, PALM))
    assert sum(map(int, factor["causes"].values())) == RAN - PALM


def test_another_formula_may_be_stated(found: Found) -> None:
    code, told = found(PALM, "--formula", "6n")
    (factor,) = told["factors"]
    assert (code, factor["reading"]) == (0, "nanogpt in place of 6n")
    assert sum(map(int, factor["causes"].values())) == ATTENTION


def test_a_formula_that_is_none_is_refused(found: Found) -> None:
    code, told = found(PALM, "--formula", "chinchila")
    assert code == 2
    assert "'chinchila'" in told["said"]
