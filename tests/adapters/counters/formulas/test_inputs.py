"""Formulas are asked with what their sources take: the main input's elements, the experts that are known, the type of the whole
configuration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

import reconcile
from reconcile.adapters.counters.formulas.configured.described_model import CalledModel, describe_model
from reconcile.core.causes import Cause
from tests.adapters.counters.formula_decoders import TOKENS, A, B, D, Decoder, E, F, H, K, L, N, T, V
from tests.adapters.counters.formulas.test_trainers import counted, decoder
from tests.adapters.counters.small_nets import Does
from tests.adapters.counters.test_formulas import causes_of, causes_of_each, check_reasons

nn = torch.nn

SIDE, PATCH, WIDE = 8, 4, 5
PATCHES = (SIDE // PATCH) ** 2


class Eye(nn.Module):
    """An encoder of images as transformers has them, which says by which name it takes the pixels."""

    main_input_name = "pixel_values"

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, WIDE, PATCH, PATCH, bias=False)
        self.layers = nn.ModuleList(nn.Linear(WIDE, WIDE, bias=False) for _ in range(2))

    def forward(self, pixel_values: Any) -> Any:
        x = self.patch(pixel_values).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return x


class Seer(Eye):
    """One that no library gave a name for its input."""

    main_input_name = None


def of_images(model: Any) -> Any:
    return describe_model(CalledModel(model), pictures=True, B=B, T=PATCHES)


def test_the_trainer_takes_the_elements_of_pixels_for_tokens() -> None:
    model, pixels = of_images(Eye()), {"pixel_values": torch.zeros(B, 3, SIDE, SIDE)}
    first, weights = 3 * WIDE * PATCH**2, 3 * WIDE * PATCH**2 + 2 * WIDE**2
    elements, tokens = B * 3 * SIDE**2, B * PATCHES
    total, causes = causes_of(model, "hf-trainer", pixels)
    assert total == 6 * elements * weights
    assert causes == {
        Cause.TOKENS_ASSUMED: -6 * (elements - tokens) * weights,
        Cause.BACKWARD_ASSUMED: -2 * tokens * first,  # pixels need no gradient
    }
    assert causes_of(model, "6n", pixels)[0] == 6 * tokens * weights


def test_the_trainer_gives_nothing_for_a_model_that_names_no_input() -> None:
    pixels = {"pixel_values": torch.zeros(B, 3, SIDE, SIDE)}
    check_reasons(of_images(Seer()), {"hf-trainer": "elements of input_ids"}, pixels)


# experts whose share nothing states


def expert() -> nn.Module:
    return Does(
        lambda m, x: m.down(torch.relu(m.up(x))), up=nn.Linear(H, F, bias=False), down=nn.Linear(F, H, bias=False)
    )


class Mixture(nn.Module):
    """A router over E experts, of which a token meets ``active``; the last is chosen by none."""

    def __init__(self, active: int, kind: str) -> None:
        super().__init__()
        self.active, self.kind = active, kind
        self.gate = nn.Linear(H, E, bias=False)
        setattr(self, kind, nn.ModuleList(expert() for _ in range(E)))

    def forward(self, x: Any) -> Any:
        flat = x.reshape(-1, H)
        never = torch.tensor([0.0] * (E - 1) + [-1e9])
        share, chosen = (self.gate(flat) + never).softmax(-1).topk(self.active, -1)
        mixed = torch.zeros_like(flat)
        for number, expert in enumerate(getattr(self, self.kind)):
            row, place = (chosen == number).nonzero(as_tuple=True)
            if len(row):
                mixed = mixed.index_add(0, row, expert(flat[row]) * share[row, place][:, None])
        return mixed.view_as(x)


class Mixed(nn.Module):
    """A network of one's own: no configuration says how many experts a token meets."""

    def __init__(self, active: int = A, kind: str = "experts", **config: int) -> None:
        super().__init__()
        self.config = SimpleNamespace(**config)
        self.table = nn.Embedding(V, H)
        self.layers = nn.ModuleList(Mixture(active, kind) for _ in range(L))

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        for layer in self.layers:
            x = x + layer(x)
        return x


EXPERT = L * TOKENS * 2 * H * F
"""One expert of every layer, for every token."""
IDS = torch.arange(TOKENS).reshape(B, T) % V
PLAIN = {Cause.LOOKUP_AS_PRODUCT: -6 * V * H * TOKENS}


@pytest.mark.parametrize(("active", "kind"), [(1, "experts"), (A, "my_expert")])
def test_all_experts_are_counted_where_nothing_states_a_share(active: int, kind: str) -> None:
    torch.manual_seed(0)
    total = 6 * (E * EXPERT + L * TOKENS * H * E + V * H * TOKENS)
    causes = PLAIN | {Cause.ALL_EXPERTS_COUNTED: -6 * (E - active) * EXPERT}
    assert causes_of_each(Mixed(active, kind), ("6n", "aws"), IDS) == dict.fromkeys(("6n", "aws"), (total, causes))


def test_beside_a_step_of_ones_own_it_is_the_same() -> None:
    torch.manual_seed(0)
    model = Mixed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with reconcile.count(model) as step:
        model(IDS).square().sum().backward()
        optimizer.step()
    against = step.against("formula:6n", "formula:6n-active")
    every, active = against.result.ledgers
    statement = next(s for s in against.result.statements if s.from_ == every.counter)
    found = {line.cause for line in statement.adjustments if line.amount}
    assert (statement.residual, found) == (0, {Cause.ALL_EXPERTS_COUNTED, Cause.LOOKUP_AS_PRODUCT})
    assert (every.state, active.state) == ("explained", "not_comparable")


def test_a_formula_of_active_experts_says_that_it_knows_no_share() -> None:
    config = {"num_hidden_layers": L, "hidden_size": H, "num_attention_heads": N, "num_experts": E}
    active = ("6n-active", "kaplan", "torchtitan")
    check_reasons(Mixed(**config), dict.fromkeys(active, "layers.0.experts.0.up.weight"), IDS)


def test_layers_and_shared_experts_are_no_experts() -> None:
    from reconcile.adapters.counters.formulas.model_facts import find_unshared_parameter, parameters

    for kind in ("shared_experts", "blocks"):
        assert find_unshared_parameter(parameters(Mixed(kind=kind), {}, [])) == "", kind
    assert find_unshared_parameter(parameters(Mixed(), {"E": E, "a": A}, [])) == ""


# verl goes by the type of the whole configuration

LAYER = H * (N * D + 2 * K * D) + N * D * H + 3 * H * F
NARROW = H // N
HALF = B * N * 2 * T**2 * L // 2
VERL = {
    # type: total / 6
    # verl/utils/flops_counter.py:92-124, which ESTIMATE_FUNC (678-701) names for each of these types
    **dict.fromkeys(("qwen3", "minicpmv", "minicpmo"), TOKENS * (L * LAYER + 2 * V * H) + HALF * D),
    "qwen2_5_vl": TOKENS * (L * (2 * H * NARROW * (N + K) + 3 * H * F) + 2 * V * H) + HALF * NARROW,
    "apertus": TOKENS * (L * (LAYER + H + K * D) + 2 * V * H) + HALF * D,
}


def whole(kind: str, **stated: Any) -> Any:
    """A decoder of the text_config inside a configuration of this type."""
    model = Decoder(model_type=f"{kind}_text", **stated)
    return describe_model(model, whole=kind)


def test_verl_counts_by_the_type_around_the_text_config() -> None:
    assert causes_of(whole("qwen2_5_vl"), "verl")[0] == 6 * VERL["qwen2_5_vl"]
    facts = decoder(L, H, N, K, F, V, T, d=D, B=B, tokens=TOKENS)
    assert {kind: counted("verl", {**facts, "whole": kind}) for kind in VERL} == {k: 6 * n for k, n in VERL.items()}


def test_verl_has_no_formula_for_an_inner_type_and_raises_for_one_that_hides_its_sizes() -> None:
    check_reasons(Decoder(model_type="qwen3_5_text"), {"verl": "has no formula for 'qwen3_5_text'"})
    check_reasons(whole("glm4v"), {"verl": "reads config.hidden_size"})


def test_a_configuration_without_a_type_has_none() -> None:
    model = Decoder()
    model.config = SimpleNamespace(
        **{name: value for name, value in vars(model.config).items() if name != "model_type"}
    )
    check_reasons(model, {"verl": "has no formula for ''"})
