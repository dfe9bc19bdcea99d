"""``Step.against``: from a formula that people quote to what ran, to the unit, with every cause by its closed form."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.core.causes import Cause
from reconcile.core.errors import UsageError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from reconcile.products.llm import request  # noqa: E402
from reconcile.products.llm.comparison import Quote  # noqa: E402
from reconcile.products.llm.functions import explain  # noqa: E402
from reconcile.products.steps.against_formulas import Against  # noqa: E402
from reconcile.products.steps.count import Step  # noqa: E402
from tests.products.steps import nets  # noqa: E402
from tests.products.steps.nets import LAYER, PAIRS, TOKENS, B, D, L, T, V, counted  # noqa: E402

pytestmark = pytest.mark.frameworks

BIASES = 9 * D
"""Of a layer's four matrices: 3 D, D, 4 D and D."""
NORMS = 2 * 2 * D
BLOCK = LAYER + BIASES + NORMS
FORMULA = 6 * TOKENS * (2 * V * D + L * BLOCK + 2 * D)
"""6 per token and parameter: table and head, layers, and the last norm."""
LOOKUP = -6 * TOKENS * V * D
VECTORS = -6 * TOKENS * (L * (BIASES + NORMS) + 2 * D)
ATTENTION = 2 * L * PAIRS * (2 + 4)


def configured(model: nets.Transformer) -> nets.Transformer:
    """The model with the configuration that a model of transformers has."""
    fields = {"num_hidden_layers": L, "hidden_size": D, "num_attention_heads": nets.HEADS, "vocab_size": V}
    model.config = SimpleNamespace(**fields, intermediate_size=4 * D)
    return model


def trained(model: nn.Module, micro: int = 1) -> Step:
    """A step of this many micro-batches."""

    def run() -> None:
        for _ in range(micro):
            (nets.cross_entropy(model, nets.tokens()) / micro).backward()

    return counted(run, model)


def booked(found: Against, formula: str) -> tuple[int, dict[str, int]]:
    """The formula's total, and what is booked by cause; the residual is 0, and the lines lead to what ran."""
    (counter,) = (c for c in found.verdict.counters if c.ledger.counter == formula)
    statement = counter.statement
    assert statement is not None, counter.ledger.reason
    assert statement.residual == 0
    causes = {cause: amount for cause, amount in counter.causes if amount}
    assert statement.from_total + sum(causes.values()) == statement.to_total
    return counter.ledger.total, causes


@pytest.fixture(scope="module")
def step() -> Step:
    """A step of one batch, which tests only look at."""
    return trained(configured(nets.Transformer()))


@pytest.fixture(scope="module")
def twice() -> Step:
    """A step of two micro-batches, likewise."""
    return trained(configured(nets.Transformer()), 2)


def test_six_n_beside_a_step_by_closed_form(step: Step) -> None:
    found = step.against("formula:6n")
    total, causes = booked(found, "formula:6n")
    assert total == FORMULA
    assert causes == {
        Cause.LOOKUP_AS_PRODUCT: LOOKUP,
        Cause.PARAMETERS_AS_PRODUCTS: VECTORS,
        Cause.ATTENTION_LEFT_OUT: ATTENTION,
    }
    ran = step.metrics()["flops"]
    assert total + LOOKUP + VECTORS + ATTENTION == ran == sum(nets.PLAIN.values())
    lines = [line.rsplit(None, 1) for line in str(found).splitlines()]
    shown = {name.strip(): int(amount.replace(",", "")) for name, amount in lines}
    assert shown == {"formula:6n": FORMULA, **causes, "residual": 0, "what ran": ran}


def test_micro_batches_are_one_batch_of_tokens(twice: Step) -> None:
    total, causes = booked(twice.against("formula:6n", tokens=2 * TOKENS), "formula:6n")
    assert total == 2 * FORMULA
    assert causes[Cause.ATTENTION_LEFT_OUT] == 2 * ATTENTION


@pytest.mark.parametrize(("saved", "phases"), [("reentrant", nets.REENTRANT), ("non-reentrant", nets.NON_REENTRANT)])
def test_what_a_checkpoint_computes_again_has_its_cause(saved: str, phases: dict[str, int]) -> None:
    step = trained(configured(nets.Transformer(saved)))
    _, causes = booked(step.against("formula:6n"), "formula:6n")
    assert causes[Cause.ATTENTION_LEFT_OUT] == ATTENTION
    assert causes[Cause.RECOMPUTED] == phases["recomputation"]
    assert Cause.OP_NOT_COUNTED not in causes


def test_several_formulas_are_several_statements(step: Step) -> None:
    found = step.against("formula:6n", "formula:palm", tokens=TOKENS)
    named = [counter.ledger.counter for counter in found.verdict.counters]
    assert named == ["formula:6n", "formula:palm"]
    # 12 L h T per token of attention more, and without vectors of its own
    total, causes = booked(found, "formula:palm")
    assert total == FORMULA + 12 * L * D * T * TOKENS
    assert Cause.ATTENTION_LEFT_OUT not in causes


def test_a_call_alone_is_compared_with_a_forward_formula() -> None:
    model = configured(nets.Transformer())
    step = counted(lambda: model(nets.tokens()), model)
    total, _ = booked(step.against("formula:6n"), "formula:6n")
    assert total == FORMULA // 3


def test_frozen_weights_and_adapters_have_their_causes() -> None:
    """What is frozen has no gradient, although the formula counts one; without a residual."""
    step = trained(configured(nets.Transformer(lora=True)))
    total, causes = booked(step.against("formula:6n"), "formula:6n")
    assert step.metrics()["flops"] == sum(nets.LORA.values())
    assert total == FORMULA + 6 * nets.ADAPTERS
    # and of the first layer's queries, keys and values, nothing takes a gradient of the input either
    assert causes[Cause.FROZEN_NOT_DISCOUNTED] == -2 * (nets.MATRICES + TOKENS * 3 * D * D)
    assert causes[Cause.BACKWARD_ASSUMED] == -2 * TOKENS * D * nets.RANK
    assert causes[Cause.PARAMETERS_AS_PRODUCTS] == VECTORS


def test_what_cannot_be_compared_is_one_sentence(twice: Step) -> None:
    model = configured(nets.Transformer())
    none = counted(lambda: torch.ones(2, 2) @ torch.ones(2, 2))
    unlike = counted(lambda: (model(nets.tokens()), nets.mlp()(nets.rows())), model)
    mixed = counted(lambda: [model.head(torch.ones(2, steps, D)) for steps in (3, 4)], model.head)
    cases = [
        (lambda: twice.against(), 'name a formula, such as against("formula:6n"): `reconcile explain counters` lists them.'),
        (lambda: twice.against("formula:7n"), "unknown formula 'formula:7n'"),
        (lambda: twice.against("flop_counter"), "unknown formula 'flop_counter'"),
        (
            lambda: twice.against("formula:6n", tokens=TOKENS),
            f"read {2 * TOKENS} tokens in the step ({2 * B} x {T}), and tokens={TOKENS} was given.",
        ),
        (lambda: none.against("formula:6n"), "no model was called in the step, so a formula has no tokens to count."),
        (lambda: mixed.against("formula:6n"), "read tensors of (2, 3) and (2, 4) in this step"),
    ]  # fmt: skip
    for call, sentence in cases:
        with pytest.raises(UsageError, match=re.escape(sentence)):
            call()
    assert booked(unlike.against("formula:6n"), "formula:6n")[0] == FORMULA // 3


class Config(SimpleNamespace):
    """As much of a configuration of transformers as a step's model is known by."""

    to_diff_dict = None


def test_functions_of_ones_own_beside_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are explained at the step's sizes; what is computed again leads from what ran once to what ran."""
    asked = []

    def read_functions(config: Any, functions: Any, **step: Any) -> Any:
        asked.append((config, functions, step))
        return step

    quotes = [Quote("flops", 7, {}, -3, terms=("what differs",)), Quote("other", None, {}, None, "it raised")]
    monkeypatch.setattr(request, "read_functions", read_functions)
    monkeypatch.setattr(explain, "explain_functions", lambda asked, trace: quotes)
    monkeypatch.setattr(nets.Transformer, "config_class", Config, raising=False)
    model = configured(nets.Transformer("reentrant"))
    model.config = Config(**vars(model.config))

    def flops() -> int:
        return 7

    step = trained(model, 2)
    found = step.against("formula:6n", flops, per="token")
    options = {"batch": 2 * B, "seq": T, "pass_": "training", "per": "token", "others": ()}
    assert asked == [(model.config, [flops], options)]
    booked(found, "formula:6n")
    assert [quote.causes for quote in found.functions] == [{Cause.RECOMPUTED: 2 * nets.REENTRANT["recomputation"]}, {}]
    assert found.exit_code == step.against(flops).exit_code == 1
    assert {"what differs", "other: it raised"} <= {line.strip() for line in str(found).splitlines()}
    quotes[:] = [Quote("flops", 7, {}, 0, terms=())]
    assert step.against(flops).exit_code == 0


def test_a_model_of_no_configuration_of_transformers_has_no_function_explained(step: Step) -> None:
    with pytest.raises(UsageError, match="Transformer"):
        step.against(lambda config, batch, seq: 1)


def test_a_model_without_a_configuration_says_so() -> None:
    step = trained(nets.Transformer())
    assert "palm: this formula reads a transformer's configuration" in str(step.against("formula:palm"))
    assert booked(step.against("formula:6n"), "formula:6n")[0] == FORMULA
