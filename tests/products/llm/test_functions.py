"""Functions of one's own beside what ran: planted errors in formulas of five architectures are named, and nothing is fitted."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import reconcile
from reconcile.core.causes import Cause
from reconcile.core.errors import UsageError
from reconcile.core.records import Trace
from reconcile.products.llm.functions.differences import Difference, find_differences
from reconcile.products.llm.functions.explain import Functions, explain_functions
from reconcile.products.llm.functions.free_sizes import read_sizes
from reconcile.products.llm.functions.function import NoCount, call_function, make_exact
from reconcile.products.llm.functions.interpolate import find_polynomial
from reconcile.products.llm.functions.trace_terms import Product, find_products

torch = pytest.importorskip("torch")

from tests.products.llm.small_decoders import (  # noqa: E402
    BATCH,
    LAYERS,
    SEQ,
    SETTINGS,
    Config,
    Decoder,
    Term,
    closed_form,
    explain,
    make_function,
    take,
)

pytestmark = pytest.mark.frameworks


@pytest.mark.parametrize("name", SETTINGS)
def test_the_closed_form_is_exact(name: str) -> None:
    quote = explain(name, make_function(closed_form(SETTINGS[name])))
    assert (quote.causes, quote.residual, quote.terms) == ({}, 0, ())


class Predictor(Decoder):
    """A decoder that has a further head for each further token that it predicts."""

    def __init__(self, c: Config) -> None:
        super().__init__(c)
        heads = range(c.num_nextn_predict_layers)
        self.further = torch.nn.ModuleList(torch.nn.Linear(c.hidden_size, c.vocab_size) for _ in heads)

    def forward(self, ids: Any) -> Any:
        return super().forward(ids), *(head(self.table(ids)) for head in self.further)


@pytest.mark.parametrize("model", [Decoder, Predictor])
def test_predictions_of_further_tokens_are_counted_for_models_that_lack_them(model: type[Decoder]) -> None:
    settings = {**SETTINGS["grouped heads"], "num_nextn_predict_layers": 2}
    plain = make_function(closed_form(settings))

    def flops(config: Any, batch: int, seq: int) -> int:
        further = 6 * batch * seq * config.vocab_size * config.hidden_size * config.num_nextn_predict_layers
        return int(plain(config, batch, seq)) + further

    made = partial(take, model=model)
    asked = Functions({"flops": flops}, settings, BATCH, SEQ, True, False, made, Config)
    (quote,) = explain_functions(asked, made(settings, BATCH, SEQ))
    heads = 2 * 6 * BATCH * SEQ * settings["vocab_size"] * settings["hidden_size"]
    expected = {Cause.PREDICTION_LAYERS_COUNTED.value: -heads} if model is Decoder else {}
    assert (quote.causes, quote.residual) == (expected, 0)


def test_a_function_that_knows_no_model_without_predictions_is_explained() -> None:
    settings = {**SETTINGS["grouped heads"], "num_nextn_predict_layers": 2}
    plain = make_function(closed_form(settings))

    def flops(config: Any, batch: int, seq: int) -> int:
        return int(plain(config, batch, seq)) * (config.num_nextn_predict_layers // config.num_nextn_predict_layers)

    asked = Functions({"flops": flops}, settings, BATCH, SEQ, True, False, take, Config)
    (quote,) = explain_functions(asked, take(settings, BATCH, SEQ))
    assert (quote.causes, quote.residual) == ({}, 0)


class Traced(NamedTuple):
    """A decoder's sizes and products, which all formulas of it share."""

    sizes: Any
    names: list[str]
    products: list[Product]


@pytest.fixture(scope="module", params=list(SETTINGS))
def traced(request: pytest.FixtureRequest) -> tuple[str, Traced]:
    settings = SETTINGS[request.param]
    sizes = read_sizes(settings, BATCH, SEQ)
    names = [size.name for size in sizes.free]
    others = [(at, take({**settings, **sizes.settings(at)}, at[-2], at[-1])) for at in sizes.primes(2)]
    return request.param, Traced(sizes, names, find_products(take(settings, BATCH, SEQ), others, names, sizes.own))


def differences_of(name: str, found: Traced, terms: Sequence[Term]) -> tuple[Difference, ...]:
    settings, function = SETTINGS[name], make_function(terms)

    def call(at: tuple[int, ...]) -> Fraction:
        config = Config({**settings, **found.sizes.settings(at)})
        return make_exact(call_function(function, config, at[-2], at[-1], False))

    polynomial, held = find_polynomial(call, found.names, found.sizes.near(24), found.sizes.own)
    assert not held
    return find_differences(polynomial, found.products, found.sizes, LAYERS, True)


def plant(drawn: random.Random, terms: list[Term], settings: Mapping[str, Any]) -> tuple[str, int, list[Term]]:
    """One error: its kind, the index of its term, and the terms with it."""
    kind, index = drawn.choice(("factor", "missing", "half", "swapped")), drawn.randrange(len(terms))
    term = terms[index]
    wrong = list(terms)
    if kind == "missing":
        del wrong[index]
    elif kind == "swapped":
        free = [size for size in settings if size not in term.sizes and size != "matrices"]
        at = drawn.randrange(2, len(term.sizes))
        wrong[index] = term._replace(sizes=(*term.sizes[:at], drawn.choice(free), *term.sizes[at + 1 :]))
    else:
        times = Fraction(1, 2) if kind == "half" else Fraction(drawn.choice((2, 3, 5)), drawn.choice((1, 2)))
        wrong[index] = term._replace(coefficient=term.coefficient * (times if times != 1 else 2))
    return kind, index, wrong


def value(terms: Sequence[Term], settings: Mapping[str, Any]) -> Fraction:
    known = {**vars(Config(settings)), "batch": BATCH, "seq": SEQ}
    return sum((t.coefficient * math.prod(known[s] for s in t.sizes) for t in terms), Fraction(0))


@pytest.mark.parametrize("seed", range(20))
def test_a_planted_error_is_named(traced: tuple[str, Traced], seed: int) -> None:
    """The only difference stands at the layers of the wrong term, with its amount; a swapped size is another monomial."""
    name, found = traced
    settings, right = SETTINGS[name], closed_form(SETTINGS[name])
    kind, index, wrong = plant(random.Random(f"{name} {seed}"), right, settings)
    differences = differences_of(name, found, wrong)
    assert sum(each.amount for each in differences) == value(right, settings) - value(wrong, settings)
    assert (
        len(differences) == 1
        or (kind == "swapped" and len(differences) == 2)
        or value(wrong, settings) == value(right, settings)
    )
    if differences and kind != "swapped":
        (one,) = differences
        assert not [layer for layer in one.layers if right[index].place not in layer]
        attention = right[index].sizes.count("seq") == 2
        assert (one.cause is Cause.ATTENTION_HALVED) == (
            attention and wrong[index].coefficient * 2 == right[index].coefficient
        ) or (kind == "missing")
        known = {**vars(Config(settings)), "batch": BATCH, "seq": SEQ}
        alike = [
            t for t in right if math.prod(map(known.get, t.sizes)) == math.prod(map(known.get, right[index].sizes))
        ]
        assert kind != "missing" or len(alike) > 1 or one.terms[0] == ""
        assert (one.cause is Cause.ATTENTION_LEFT_OUT) == (attention and kind == "missing")


def test_nothing_is_explained_at_the_size_that_it_was_fitted_at() -> None:
    """What a function adds at the user's sizes alone is a residual, to the unit; what it adds everywhere is a term."""
    name = "grouped heads"
    right = make_function(closed_form(SETTINGS[name]))

    def at_own_size(config: Any, batch: int, seq: int) -> Any:
        return right(config, batch, seq) + (seq == SEQ)

    def everywhere(config: Any, batch: int, seq: int) -> Any:
        return right(config, batch, seq) + 1

    assert explain(name, at_own_size).residual == -1
    quote = explain(name, everywhere)
    assert (quote.residual, quote.causes) == (0, {Cause.FORMULA_DIFFERS.value: -1})


def test_numbers_of_floating_point_are_explained_alike() -> None:
    """Divided and multiplied again, as many a source does: 12 k / n + 12 times h^2, and half of attention."""

    def flops(config: Any, batch: int, seq: int) -> float:
        h, n, f = config.hidden_size, config.num_attention_heads, config.intermediate_size
        inner = (
            12
            + 12 * config.num_key_value_heads / n
            + 18 * f / h
            + 12 * seq / h * 0.5
            + 6 * config.vocab_size / (LAYERS * h)
        )
        return batch * seq * LAYERS * h * h * inner

    quote = explain("heads as wide as the model", flops)
    halved = 6 * LAYERS * BATCH * SEQ**2 * SETTINGS["heads as wide as the model"]["hidden_size"]
    assert (quote.residual, quote.causes) == (0, {Cause.ATTENTION_HALVED.value: halved})


def test_names_of_parameters_say_what_they_get() -> None:
    def flops(hidden_size: int, n_head: int, tokens: int, seq_len: int, config: Any, eps: float = 0.0) -> int:
        assert n_head == config.num_attention_heads
        assert tokens == BATCH * SEQ or tokens % seq_len == 0
        return make_function(closed_form(SETTINGS["two matrices"]))(config, tokens // seq_len, seq_len)

    assert explain("two matrices", flops).causes == {}


def test_per_token() -> None:
    right = make_function(closed_form(SETTINGS["odd widths"]))

    def flops(config: Any, seq: int) -> Any:
        return right(config, 1, seq) / seq

    assert explain("odd widths", flops, per_token=True).causes == {}


@pytest.mark.parametrize(
    "function",
    [
        lambda config, batch, seq: random.random() * 1e12,
        lambda config, batch, seq: math.nan,
        lambda config, batch, seq: 0,
        lambda config, batch, seq: "many",
        lambda config, batch, seq: torch.ones(2),
        lambda config, batch, seq: 10**400 * seq,
        lambda config, batch, seq: sys.exit(0),
        lambda config, batch, seq, calls=[]: calls.append(1) or 7 * len(calls) * seq,
        lambda config, batch, seq: config.no_such_field,
        lambda config, batch, seq, mystery: 1,
    ],
    ids=[
        "noise",
        "not a number",
        "nothing",
        "text",
        "an array",
        "too many",
        "it exits",
        "it counts its calls",
        "it raises",
        "what is unknown",
    ],
)
def test_what_is_no_formula_is_refused(function: Any) -> None:
    quote = explain("odd widths", function)
    assert quote.step is None
    assert quote.reason


def test_a_size_on_which_it_branches_is_held_and_said() -> None:
    right = make_function(closed_form(SETTINGS["odd widths"]))

    def flops(config: Any, batch: int, seq: int) -> Any:
        return right(config, batch, seq) + 6 * batch * (seq * 7919 % 101)

    quote = explain("odd widths", flops)
    assert quote.residual == 0
    assert quote.terms is not None
    assert "T" in quote.terms[-1]


def test_all_experts() -> None:
    terms = closed_form(SETTINGS["experts"])
    terms[-1] = terms[-1]._replace(sizes=(*terms[-1].sizes[:-1], "num_experts"))
    quote = explain("experts", make_function(terms))
    assert list(quote.causes) == [Cause.ALL_EXPERTS_COUNTED.value]


def test_a_required_name_that_nothing_has_is_refused_with_advice() -> None:
    with pytest.raises(NoCount, match="mystery"):
        call_function(lambda mystery: 1, SimpleNamespace(), 1, 1, False)


def test_a_width_that_is_assumed() -> None:
    """The projections of heads of 20 counted as heads of h / n = 16: two monomials in place of two that ran."""
    terms = closed_form(SETTINGS["grouped heads"])
    terms[0] = terms[0]._replace(sizes=("batch", "seq", "hidden_size", "hidden_size"))
    quote = explain("grouped heads", make_function(terms))
    assert list(quote.causes) == [Cause.WIDTH_ASSUMED.value]


@pytest.mark.parametrize("window", [16, SEQ, 100])
def test_a_window_is_held_on_the_side_where_the_step_is(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys ran. A function of min(seq, window) keys is exact from a window of the whole sequence on."""
    monkeypatch.setitem(SETTINGS, "window", {**SETTINGS["grouped heads"], "sliding_window": window})
    *others, attention, head, mlp = closed_form(SETTINGS["window"])
    linear = make_function([*others, head, mlp])

    def flops(config: Any, batch: int, seq: int) -> Any:
        keys = min(seq, config.sliding_window)
        return (
            linear(config, batch, seq) + 12 * LAYERS * batch * seq * keys * config.num_attention_heads * config.head_dim
        )

    assert attention.sizes.count("seq") == 2
    quote = explain("window", flops)
    assert (list(quote.causes), quote.residual) == ([Cause.ATTENTION_WINDOWED.value] if window < SEQ else [], 0)


@pytest.mark.parametrize("kind", [int, float])
def test_a_vocabulary_that_is_padded_keeps_its_size(kind: type) -> None:
    """330 rows padded to 384: the head counts 54 rows more, and nothing else differs."""
    name = "grouped heads"
    *others, _head, mlp = closed_form(SETTINGS[name])
    rest = make_function([*others, mlp])

    def flops(config: Any, batch: int, seq: int) -> Any:
        padded = -(-config.vocab_size // 128) * 128
        return kind(rest(config, batch, seq) + 6 * batch * seq * config.hidden_size * padded)

    quote = explain(name, flops)
    more = 6 * BATCH * SEQ * SETTINGS[name]["hidden_size"] * (384 - 330)
    assert (quote.causes, quote.residual) == ({Cause.FORMULA_DIFFERS.value: -more}, 0)


@pytest.mark.parametrize(
    ("times", "cause"), [(Fraction(4, 3), Cause.RECOMPUTATION_ASSUMED), (Fraction(1, 2), Cause.FORMULA_DIFFERS)]
)
def test_a_multiple_of_all_that_ran_has_one_cause(times: Fraction, cause: Cause) -> None:
    terms = [term._replace(coefficient=term.coefficient * times) for term in closed_form(SETTINGS["grouped heads"])]
    assert list(explain("grouped heads", make_function(terms)).causes) == [cause.value]


def test_what_it_prints_stays_off_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    call_function(lambda config, batch, seq: print("hello") or 1, SimpleNamespace(), 1, 1, False)
    assert capsys.readouterr().out == ""


def test_what_has_no_polynomial_is_a_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of h + 7 by h + 11 for each token, which no short sum of sizes is: whether a formula counts it is not known."""
    monkeypatch.setitem(SETTINGS, "odd", {**SETTINGS["grouped heads"], "more": 7})
    width = SETTINGS["odd"]["hidden_size"]
    quote = explain("odd", make_function(closed_form(SETTINGS["odd"])))
    assert (quote.causes, quote.residual) == ({}, 6 * BATCH * SEQ * (width + 7) * (width + 11))


def test_a_loop_over_chunks_has_a_polynomial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of T / c chunks c^2 h B pairs and c h^2 B in the state, forward and for both factors: the first chunk reads no state, and
    nobody reads what the last one adds, whose two gradients are none."""
    chunk, per_step = 16, ("batch", "hidden_size")
    monkeypatch.setitem(SETTINGS, "scan", {**SETTINGS["grouped heads"], "chunk": chunk})
    right = [
        *closed_form(SETTINGS["scan"]),
        Term(Fraction(6 * chunk), (*per_step, "seq"), "scan"),
        Term(Fraction(12), (*per_step, "hidden_size", "seq"), "scan"),
        Term(Fraction(-2 * (3 + 2) * chunk), (*per_step, "hidden_size"), "scan"),
    ]
    quote = explain("scan", make_function(right))
    assert (quote.causes, quote.residual, quote.terms) == ({}, 0, ())
    left_out = explain("scan", make_function(right[:-1]))
    assert (list(left_out.causes), left_out.residual) == ([Cause.FORMULA_DIFFERS.value], 0)


def test_a_function_with_a_state_is_refused_before_it_is_searched() -> None:
    """Its number grows by 1 with each call, a line along every size: once at the user's sizes, and twice at one other point."""
    right, calls = make_function(closed_form(SETTINGS["grouped heads"])), list[int]()

    def flops(config: Any, batch: int, seq: int) -> Any:
        calls.append(1)
        return right(config, batch, seq) + len(calls)

    assert explain("grouped heads", flops).step is None
    assert len(calls) == 3


def test_a_step_on_a_device_is_held_to_products_on_meta() -> None:
    """Two calls of half of the batch on the CPU, where one kernel is the whole attention of a layer."""
    name = "grouped heads"
    model, terms = Decoder(Config(SETTINGS[name])), closed_form(SETTINGS[name])
    with reconcile.count(model) as step:
        for _ in range(2):
            model(torch.zeros(BATCH // 2, SEQ, dtype=torch.int64)).sum().backward()
    (own,) = step.collected.traces
    assert isinstance(own, Trace)
    (*_, attention, head, mlp) = terms
    halved = [*terms[:2], attention._replace(coefficient=attention.coefficient / 2), head, mlp]
    functions = {"right": make_function(terms), "half": make_function(halved)}
    asked = Functions(functions, SETTINGS[name], BATCH, SEQ, True, False, take, Config)
    right, half = explain_functions(asked, own)
    assert (right.causes, right.residual) == ({}, 0)
    assert (list(half.causes), half.residual) == ([Cause.ATTENTION_HALVED.value], 0)


def test_pairs_times_another_width_are_no_parameters() -> None:
    """6 B T^2 h of a model whose heads are wider than it is: attention did not run so."""
    terms = closed_form(SETTINGS["grouped heads"])
    terms[2] = Term(Fraction(6 * LAYERS), ("batch", "seq", "seq", "hidden_size"), "attention")
    quote = explain("grouped heads", make_function(terms))
    assert set(quote.causes) == {Cause.ATTENTION_LEFT_OUT.value, Cause.FORMULA_DIFFERS.value}


@pytest.mark.parametrize("fixed", [("vocab_size",), ("vocab_size", "hidden_size", "head_dim")])
def test_sizes_of_which_no_other_model_can_be_made_keep_their_values(fixed: tuple[str, ...]) -> None:
    """The others vary: a feed-forward that is counted twice is named by its letter."""
    known = dict(SETTINGS["grouped heads"])

    def take_known(settings: Mapping[str, Any], batch: int, seq: int) -> Trace:
        if any(settings[field] != known[field] for field in fixed):
            raise UsageError("the model cannot be made.")
        return take(settings, batch, seq)

    (*others, mlp) = closed_form(known)
    twice = make_function([*others, mlp._replace(coefficient=2 * mlp.coefficient)])
    asked = Functions({"flops": twice}, known, BATCH, SEQ, True, False, take_known, Config)
    (quote,) = explain_functions(asked, take(known, BATCH, SEQ))
    (line,) = quote.terms
    assert (list(quote.causes), quote.residual) == ([Cause.FORMULA_DIFFERS.value], 0)
    assert {" f"} == {letter for letter in (" f", " V", " d") if letter in line}
