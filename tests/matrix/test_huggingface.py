"""T5 of HuggingFace in TensorFlow and PyTorch from one config: aligned without a mapping file, reconciled to the last unit.

`make pairs` runs 32 other pairs of classes. S tokens are encoded and D decoded.
"""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import Collected, settle
from reconcile.launch import user_models
from reconcile.launch.environments import runs
from reconcile.launch.request import RunRequest
from tests.matrix.transformers_models import DECODED, T5, D, S
from tests.matrix.transformers_pairs import MODULE, environment

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(1800)]

WIDTH, INNER, FEED = T5["d_model"], T5["num_heads"] * T5["d_kv"], 2 * T5["d_model"] * T5["d_ff"]


def attention(queries: int, keys: int) -> int:
    """Multiply-adds of q, k, v and the output, and of the two products between them."""
    return 2 * queries * WIDTH * INNER + 2 * keys * WIDTH * INNER + 2 * queries * keys * INNER


LAYER = attention(S, S) + S * FEED + attention(D, D) + attention(D, S) + D * FEED
"""A layer of the encoder and one of the decoder, which attends to itself and to what is encoded."""
MACS = T5["num_layers"] * LAYER + D * WIDTH * T5["vocab_size"]


@pytest.fixture(scope="module")
def taken() -> Collected:
    """Traces and ledgers of all counters, from the environment that has transformers."""
    factories = {"tf": f"{MODULE}:tf_t5", "torch": f"{MODULE}:torch_t5"}
    request = RunRequest("", {}, factories=factories, inputs=user_models.read_inputs(DECODED))
    return runs.collect_in(environment())(request, lambda _event: None)


def test_it_reconciles_and_every_product_has_its_partner(taken: Collected) -> None:
    for convention in BUILT_IN.values():
        result = settle(taken, Conventions(convention))
        assert result.exit_code == 0
        assert {s.residual for s in result.statements} == {0}
        assert [ledger.counter for ledger in result.ledgers if ledger.mismatches or ledger.unchecked] == []
    products = settle(taken, Conventions(BUILT_IN["matmul"]))
    ends = ("trace@tf", "trace@torch")
    assert {t.name: t.totals["matmul"] for t in products.traces} == dict.fromkeys(ends, 2 * MACS)
    assert [row for row in products.layers if row.work["tf"] != row.work["torch"]] == []
    assert [row.layer for row in products.alignment if not row.by] == []
    several = {row.layer: row.paths["torch"] for row in products.alignment if len(row.paths["torch"]) > 1}
    # TensorFlow's T5 multiplies by the embedding's matrix outside of all layers.
    assert several == {"(model)": ("", "lm_head")}
    assert [row for row in products.alignment if len(row.paths["tf"]) > 1] == []
    (pin,) = [text for text in environment().requirements if text.startswith("tf-keras==")]
    assert pin == f"tf-keras=={products.environment['keras']}"


def test_what_differs_is_named_with_its_ops(taken: Collected) -> None:
    """Under ``all``: layer norms, activations and attention are other elementary operations, layer by layer."""
    result = settle(taken, Conventions(BUILT_IN["all"]))
    between = result.statement("trace@tf", "trace@torch")
    assert {line.cause for line in between.adjustments} == {Cause.IMPLEMENTATION_DIFFERS}
    assert [line for line in between.adjustments for evidence in line.evidence if not evidence.ops] == []
    assert not {line.layer.rpartition(".")[2] for line in between.adjustments} & {"q", "k", "v", "o", "wi"}
    assert (between.from_total, between.to_total) == tuple(t.totals["all"] for t in result.traces)
