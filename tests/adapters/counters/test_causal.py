"""The convention for causal attention, only products that are not masked: closed forms, causes, and what is unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

import reconcile
from reconcile.align.alignment import Alignment
from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN, CAUSAL, MATMUL, Conventions, load_conventions
from reconcile.core.errors import UsageError
from reconcile.core.records import Trace
from reconcile.engine.settle import settle
from reconcile.engine.traces import differences
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import RunRequest
from reconcile.products.recompute import recompute
from reconcile.report.json import to_dict
from reconcile.report.schema import schema
from tests.adapters.counters import formula_decoders
from tests.adapters.counters.small_nets import called
from tests.adapters.counters.test_formulas import LAYER, TOKENS, B, Decoder, H, L, T, V
from tests.adapters.pytorch import test_decoding
from tests.work.records_by_hand import make

nn = torch.nn
attention = nn.functional.scaled_dot_product_attention

IDS = torch.zeros(B, T, dtype=torch.int64)
WEIGHTS = 2 * TOKENS * (L * LAYER + H * V)
"""FLOPs of a forward pass's products with weights."""
SEEN = 2 * L * B * 2 * H * T * (T + 1) // 2
"""FLOPs of the attention products that are not masked, of heads that are together H wide."""
MASKED = 2 * L * B * 2 * H * T * (T - 1) // 2
DIAGONAL = 2 * L * B * 2 * H * T // 2
"""Half the diagonal: what T^2 / 2 lacks of T (T + 1) / 2."""


def run(model: Any, *counters: str, inputs: Any = IDS, convention: str = "causal", **options: Any) -> Any:
    return reconcile.run(
        torch=model, inputs=inputs, counters=counters, isolated=False, convention=convention, **options
    )


def causes(result: Any, counter: str) -> dict[Cause, int]:
    """The causes between a counter and the trace; the residual is 0."""
    statement = result.statement(counter, "trace@torch")
    assert statement.residual == 0, (statement.reason, statement.residuals)
    return dict(statement.by_cause())


HALVED = ("formula:kaplan", "formula:megatron")


@pytest.fixture(scope="module")
def forward() -> Any:
    return run(Decoder(), "flop_counter", "formula:6n", *HALVED, "formula:nanochat-prefill", "formula:levanter")


@pytest.fixture(scope="module")
def training() -> Any:
    return run(Decoder(), "flop_counter", "formula:6n", *HALVED, "formula:nanochat", pass_="training")


@pytest.mark.parametrize(("pass_", "passes"), [("forward", 1), ("training", 3)])
def test_the_work_is_that_of_the_positions_that_are_seen(
    pass_: str, passes: int, request: pytest.FixtureRequest
) -> None:
    done = request.getfixturevalue(pass_)
    (trace,) = done.result.traces
    assert trace.totals["causal"] == passes * (WEIGHTS + SEEN)
    assert trace.totals["matmul"] == passes * (WEIGHTS + SEEN + MASKED)
    assert causes(done.result, "flop_counter") == {Cause.OP_NOT_COUNTED: passes * SEEN}
    for counter in HALVED:
        assert causes(done.result, counter)[Cause.ATTENTION_HALVED] == passes * DIAGONAL
    assert causes(done.result, "formula:6n")[Cause.ATTENTION_LEFT_OUT] == passes * SEEN
    (figure,) = done.verdict.figures
    assert figure.macs == passes * (WEIGHTS + SEEN) // 2
    assert "causal attention: only products that are not masked" in figure.sentence


def test_an_exact_half_has_no_cause_and_a_full_square_is_outside(forward: Any, training: Any) -> None:
    (exact,) = (ledger for ledger in forward.result.ledgers if ledger.counter == "formula:nanochat-prefill")
    assert (exact.total, causes(forward.result, exact.counter)) == (WEIGHTS + SEEN, {})
    assert causes(forward.result, "formula:levanter")[Cause.OUTSIDE_CONVENTION] == -MASKED
    assert causes(training.result, "formula:nanochat") == {Cause.OUTSIDE_CONVENTION: -3 * MASKED}


def test_a_half_of_heads_of_another_width_has_both_causes() -> None:
    d = H  # two heads as wide as the model
    wide = run(Decoder(d=d), "formula:nanochat-prefill", "formula:kaplan").result
    assert wide.traces[0].totals["matmul"] - wide.traces[0].totals["causal"] == 2 * MASKED
    assert {s.residual for s in wide.statements} == {0}


COUNTERS = ("thop", "fvcore", "flop_counter", "formula:kaplan", "formula:levanter")


def test_every_amount_follows_from_its_evidence() -> None:
    collected = collect_live({"torch": Decoder()}, IDS, RunRequest(counters=COUNTERS), lambda _event: None)
    ops = {f"torch:{op.id}": op for op in collected.traces[0].ops}
    versions = {ledger.counter: ledger.versions for ledger in collected.ledgers}
    result = settle(collected, Conventions(CAUSAL, {**BUILT_IN, "causal": CAUSAL}))
    lines = [line for statement in result.statements for line in statement.adjustments]
    wrong = [line for line in lines if recompute(line, ops, versions, CAUSAL) != line.amount]
    assert wrong == []
    assert {s.from_: s.residual for s in result.statements} == dict.fromkeys(COUNTERS, 0)
    assert len(lines) > len(COUNTERS)
    before = settle(collected, Conventions(MATMUL))
    wrong = [
        line
        for s in before.statements
        for line in s.adjustments
        if recompute(line, ops, versions, MATMUL) != line.amount
    ]
    assert wrong == []


def test_plain_products_are_counted_where_the_mask_discards_them() -> None:
    heads, steps, width = 2, 5, 4
    full = 2 * heads * steps**2 * 3 * width
    # with values that are wider than keys, PyTorch runs causal attention as plain products
    wide = called(lambda x: attention(x, x, torch.cat([x, x], -1), is_causal=True))
    result = run(wide, "flop_counter", inputs=torch.zeros(1, heads, steps, width)).result
    assert result.ledgers[0].total == full
    assert causes(result, "flop_counter") == {Cause.OUTSIDE_CONVENTION: -full * (steps - 1) // (2 * steps)}


def test_a_mask_of_unknown_values_makes_the_trace_incomplete() -> None:
    inputs = (torch.zeros(1, 2, 5, 4), torch.zeros(5, 5))
    masked = called(lambda x, mask: attention(x, x, x, attn_mask=mask))
    (trace,) = run(masked, "flop_counter", inputs=inputs).result.traces
    assert (trace.state, trace.complete) == (State.UNEXPLAINED, False)
    assert "aten.scaled_dot_product_attention at layer (model): a mask whose values are not known" in trace.reason
    assert "causal" not in trace.totals
    (whole,) = run(masked, "flop_counter", inputs=inputs, convention="matmul").result.traces
    assert whole.totals["matmul"] == 2 * 2 * 5 * 5 * (4 + 4)


def test_plain_products_are_taken_whole_and_the_sentence_says_so() -> None:
    ids = torch.zeros(formula_decoders.B, formula_decoders.T, dtype=torch.int64)
    done = run(formula_decoders.Decoder(), "flop_counter", inputs=ids)
    (trace,) = done.result.traces
    assert trace.totals["causal"] == trace.totals["matmul"]
    notes = [
        note for note in trace.notes if note.startswith("under causal, aten.bmm at layer layers.0.attention and 3 more")
    ]
    assert len(notes) == 1, trace.notes
    (figure,) = done.verdict.figures
    assert "with 4 products taken whole, whose masks the trace does not show" in figure.sentence


def test_products_without_a_mask_are_another_implementation() -> None:
    """The layer may be causal in both models; this is unknown, so it is not called other work."""
    stack, causal = [(4, 5, 3)] * 3, {"is_causal": True, "attn_mask": None}
    fused = make("aten.scaled_dot_product_attention", stack, [(4, 5, 3)], **causal)._replace(layer="a")
    scores = make("BatchMatMulV2", stack[:2], [(4, 5, 5)], adj_x=False, adj_y=True)._replace(id="1", layer="a")
    mixed = make("BatchMatMulV2", [(4, 5, 5), (4, 5, 3)], [(4, 5, 3)], adj_x=False, adj_y=False)
    plain = (scores, mixed._replace(id="2", layer="a"))
    first, second = (
        Trace(framework, {}, "cpu", ops, (), (), ("a",), ()) for framework, ops in (("tf", plain), ("torch", (fused,)))
    )
    lines = differences(first, second, Alignment([]), CAUSAL)
    assert [(line.cause, line.op, line.amount) for line in lines] == [
        (Cause.IMPLEMENTATION_DIFFERS, "masked", -2 * 4 * (3 + 3) * 5 * 4 // 2)
    ]
    assert differences(first, second, Alignment([]), MATMUL) == ()


class Cached(test_decoding.Decoder):
    """A decoder that asks for a causal mask where it has more than one query."""

    def forward(
        self, input_ids: Any, attention_mask: Any = None, past_key_values: Any = None, use_cache: bool = False
    ) -> Any:
        x = self.embed(input_ids)
        cache = test_decoding.Cache() if past_key_values is None else past_key_values
        layer = cache.append(self.keys(x), self.values(x))
        y = attention(self.queries(x), layer["keys"], layer["values"], is_causal=x.shape[1] > 1)
        return {"logits": self.head(self.out(y)), **({"past_key_values": cache} if use_cache else {})}


def test_a_decoding_step_sees_its_cache_and_itself() -> None:
    batch, context = 2, 7
    step = run(Cached(), "flop_counter", inputs=f"{batch},1:int64", pass_="decode", context=context).result
    assert step.traces[0].totals["causal"] == test_decoding.products(batch, 1, context + 1)
    prefill = run(Cached(), "flop_counter", inputs=f"{batch},{context}:int64", pass_="prefill").result
    seen = sum(2 * 2 * test_decoding.WIDTH * (i + 1) for i in range(context))
    assert prefill.traces[0].totals["causal"] == batch * (2 * test_decoding.WEIGHTS * context + seen)


def test_a_report_has_it_only_if_you_choose_it(forward: Any, tmp_path: Path) -> None:
    plain = to_dict(run(Decoder(), "flop_counter", convention="matmul").result)
    assert list(plain["traces"][0]["totals"]) == list(BUILT_IN)
    assert [row["id"] for row in plain["traces"][0]["rows"] if "masked" in row] == []
    chosen = to_dict(forward.result)
    jsonschema.validate(chosen, schema())
    assert chosen["convention_weights"]["masked"] == -2
    rows = chosen["traces"][0]["rows"]
    assert sum(2 * (row["mac"] - row["masked"]) for row in rows) == WEIGHTS + SEEN
    file = tmp_path / "mine.toml"
    file.write_text("[causal]\nmac = 2\n")
    with pytest.raises(UsageError, match="built in"):
        load_conventions(file)
    with pytest.raises(UsageError, match="causal"):
        run(Decoder(), "flop_counter", convention="casual")
