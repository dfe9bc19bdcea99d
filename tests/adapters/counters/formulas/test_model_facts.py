"""What formulas read of configurations and modules: names of other families, classes made of Linear, tables of positions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from reconcile.adapters.counters.formulas.model_facts import matrices, parameters, read_configuration, stacks
from reconcile.core.causes import Cause
from tests.adapters.counters.formula_decoders import B, Decoder, F, H, L, T
from tests.adapters.counters.formulas.test_trainers import DENSE, TRUTH
from tests.adapters.counters.small_nets import Does, Joins
from tests.adapters.counters.test_formulas import causes_of

nn = torch.nn


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ({"n_layers": 3, "d_model": 8, "n_heads": 4}, {"L": 3, "h": 8, "n": 4, "k": 4, "d": 2, "f": 32}),  # MPT
        ({"num_layers": 3, "hidden_size": 8, "num_heads": 2}, {"L": 3, "h": 8, "n": 2, "k": 2, "d": 4}),  # GPT-Neo
        ({"hidden_size": 8, "num_attention_heads": 2, "ffn_dim": 20}, {"f": 20}),  # OPT
    ],
)
def test_other_families_have_other_names(stated: dict[str, int], read: dict[str, int]) -> None:
    assert read.items() <= read_configuration(SimpleNamespace(**stated)).items()


def test_falcon_has_one_key_head_unless_its_architecture_is_new() -> None:
    stated = {"hidden_size": 8, "num_attention_heads": 4, "num_kv_heads": 4, "ffn_hidden_size": 20, "multi_query": True}
    assert {"k": 1, "f": 20}.items() <= read_configuration(SimpleNamespace(**stated)).items()
    new = SimpleNamespace(**{**stated, "num_kv_heads": 2}, new_decoder_architecture=True)
    assert read_configuration(new)["k"] == 2


@pytest.mark.parametrize(("rows", "is_one"), [(15, False), (16, True), (18, True), (19, False)])
def test_a_table_of_positions_may_have_two_rows_more(rows: int, is_one: bool) -> None:
    module = nn.Module()
    module.table, module.layers = nn.Embedding(rows, 4), nn.ModuleList([nn.Linear(2, 2)])
    weights = {w["name"]: w for w in parameters(module, {"positions": 16, "V": 40}, ["layers.0"])}
    assert weights["table.weight"]["positions"] == is_one


class Own(nn.Linear):
    """A class made of Linear, as Falcon has one."""


def test_a_class_made_of_linear_is_one() -> None:
    model = Decoder()
    for layer in model.layers:
        layer.mlp.up = Own(H, F, bias=False)
    causes = DENSE["nanochat"]
    assert causes_of(model, "nanochat") == (TRUTH - sum(causes.values()), causes)


def test_a_product_without_weight_and_softmax_is_no_attention() -> None:
    model = Decoder()
    for layer in model.layers:
        layer.attention = Does(lambda m, x: m.o(x @ (x.transpose(1, 2) @ x)), o=nn.Linear(H, H, bias=False))
    _, causes = causes_of(model, "6n")
    assert Cause.ATTENTION_LEFT_OUT not in causes
    assert causes[Cause.OP_NOT_COUNTED] == 6 * L * B * 2 * T * H * H


@pytest.mark.parametrize("width", [F, 12])
def test_attention_as_wide_as_the_feed_forward_is_none(width: int) -> None:
    layer = nn.ModuleDict({"self_attn": nn.ModuleDict(), "mlp": nn.ModuleDict()})
    layer["self_attn"].update({"q": nn.Linear(H, width), "k": nn.Linear(H, 4), "o": nn.Linear(width, H)})
    layer["mlp"].update({"gate": nn.Linear(H, F), "up": nn.Linear(H, F), "down": nn.Linear(F, H)})
    facts = {"h": H, "f": F, "n": width // 4, "d": 4}
    assert matrices(parameters(layer, facts, []), facts) == 3


def attends() -> nn.Module:
    """Attention without weights, before a product."""
    held = {"inner": nn.ModuleList([nn.Identity()] * 2), "out": nn.Linear(H, H, bias=False)}
    return Joins(lambda m, x, y: m.out(torch.softmax(x @ y.transpose(1, 2), -1) @ y), **held)


class Sides(nn.Module):
    """An encoder of two layers and a decoder of one, each of which holds a list of two modules."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(
            is_encoder_decoder=True, num_layers=2, num_decoder_layers=1, hidden_size=H, num_attention_heads=1
        )
        self.encoder, self.decoder = (nn.ModuleList(attends() for _ in range(n)) for n in (2, 1))

    def forward(self, x: Any) -> Any:
        y = x
        for layer in self.encoder:
            y = layer(y, y)
        return self.decoder[0](x, y)


def test_an_encoder_and_a_decoder_are_one_after_the_other() -> None:
    assert stacks(Sides(), Sides().config) == ["encoder.0", "encoder.1", "decoder.0"]
    rows = torch.randn(B, T, H)
    weights, pairs = B * T * H * H, B * T * T * H
    total, causes = causes_of(Sides(), "6n-active", rows, "forward")
    assert (total, causes) == (2 * 3 * weights, {Cause.ATTENTION_LEFT_OUT: 2 * 3 * 2 * pairs})
    with pytest.raises(AssertionError, match="counts one stack of layers on one sequence"):
        causes_of(Sides(), "kaplan", rows, "forward")
