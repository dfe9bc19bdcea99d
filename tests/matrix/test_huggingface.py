"""HuggingFace's TensorFlow and PyTorch classes from one config: aligned without a mapping file, reconciled to the last unit.

The products of each model are a closed form of its config, the same in both frameworks. S tokens, width H, inner width F.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle
from reconcile.launch import user_models
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments import runs
from reconcile.launch.request import RunRequest
from tests.matrix import huggingface_models as models

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = Path(__file__).with_name("huggingface.toml")
S, D = 16, 12
TEXT = (f"input_ids=1,{S}:int64", f"attention_mask=1,{S}:int64")


def attention(queries: int, keys: int, width: int, inner: int) -> int:
    """Multiply-adds of q, k, v and the output, and of the two products between them."""
    return 2 * queries * width * inner + 2 * keys * width * inner + 2 * queries * keys * inner


def encoder(c: dict[str, int], tokens: int) -> int:
    width = c["hidden_size"]
    return c["num_hidden_layers"] * (
        attention(tokens, tokens, width, width) + 2 * tokens * width * c["intermediate_size"]
    )


def bert(c: dict[str, int], tokens: int = S) -> int:
    """The pooler looks at the first token alone."""
    return encoder(c, tokens) + c["hidden_size"] ** 2


def gpt2(c: dict[str, int]) -> int:
    """The causal mask leaves the products whole; inside it is four times as wide."""
    width = c["n_embd"]
    return c["n_layer"] * (attention(S, S, width, width) + 2 * S * width * 4 * width)


def distilbert(c: dict[str, int]) -> int:
    return c["n_layers"] * (attention(S, S, c["dim"], c["dim"]) + 2 * S * c["dim"] * c["hidden_dim"])


def t5(c: dict[str, int]) -> int:
    """Encoder: attention, feed-forward; decoder: attention, attention to the encoder's result, feed-forward; the words."""
    width, inner = c["d_model"], c["num_heads"] * c["d_kv"]
    encode = attention(S, S, width, inner) + 2 * S * width * c["d_ff"]
    decode = attention(D, D, width, inner) + attention(D, S, width, inner) + 2 * D * width * c["d_ff"]
    return c["num_layers"] * (encode + decode) + D * width * c["vocab_size"]


def vit(c: dict[str, int]) -> int:
    """A patch is a token of three channels, and one token stands before them all."""
    patches = (c["image_size"] // c["patch_size"]) ** 2
    return patches * 3 * c["patch_size"] ** 2 * c["hidden_size"] + bert(c, patches + 1)


@dataclass(frozen=True)
class Case:
    """What a model is called with, its multiply-adds, which layers have no partner, which rows are several layers of PyTorch,
    and which counters are run (none: all)."""

    inputs: tuple[str, ...]
    macs: int
    lone: frozenset[str] = frozenset()
    together: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counters: tuple[str, ...] = ()


POOLER = {"pooler.dense": ("pooler.dense", "pooler.activation")}
"""Keras' dense layer applies the pooler's tanh itself."""

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072}
"""What BertConfig is when nothing is said."""

CASES = {
    "bert": Case(TEXT, bert(models.BERT), together=POOLER),
    # Given a mask, GPT-2 makes its own by vmap, which TorchScript's tracer cannot follow: fvcore fails there by itself, too.
    "gpt2": Case(TEXT[:1], gpt2(models.GPT2)),
    # The mask is made by the model itself in PyTorch, and in every attention layer in TensorFlow.
    "distilbert": Case(TEXT, distilbert(models.DISTILBERT), frozenset({"(model)"})),
    # TensorFlow's T5 multiplies by the embedding's matrix outside of all layers.
    "t5": Case((*TEXT, f"decoder_input_ids=1,{D}:int64"), t5(models.T5), together={"(model)": ("", "lm_head")}),
    "vit": Case(("pixel_values=1,3,32,32",), vit(models.VIT), together=POOLER),
    # At its full size: 110 million weights, which every counter would make once more.
    "bert_base": Case(TEXT, bert(BASE), together=POOLER, counters=("tf.profiler@frozen", "flop_counter")),
}


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Collected]:
    """Traces and ledgers of a model, run once, in the environment that has transformers."""
    place = environments.load(ENVIRONMENTS)["huggingface"]
    kept = tmp_path_factory.mktemp("huggingface")

    def take(name: str) -> Collected:
        file = kept / name
        if not file.exists():
            module = "tests.matrix.huggingface_models"
            request = RunRequest(
                "",
                {},
                factories={"tf": f"{module}:tf_{name}", "torch": f"{module}:{name}"},
                inputs=user_models.read_inputs(CASES[name].inputs),
                counters=CASES[name].counters,
            )
            file.write_bytes(pickle.dumps(runs.collect_in(place)(request, lambda _event: None)))
        found: Collected = pickle.loads(file.read_bytes())
        return found

    return take


IN_MATRIX = ("t5",)
"""An encoder and a decoder; `make fresh` runs the others, and `make pairs` 32 pairs."""


@pytest.fixture(
    params=[pytest.param(n, marks=pytest.mark.matrix if n in IN_MATRIX else pytest.mark.heavy) for n in CASES]
)
def case(request: pytest.FixtureRequest, taken: Callable[[str], Collected], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(ROOT)
    name: str = request.param
    return CASES[name], {c: settle(taken(name), Conventions(convention)) for c, convention in BUILT_IN.items()}


def test_it_reconciles_and_every_product_has_its_partner(case: tuple[Case, dict[str, Answer]]) -> None:
    expected, results = case
    for result in results.values():
        assert result.exit_code == 0
        assert {s.residual for s in result.statements} == {0}
        assert [ledger.counter for ledger in result.ledgers if ledger.mismatches or ledger.unchecked] == []
    products = results["matmul"]
    assert {t.name: t.totals["matmul"] for t in products.traces} == dict.fromkeys(
        ("trace@tf", "trace@torch"), 2 * expected.macs
    )
    assert [row for row in products.layers if row.work["tf"] != row.work["torch"]] == []
    assert {row.layer for row in products.alignment if not row.by} == expected.lone
    assert {
        row.layer: row.paths["torch"] for row in products.alignment if len(row.paths["torch"]) > 1
    } == expected.together
    assert [row for row in products.alignment if len(row.paths["tf"]) > 1] == []


def test_what_differs_is_named_with_its_ops(case: tuple[Case, dict[str, Answer]]) -> None:
    """Under ``all``: layer norms, activations and attention are other elementary operations, layer by layer."""
    _, results = case
    between = results["all"].statement("trace@tf", "trace@torch")
    assert {line.cause for line in between.adjustments} == {Cause.IMPLEMENTATION_DIFFERS}
    assert [line for line in between.adjustments for evidence in line.evidence if not evidence.ops] == []
    differing = {line.layer.rpartition(".")[2] for line in between.adjustments}
    assert not differing & {
        "query",
        "key",
        "value",
        "q",
        "k",
        "v",
        "o",
        "q_lin",
        "c_attn",
        "c_proj",
        "lin1",
        "wi",
        "projection",
    }
    assert (between.from_total, between.to_total) == tuple(t.totals["all"] for t in results["all"].traces)


@pytest.mark.matrix
def test_the_versions_are_those_of_the_classes_that_ran(taken: Callable[[str], Collected]) -> None:
    pins = dict(r.split("==") for r in environments.load(ENVIRONMENTS)["huggingface"].requirements)
    result = settle(taken("t5"), Conventions(BUILT_IN["matmul"]))
    assert result.environment["keras"] == pins["tf-keras"]
