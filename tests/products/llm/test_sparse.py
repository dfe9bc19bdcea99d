"""The page of sparse attention, of further tokens, and of an encoder with a decoder: what it says is a closed form."""

from __future__ import annotations

import re
from typing import Any

import pytest

import reconcile
from reconcile.products.llm import notes

torch = pytest.importorskip("torch")
from tests.adapters.counters.formula_decoders import TOKENS, B, H, L, N, T  # noqa: E402
from tests.adapters.counters.formulas.test_model_facts import Sides  # noqa: E402
from tests.adapters.counters.formulas.test_sparse_attention import (  # noqa: E402
    INDEX,
    PAIRS,
    RAN,
    SCORES,
    SUM,
    TOPK,
    WIDTH,
    further,
    indexed,
)

pytestmark = pytest.mark.frameworks

NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"

ATTENTION = 6 * L * PAIRS * N * WIDTH
CHOSEN = ATTENTION * TOPK // T


def page(model: Any, inputs: Any = None) -> Any:
    ids = torch.zeros(B, T, dtype=torch.int64) if inputs is None else inputs
    return reconcile.llm(model, inputs=ids).result


@pytest.fixture(scope="module")
def found() -> Any:
    """A page of sparse attention."""
    return page(indexed())


def test_attention_on_all_keys_and_on_those_chosen(found: Any) -> None:
    index = 2 * (INDEX + SCORES + SUM)
    assert (found.ran, found.indexer, found.attention, found.topk) == (RAN, index, ATTENTION, TOPK)
    assert (found.with_chosen_keys, found.configured_mtp_layers) == (RAN - ATTENTION + CHOSEN, 0)
    (sentence,) = notes.sparse_attention_note(found)
    per = [notes.per_token(found, flops) for flops in (index, ATTENTION, CHOSEN, RAN - ATTENTION + CHOSEN)]
    assert re.findall(NUMBER, sentence) == [per[0], per[1], str(TOPK), per[2], per[3]]
    assert found.recurrent == 0
    assert notes.prediction_layers_note(found) == notes.encoder_decoder_note(found) == []


@pytest.mark.slow
def test_all_keys_are_chosen_of_a_short_sequence() -> None:
    found = page(indexed(index_topk=2 * T))
    assert found.with_chosen_keys == found.ran
    (sentence,) = notes.sparse_attention_note(found)
    assert re.findall(NUMBER, sentence) == [notes.per_token(found, found.indexer)]


@pytest.mark.slow
def test_further_tokens_are_said_unless_the_model_may_have_them() -> None:
    (sentence,) = notes.prediction_layers_note(page(indexed(num_nextn_predict_layers=2)))
    assert "2 layers" in sentence
    assert "prediction-layers-counted" in sentence
    assert notes.prediction_layers_note(page(further())) == []


@pytest.mark.slow
def test_a_token_of_two_sides_is_said() -> None:
    found = page(Sides(), torch.randn(B, T, H))
    (sentence,) = notes.encoder_decoder_note(found)
    assert re.findall(r"\d+", sentence) == [str(T)]
    assert found.step == f"a training step of {B} x {T} tokens on each side"
    assert found.tokens == TOKENS
