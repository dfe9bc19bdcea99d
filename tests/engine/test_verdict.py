"""The verdict: its words in every state, and that no number is given which does not stand. Records only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN, Convention
from reconcile.engine.answer import Answer
from reconcile.engine.verdict import GIVE_FORMULAS, Verdict, verdict
from reconcile.report import view
from reconcile.report.json import to_dict
from reconcile.report.markdown import to_markdown
from tests.report import samples
from tests.report.tables import read
from tests.report.terminal.test_screen import joined

T = samples.T


def own(result: Answer, inputs: str = "float32 (1, 3)", **more: object) -> Answer:
    """The sample's PyTorch side, reported as a user's own model ``net:Net``."""
    there = {samples.TORCH, "thop", "fvcore", "flop_counter"}
    made = replace(
        result,
        model="net.Net",
        params={"torch": "net:Net"},
        inputs={"torch": inputs},
        traces=result.traces[1:],
        ledgers=tuple(replace(x, versions={"torch": "2.0"}) for x in result.ledgers if x.counter in there),
        statements=tuple(s for s in result.statements if {s.from_, s.to} <= there),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_the_sentence_of_ones_own_model() -> None:
    """368 = 2 x (2 x 3 x 4 + 5 x 2 x 4 x 4), derived in samples.py."""
    assert samples.WORK == 2 * (2 * 3 * 4 + 5 * 2 * 4 * 4) == 368
    (figure,) = verdict(own(samples.clean())).figures
    assert figure.sentence == (
        "368 FLOPs (184 MACs) per forward pass of net:Net in PyTorch on float32 (1, 3), by the convention matmul (2 per "
        "multiply-add of matrix products and convolutions, nothing else); counted by torch.utils.flop_counter (torch 2.0), "
        "confirmed op by op by reconcile 0.1.0."
    )
    assert (figure.flops, figure.macs, figure.counters, figure.caution) == (368, 184, ("flop_counter",), "")


def test_each_counter_is_exact_off_by_causes_or_says_why_not() -> None:
    said = {c.ledger.counter: c for c in verdict(samples.full()).counters}
    frozen, thop, fvcore = said[samples.FROZEN], said["thop"], said["fvcore"]
    once = (T - 1) * samples.MM_STEP
    assert frozen.causes == (("loop-counted-once", once), ("outside-convention", -samples.BIAS))
    assert frozen.off == samples.BIAS - once
    assert (thop.off, thop.causes) == (2 * T * samples.GATES, (("outside-convention", -2 * T * samples.GATES),))
    assert fvcore.ratio == samples.MM_DENSE / samples.WORK
    assert said["flop_counter"].exact
    assert [c.exact for c in said.values()].count(True) == 1
    for blank in (samples.FUNCTION, samples.RUNMETA):
        assert (said[blank].off, said[blank].ratio, said[blank].causes) == (None, None, ())
    assert verdict(samples.full()).exact == ("flop_counter",)


def test_causes_and_residual_lead_from_each_counter_to_the_work() -> None:
    for sample in samples.SAMPLES:
        for counter in verdict(sample()).counters:
            if counter.off is not None:
                assert counter.off + sum(amount for _, amount in counter.causes) == 0
                amounts = [abs(amount) for _, amount in counter.causes]
                assert amounts == sorted(amounts, reverse=True)


def test_errors_that_offset_each_other_are_not_to_be_cited() -> None:
    result = own(samples.clean())
    thop = result.statement("thop", samples.TORCH)
    (line,) = thop.adjustments
    even = replace(
        thop, from_total=thop.to_total, adjustments=(line, replace(line, cause=Cause.DEAD_OP, amount=-line.amount))
    )
    said = verdict(replace(result, statements=(even, *(s for s in result.statements if s is not thop))))
    assert said.counters[0].off == 0
    assert said.exact == ("flop_counter",)


def test_a_counter_of_macs_is_cited_with_what_it_shows() -> None:
    result = own(samples.clean())
    thop = samples.ledger("thop", "MAC", {"dense": samples.DENSE.mac, "loop": T * samples.STEP.mac}, State.EQUAL)
    equal = samples.statement("thop", samples.TORCH, samples.WORK, samples.WORK)
    (figure,) = verdict(replace(result, ledgers=(thop,), statements=(equal,))).figures
    assert "counted by thop.profile (thop 0.1; as 184 MACs), confirmed" in figure.sentence


def test_a_number_that_no_counter_arrives_at_says_so() -> None:
    result = own(samples.clean())
    ledgers = tuple(x for x in result.ledgers if x.counter != "flop_counter")
    some = verdict(replace(result, ledgers=ledgers)).figures[0].sentence
    one = verdict(replace(result, ledgers=ledgers[:1])).figures[0].sentence
    none = verdict(replace(result, ledgers=())).figures[0].sentence
    assert some.endswith("; recorded op by op by reconcile 0.1.0 on torch 2.0; none of thop and fvcore is exact.")
    assert one.endswith("; recorded op by op by reconcile 0.1.0 on torch 2.0; thop is not exact.")
    assert none.endswith("; recorded op by op by reconcile 0.1.0 on torch 2.0.")


def withheld(said: Verdict, framework: str) -> str:
    assert [figure for figure in said.figures if framework in figure.frameworks] == []
    (item,) = [w for w in said.withheld if w.framework == framework]
    return item.sentence


def test_an_incomplete_trace_gives_no_number() -> None:
    said = verdict(samples.incomplete())
    assert withheld(said, "torch") == (
        f"No number to publish for PyTorch: the work of aten.linalg_solve at layer loop is not known. {GIVE_FORMULAS}"
    )
    assert [figure.frameworks for figure in said.figures] == [("tf",)]


def test_what_nobody_can_explain_gives_no_number() -> None:
    sentence = withheld(verdict(samples.unexplained()), "torch")
    assert sentence.startswith("No number to publish for PyTorch: thop leaves a difference that no cause explains")
    assert sentence.endswith("report it with the JSON file.")


def test_a_trace_that_is_not_there_gives_no_number() -> None:
    sentence = withheld(verdict(samples.without_tf()), "tf")
    assert sentence == "No number to publish for TensorFlow: TensorFlow is not installed. Fix that and run again."
    assert verdict(samples.empty()).withheld[0].sentence.startswith("No number to publish: nothing was traced. ")


def test_a_counters_own_recipe_gives_no_number() -> None:
    """tf.profiler@keras_flops takes a batch of 1 whatever the model was asked to be."""
    result = samples.clean()
    recipe = replace(result.ledgers[0], counter="tf.profiler@keras_flops")
    statements = (replace(result.statement(samples.FROZEN, samples.TF), from_=recipe.counter),)
    result = replace(result, traces=result.traces[:1], ledgers=(recipe,), statements=statements)
    said = verdict(result)
    assert "tf.profiler@keras_flops builds the model in its own way" in withheld(said, "tf")
    assert said.figures == ()
    assert verdict(replace(result, params={"tf": "a frozen graph as it is"})).withheld == ()


def test_the_same_work_in_both_frameworks_is_one_number() -> None:
    said = verdict(replace(samples.clean(), inputs={"tf": "float32 (2, 3)", "torch": "float32 (2, 3)"}))
    (figure,) = said.figures
    assert figure.frameworks == ("tf", "torch")
    assert (
        "toy(batch=2, steps=5, shape=(3, 4)) in TensorFlow and PyTorch on float32 (2, 3) (a batch of 2), by"
        in figure.sentence
    )
    assert said.difference == ""


def test_inputs_that_differ_are_both_said() -> None:
    said = verdict(replace(samples.clean(), inputs={"tf": "float32 (2, 8, 8, 3)", "torch": "float32 (2, 3, 8, 8)"}))
    assert "on float32 (2, 8, 8, 3) (TensorFlow) and float32 (2, 3, 8, 8) (PyTorch) (" in said.figures[0].sentence


def test_frameworks_of_other_work_get_sentences_and_a_difference() -> None:
    result = samples.everything()
    first, second = verdict(result).figures
    extra = T * samples.EXTRA.mul
    assert (first.frameworks, second.frameworks) == (("tf",), ("torch",))
    assert first.flops - second.flops == extra
    assert (first.macs, second.macs) == (None, None)
    assert verdict(result).difference == (
        f"The two models differ: PyTorch does {extra} FLOPs less than TensorFlow: implementation-differs -{extra} at loop."
    )


def test_differences_that_cancel_are_still_two_numbers() -> None:
    result = samples.everything()
    (between,) = result.statements
    (line,) = between.adjustments
    lines = tuple(
        replace(
            line, layer=f"l{i}", amount=n, evidence=(replace(line.evidence[0], formula="mul: tf 3 x Mul against none"),)
        )
        for i, n in enumerate((3, -7, 9, -5))
    )
    even = replace(between, to_total=between.from_total, adjustments=lines)
    traces = (result.traces[0], replace(result.traces[1], totals=result.traces[0].totals))
    said = verdict(replace(result, statements=(even,), traces=traces))
    assert len(said.figures) == 2
    assert said.difference == (
        "The two models differ: PyTorch does as many as TensorFlow: "
        "implementation-differs +9 at l2 (mul: tf 3 x Mul against none); "
        "implementation-differs -7 at l1 (mul: tf 3 x Mul against none); "
        "implementation-differs -5 at l3 (mul: tf 3 x Mul against none); 1 more, +3 in all."
    )


def test_a_batch_is_said_where_known_and_asked_about_elsewhere() -> None:
    (pair,) = verdict(samples.clean()).figures
    assert (pair.batch, pair.leading) == (2, None)
    assert pair.caution == "This is the number of a batch of 2. For that of one sample, run with a batch of 1."
    (guess,) = verdict(own(samples.clean(), "ids=int64 (8, 7), mask=float32 (8, 7), scale=2")).figures
    assert (guess.batch, guess.leading) == (None, 8)
    assert "a batch of" not in guess.sentence
    assert guess.caution.startswith("The first dimension of every input is 8. If that is the batch, ")
    for text in ("float32 (1, 8)", "float32 (8, 3), float32 (4, 3)", "float32 (8, 3), int64 ()", ""):
        (figure,) = verdict(own(samples.clean(), text)).figures
        assert (figure.leading, figure.caution) == (None, "")


def test_macs_only_where_the_convention_counts_nothing_else() -> None:
    mine = Convention("mine", mac=1)
    other = Convention("other", mac=2, add=1, meaning="")
    for convention, macs in ((BUILT_IN["matmul"], 184), (mine, 184), (BUILT_IN["all"], None), (other, None)):
        base = own(samples.clean(), ledgers=(), statements=(), convention=convention)
        work = [row.work for row in base.traces[0].rows]
        traces = (replace(base.traces[0], totals={convention.name: sum(convention.flops(w) for w in work)}),)
        (figure,) = verdict(replace(base, traces=traces)).figures
        assert figure.macs == macs
        assert ("MACs" in figure.sentence) is (macs is not None)
    assert "by the convention other (FLOPs per unit: mac 2, add 1); " in figure.sentence


def test_how_the_trace_was_taken_goes_along() -> None:
    result = own(samples.clean())
    noted = replace(result.traces[0], notes=("called with float32 (1, 3)", "1 loop counts were read from one run"))
    (figure,) = verdict(replace(result, traces=(noted,))).figures
    assert figure.notes == ("trace@torch: 1 loop counts were read from one run",)


@pytest.mark.parametrize("sample", samples.SAMPLES)
def test_terminal_markdown_and_json_say_the_same(sample: Callable[[], Answer]) -> None:
    result = sample()
    said = verdict(result)
    sentences = [f.sentence for f in said.figures] + [w.sentence for w in said.withheld] + [*said.cautions]
    sentences += [said.difference] if said.difference else []
    page, screen, data = read(to_markdown(result)), joined(result), to_dict(result)["verdict"]
    for sentence in sentences:
        assert sentence in page.text
        assert " ".join(sentence.split()) in screen
    shown = view.describe_answer(result)
    problems = [shown.summary, *shown.unknown, *shown.missing, *shown.broken]
    for text in (page.text, screen, joined(result, quiet=True)):
        assert [sentence for sentence in problems if sentence not in " ".join(text.split())] == []
    assert [f["sentence"] for f in data["figures"]] == [f.sentence for f in said.figures]
    assert [c["off"] for c in data["counters"]] == [c.off for c in said.counters]
    assert len(data["figures"]) + len(data["withheld"]) == len(said.figures) + len(said.withheld)
