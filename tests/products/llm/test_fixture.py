"""``flops.formula``: a function is held to what runs, and the failure says which of its terms differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconcile.core.causes import Cause
from reconcile.products.llm import fixture
from reconcile.products.llm.functions.explain import Functions
from reconcile.pytest_plugin import Flops

pytest.importorskip("torch")
from tests.products.llm.small_decoders import (
    BATCH,
    SEQ,
    SETTINGS,
    Config,
    closed_form,
    make_function,
    take,
)

pytestmark = pytest.mark.frameworks
NAME = "grouped heads"
TERMS = closed_form(SETTINGS[NAME])
HEAD = 6 * BATCH * SEQ * SETTINGS[NAME]["vocab_size"] * SETTINGS[NAME]["hidden_size"]
RAN = int(make_function(TERMS)(Config(SETTINGS[NAME]), BATCH, SEQ))


@pytest.fixture
def flops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Flops:
    """The fixture, of a test whose configuration is that of a decoder without transformers."""

    def read_functions(model: Any, functions: Any, **step: Any) -> Functions:
        assert (model, step["batch"], step["seq"]) == (tmp_path / "config.json", BATCH, SEQ)
        (function,) = functions
        return Functions({"mine": function}, SETTINGS[NAME], BATCH, SEQ, True, step["per"] == "token", take, Config)

    monkeypatch.setattr(fixture, "read_functions", read_functions)
    return Flops(tmp_path / "test_it.py", False, {}, print)


def hold(flops: Flops, function: Any, **more: Any) -> Any:
    return flops.formula(function, "config.json", batch=BATCH, seq=SEQ, **more)


def test_what_runs_is_held_by_its_closed_form(flops: Flops) -> None:
    assert hold(flops, make_function(TERMS)).ran == RAN


def test_a_failure_has_each_cause_with_its_amount_and_its_term(flops: Flops) -> None:
    headless = make_function([term for term in TERMS if term.place != "head"])
    with pytest.raises(pytest.fail.Exception) as failed:
        hold(flops, headless)
    first, *others = str(failed.value).splitlines()
    assert f"{RAN - HEAD:,}" in first
    assert f"{RAN:,}" in first
    assert others[0].split() == [f"{Cause.HEAD_LEFT_OUT.value}:", f"+{HEAD:,}"]
    assert "(head)" in others[1]
    share = HEAD / RAN
    assert hold(flops, headless, tolerance=share * 1.01).ran == RAN
    with pytest.raises(pytest.fail.Exception):
        hold(flops, headless, tolerance=share * 0.99)


def test_differences_that_offset_each_other_are_none_the_less(flops: Flops) -> None:
    """Of two layers as many, the one's products are counted as the other's: the total is right, and the formula is not."""
    *others, head, mlp = TERMS
    more = mlp._replace(coefficient=mlp.coefficient * 2)

    def offset(config: Any, batch: int, seq: int) -> Any:
        mlp_alone = make_function([mlp])(config, batch, seq)
        return make_function([*others, head, more])(config, batch, seq) - mlp_alone * seq / SEQ

    with pytest.raises(pytest.fail.Exception):
        hold(flops, offset)


@pytest.mark.parametrize("function", [lambda config, batch, seq: 0, lambda mystery: 1])
def test_what_has_no_number_fails_even_with_a_tolerance(flops: Flops, function: Any) -> None:
    with pytest.raises(pytest.fail.Exception):
        hold(flops, function, tolerance=9)


def test_what_no_product_adds_is_no_attribute(flops: Flops) -> None:
    with pytest.raises(AttributeError, match="formulas"):
        _ = flops.formulas
