"""The page of a language model's training: what it says follows from a closed form, and adds up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.core.conventions import CAUSAL, MATMUL, NAMED
from reconcile.engine.settle import settle
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import run_request
from reconcile.report import llm
from tests.adapters.counters.test_formulas import FULL, LAYER, TOKENS, B, Decoder, H, L, T, V

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.frameworks

RAN = 6 * (L * (LAYER * TOKENS + FULL) + H * V * TOKENS)
"""FLOPs of a training step: forward, and twice as much for both gradients."""
KEPT = RAN - 6 * L * FULL + 6 * L * FULL * (T + 1) // (2 * T)


@pytest.fixture(scope="module")
def page() -> Any:
    request = run_request(counters=("formula:all",), pass_="training")
    ids = torch.zeros(B, T, dtype=torch.int64)
    collected = collect_live({"torch": Decoder()}, ids, request.counters, "cpu", lambda _: None, "sgd", None)
    causal = settle(replace(collected, ledgers=()), CAUSAL, NAMED)
    return llm.page(settle(collected, MATMUL, NAMED), causal, "tiny")


def test_what_ran_is_a_closed_form(page: Any) -> None:
    assert (page.batch, page.seq, page.tokens) == (B, T, TOKENS)
    assert (page.ran, page.once, page.again, page.causal) == (RAN, RAN, 0, KEPT)


def test_every_formula_is_there_and_adds_up(page: Any) -> None:
    data = json.loads(llm.data(page))
    assert len(data["formulas"]) >= 20
    told = [f for f in data["formulas"] if f["step"] is not None]
    assert [f["name"] for f in told if f["step"] + sum(f["causes"].values()) != RAN or f["residual"]] == []
    assert [f["name"] for f in data["formulas"] if f["step"] is None and not f["reason"]] == []
    assert (data["mfu_per_step"], data["hfu_per_step"], data["not_masked"]) == (RAN, RAN, KEPT)


def test_the_exact_formulas_come_first_and_are_recommended(page: Any) -> None:
    exact = [q.name for q in page.quotes if q.step == RAN]
    assert exact
    assert [q.name for q in page.quotes][: len(exact)] == exact
    assert f"Right for this model: {', '.join(exact)}." in llm.text(page).replace("\n", " ")


def test_it_fits_80_columns(page: Any) -> None:
    assert [line for line in llm.text(page).splitlines() if len(line) > 80] == []


def test_what_is_not_known_is_said(page: Any) -> None:
    unknown = replace(page, causal=None, why="a mask whose values are not known")
    assert "not known, a mask whose values are not known" in llm.text(unknown).replace("\n", " ")
    assert json.loads(llm.data(unknown))["not_masked"] is None


def test_a_residual_is_never_hidden(page: Any) -> None:
    opened = replace(page, quotes=(replace(page.quotes[0], residual=7, step=RAN - 7), *page.quotes[1:]))
    assert (page.closed, opened.closed) == (True, False)
    assert "residual +7" in llm.text(opened)
    assert "**residual +7**" in llm.markdown(opened)


def test_recomputed_activations_are_of_hfu_alone(page: Any) -> None:
    again = replace(page, ran=RAN + 4 * TOKENS, again=4 * TOKENS)
    mfu, hfu = llm.numerators(again)[:2]
    assert f"{RAN // TOKENS:,} FLOPs per token" in mfu
    assert f"{RAN // TOKENS + 4:,} FLOPs per token, of them 4 for activations" in hfu
    assert again.exact == page.exact


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read as a configuration"),
        ("{", "cannot be read as a configuration"),
        ("[]", "has no model_type"),
        ('{"hidden_size": 8}', "has no model_type"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(tmp_path: Any, content: str | None, why: str) -> None:
    file = tmp_path / "net.json"
    if content is not None:
        file.write_text(content)
    done = CliRunner().invoke(cli, ["llm", str(file)])
    assert (done.exit_code, why in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.output


def test_transformers_is_asked_for_by_name(tmp_path: Any) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.json").write_text('{"model_type": "llama"}')
    done = CliRunner().invoke(cli, ["llm", str(tmp_path / "net.json")])
    assert done.exit_code == 2
    assert "install transformers" in done.stderr
