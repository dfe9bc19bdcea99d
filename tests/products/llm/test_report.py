"""The page of a language model's training: what it says follows from a closed form, and adds up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.core.conventions import MATMUL, NAMED, Conventions
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import run_request
from reconcile.products.llm import comparison as llm
from reconcile.products.llm import report
from tests.adapters.counters.test_formulas import FULL, LAYER, NORM, TOKENS, B, Decoder, F, H, L, T, V

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.frameworks

WEIGHTS = L * (LAYER + NORM) + 2 * H * V
RAN = 6 * (L * (LAYER * TOKENS + FULL) + H * V * TOKENS)
"""FLOPs of a training step: forward, and twice as much for both gradients."""
FACTS = {"B": B, "T": T, "parameters": WEIGHTS, "trained": WEIGHTS, "recurrent": 0}
KEPT = RAN - 6 * L * FULL + 6 * L * FULL * (T + 1) // (2 * T)


def run(model: Any, pass_: str = "training") -> tuple[Collected, Answer]:
    """A model on token ids, with every formula."""
    ids = torch.zeros(B, T, dtype=torch.int64)
    request = run_request(counters=("formula:all",), pass_=pass_)
    collected = collect_live({"torch": model}, ids, request, lambda _: None)
    return collected, settle(collected, Conventions(MATMUL, NAMED))


@pytest.fixture(scope="module")
def page() -> Any:
    collected, result = run(Decoder())
    facts = llm.facts_of(collected)
    assert {name: facts[name] for name in FACTS} == FACTS
    return llm.compare_formulas(result, facts, "tiny")


@pytest.fixture(scope="module")
def forward() -> Any:
    return llm.compare_formulas(run(Decoder(), "forward")[1], FACTS, "tiny")


def test_what_ran_is_a_closed_form(page: Any) -> None:
    assert (page.batch, page.seq, page.tokens) == (B, T, TOKENS)
    assert (page.ran, page.ran_once, page.recomputed, page.causal) == (RAN, RAN, 0, KEPT)


def test_every_formula_is_there_and_adds_up(page: Any) -> None:
    data = json.loads(report.data(page))
    assert len(data["formulas"]) >= 20
    with_number = [f for f in data["formulas"] if f["step"] is not None]
    assert [f["name"] for f in with_number if f["step"] + sum(f["causes"].values()) != RAN or f["residual"]] == []
    assert [f["name"] for f in data["formulas"] if f["step"] is None and not f["reason"]] == []
    assert (data["mfu_per_step"], data["hfu_per_step"], data["not_masked"]) == (RAN, RAN, KEPT)


def test_the_exact_formulas_come_first_and_are_recommended(page: Any) -> None:
    exact = [q.name for q in page.quotes if q.step == RAN]
    assert exact
    assert [q.name for q in page.quotes][: len(exact)] == exact
    assert f"Right for this model: {', '.join(exact)}." in report.to_text(page).replace("\n", " ")


def test_a_forward_pass_is_a_third_of_the_step(page: Any, forward: Any) -> None:
    assert (forward.ran, forward.recomputed, forward.causal) == (RAN // 3, 0, KEPT // 3)
    with_number = [q for q in forward.quotes if q.step is not None]
    assert [q.name for q in with_number if q.residual or q.step + sum(q.causes.values()) != RAN // 3] == []
    assert len(with_number) >= 12
    assert "MFU:" not in report.to_text(forward)
    assert f"Forward: {RAN // 3 // TOKENS:,} FLOPs per token" in report.to_text(forward)
    assert f"a forward pass of {B} x {T} tokens" in report.cite(forward)
    data = json.loads(report.data(forward))
    assert (data["pass"], data["mfu_per_step"], data["hfu_per_step"]) == ("forward", None, None)


@pytest.mark.parametrize("of", ["page", "forward"])
def test_it_fits_80_columns(of: str, request: pytest.FixtureRequest) -> None:
    assert [line for line in report.to_text(request.getfixturevalue(of)).splitlines() if len(line) > 80] == []


def test_what_is_not_known_is_said(page: Any) -> None:
    unknown = replace(page, causal=None, causal_note="a mask whose values are not known")
    data = json.loads(report.data(unknown))
    assert (data["not_masked"], data["masks_not_seen"]) == (None, "a mask whose values are not known")


def test_a_residual_is_never_hidden(page: Any) -> None:
    opened = replace(page, quotes=(replace(page.quotes[0], residual=7, step=RAN - 7), *page.quotes[1:]))
    assert "residual +7" in report.to_text(opened)
    assert "**residual +7**" in report.to_markdown(opened)


def test_recomputed_activations_are_of_hfu_alone(page: Any) -> None:
    again = replace(page, ran=RAN + 4 * TOKENS, recomputed=4 * TOKENS)
    mfu, hfu = report.numerators(again)[:2]
    assert f"{RAN // TOKENS:,} FLOPs per token" in mfu
    assert f"{RAN // TOKENS + 4:,} FLOPs per token (106,032 per step), of them 4 for activations" in hfu
    assert again.exact == page.exact
    assert (again.causal, page.causal) == (KEPT, KEPT)
    assert f"\n{llm.ROW_RECOMPUTED}" in report.to_text(again)
    assert f"| *{llm.ROW_RECOMPUTED}* | 4 |" in report.to_markdown(again)


class Checkpointed(Decoder):
    """The backward pass computes each layer again, but for its last product: nothing needs its result."""

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        for layer in self.layers:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        return self.head(x)


def test_with_checkpoints_causes_lead_to_the_number_beside_them() -> None:
    _, result = run(Checkpointed())
    again = 2 * L * (LAYER * TOKENS + FULL - F * H * TOKENS)
    found = llm.compare_formulas(result, FACTS, "tiny")
    assert (found.ran_once, found.recomputed, found.ran) == (RAN, again, RAN + again)
    with_number = [q for q in found.quotes if q.step is not None]
    assert [q.name for q in with_number if q.residual or q.step + sum(q.causes.values()) != RAN] == []
    by = {q.name: q.causes.get("recomputed", 0) for q in with_number}
    assert {by["6n"], by["nanochat"]} == {0}
    assert by["gpt-neox-hfu"] == -again
    booked = {s.from_: {c.value: n for c, n in s.by_cause().items()} for s in result.statements}
    assert booked["formula:6n"]["recomputed"] == again
    assert "recomputed" not in booked["formula:gpt-neox-hfu"]
    text = report.to_text(found)
    assert f"\n{llm.ROW_WITHOUT_RECOMPUTATION} " in text
    assert f"without {report.per_token(found, again)} for activations that are computed again" in text.replace(
        "\n", " "
    )


def test_what_only_rounds_to_one_does_not_look_exact(page: Any) -> None:
    near = replace(page, quotes=(replace(page.quotes[0], step=RAN + 1, causes={"lookup-as-product": -1}),))
    assert f"| {report.per_token(page, RAN + 1)} | 1.0000 (+1) |" in report.to_markdown(near)
    assert "1.0000 (+1) times what ran" in report.choice(near)


def test_causes_that_cancel_out_are_no_exact_formula(page: Any) -> None:
    quote = replace(page.quotes[0], step=RAN, causes={"attention-halved": 5, "formula-differs": -5})
    cancelled = replace(page, quotes=(quote,))
    assert cancelled.exact == ()
    assert "attention-halved + 1" in report.to_text(cancelled)
    assert report.choice(cancelled).startswith(f"No formula is exact for this model. The nearest is {quote.name}, 1")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot read the configuration"),
        ("{", "is damaged"),
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
    assert "[torch,llm]" in done.stderr


@pytest.mark.slow
def test_a_folder_named_like_a_pair_does_not_hide_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration is the file config.json in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gru_demo").mkdir()
    done = CliRunner().invoke(cli, ["llm", "gru_demo", "--quiet"])
    assert done.exit_code == 2
    assert "no formula has a number for gru_demo: " in done.stderr
