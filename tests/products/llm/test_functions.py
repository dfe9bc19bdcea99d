"""Functions of one's own beside what ran: planted errors in formulas of five architectures are named, and nothing is fitted."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import reconcile
from reconcile.core.causes import Cause
from reconcile.core.errors import UsageError
from reconcile.core.records import Trace
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import run_request
from reconcile.products.llm.comparison import Quote
from reconcile.products.llm.functions.differences import Difference, find_differences
from reconcile.products.llm.functions.explain import Functions, explain_functions
from reconcile.products.llm.functions.free_sizes import read_sizes
from reconcile.products.llm.functions.function import NoCount, call_function, make_exact
from reconcile.products.llm.functions.interpolate import find_polynomial
from reconcile.products.llm.functions.trace_terms import Product, find_products

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks

BATCH, SEQ, LAYERS = 2, 48, 3
ARCHITECTURES: dict[str, dict[str, int]] = {
    "heads as wide as the model": {"hidden_size": 96, "num_attention_heads": 6},
    "grouped heads": {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20},
    "odd widths": {"hidden_size": 50, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 18},
    "experts": {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "head_dim": 24,
        "num_experts": 10,
        "num_experts_per_tok": 3,
    },
    "two matrices": {
        "hidden_size": 72,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "head_dim": 12,
        "matrices": 2,
    },
}
"""The settings of five decoders, beside a feed-forward of 136 and a vocabulary of 330."""
SETTINGS = {name: {"intermediate_size": 136, "vocab_size": 330, **own} for name, own in ARCHITECTURES.items()}


class Config(SimpleNamespace):
    """The settings with what a decoder takes where they state nothing."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(**settings, num_hidden_layers=LAYERS)
        self.head_dim = settings.get("head_dim", self.hidden_size // self.num_attention_heads)
        self.num_key_value_heads = settings.get("num_key_value_heads", self.num_attention_heads)
        self.matrices = settings.get("matrices", 3)


class Attention(torch.nn.Module):
    """Attention of n heads on k pairs of keys and values."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.c, kv = c, c.num_key_value_heads * c.head_dim
        self.q = torch.nn.Linear(c.hidden_size, c.num_attention_heads * c.head_dim)
        self.k, self.v = torch.nn.Linear(c.hidden_size, kv), torch.nn.Linear(c.hidden_size, kv)
        self.o = torch.nn.Linear(c.num_attention_heads * c.head_dim, c.hidden_size)

    def forward(self, x: Any) -> Any:
        c, shape = self.c, (*x.shape[:2], -1, self.c.head_dim)
        q, k, v = (layer(x).view(shape).transpose(1, 2) for layer in (self.q, self.k, self.v))
        k, v = (each.repeat_interleave(c.num_attention_heads // c.num_key_value_heads, 1) for each in (k, v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.o(y.transpose(1, 2).flatten(2))


class FeedForward(torch.nn.Module):
    """Two matrices, or three with a gate."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        h, f = c.hidden_size, c.intermediate_size
        self.gate, self.up = torch.nn.Linear(h, f), torch.nn.Linear(h, f) if c.matrices == 3 else None
        self.down = torch.nn.Linear(f, h)

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.gate(x))
        return self.down(y * self.up(x) if self.up is not None else y)


class Layer(torch.nn.Module):
    """Attention, and a feed-forward or the experts that a router weighs; every token meets the first ones."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.attention, experts = Attention(c), getattr(c, "num_experts", 0)
        self.router = torch.nn.Linear(c.hidden_size, experts) if experts else None
        self.mlp = torch.nn.ModuleList(FeedForward(c) for _ in range(getattr(c, "num_experts_per_tok", 1)))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(x)
        weight = self.router(x).softmax(-1) if self.router is not None else torch.ones(1, device=x.device)
        return x + sum(mlp(x) * weight[..., :1] for mlp in self.mlp)


class Scan(torch.nn.Module):
    """A state that each chunk of a sequence but the first reads, and that each adds to."""

    def __init__(self, chunk: int) -> None:
        super().__init__()
        self.chunk = chunk

    def forward(self, x: Any) -> Any:
        state, found = None, []
        for part in x.split(self.chunk, 1):
            scores = torch.bmm(part, part.transpose(1, 2)).sum(-1, keepdim=True)
            found.append(scores if state is None else scores + torch.bmm(part, state))
            added = torch.bmm(part.transpose(1, 2), part)
            state = added if state is None else state + added
        return x + torch.cat([each.expand(x.shape[0], -1, x.shape[2]) for each in found], 1)


class Decoder(torch.nn.Module):
    """Layers between a table and a head of its own."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = torch.nn.ModuleList(Layer(c) for _ in range(LAYERS))
        self.head = torch.nn.Linear(c.hidden_size, c.vocab_size)
        self.scan = Scan(c.chunk) if hasattr(c, "chunk") else torch.nn.Identity()
        more = getattr(c, "more", 0)
        self.odd = torch.nn.Linear(c.hidden_size + more, c.hidden_size + more + 4) if more else None

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        if self.odd is not None:
            x = self.odd(torch.nn.functional.pad(x, (0, self.odd.in_features - x.shape[-1])))[..., : x.shape[-1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.scan(x))


def take(settings: Mapping[str, Any], batch: int, seq: int) -> Trace:
    """The trace of a decoder's training step, on meta."""

    def make() -> Any:
        with torch.device("meta"):
            return Decoder(Config(settings)), (torch.zeros(batch, seq, dtype=torch.int64),)

    found = collect_live({"torch": make}, None, run_request(counters=("formula:6n",), pass_="training"), lambda _: None)
    (trace,) = found.traces
    assert isinstance(trace, Trace)
    return trace


class Term(NamedTuple):
    """A coefficient of a training step, the sizes that it multiplies, and where its products are."""

    coefficient: Fraction
    sizes: tuple[str, ...]
    place: str


def closed_form(settings: Mapping[str, Any]) -> list[Term]:
    """What a training step multiplies: three products of 2 FLOPs for each weight and token; attention, twice each pair."""
    h, n, d, k = "hidden_size", "num_attention_heads", "head_dim", "num_key_value_heads"
    matrices, tokens, each = settings.get("matrices", 3), ("batch", "seq"), Fraction(6 * LAYERS)
    terms = [
        Term(2 * each, (*tokens, h, n, d), "attention"),
        Term(2 * each, (*tokens, h, k, d), "attention"),
        Term(2 * each, (*tokens, "seq", n, d), "attention"),
        Term(Fraction(6), (*tokens, h, "vocab_size"), "head"),
    ]
    if "num_experts" in settings:
        terms.append(Term(each, (*tokens, h, "num_experts"), "router"))
        return [*terms, Term(matrices * each, (*tokens, h, "intermediate_size", "num_experts_per_tok"), "mlp")]
    return [*terms, Term(matrices * each, (*tokens, h, "intermediate_size"), "mlp")]


def make_function(terms: Sequence[Term]) -> Any:
    """The function of a sum of terms, as somebody would write it: (config, batch, seq) to FLOPs."""

    def flops(config: Any, batch: int, seq: int) -> Any:
        known = {**vars(config), "batch": batch, "seq": seq}
        total = sum(term.coefficient * math.prod(known[name] for name in term.sizes) for term in terms)
        return int(total) if total == int(total) else float(total)

    return flops


def explain(name: str, function: Any, per_token: bool = False) -> Quote:
    """The quote of one function."""
    asked = Functions({"flops": function}, SETTINGS[name], BATCH, SEQ, True, per_token, take, Config)
    (quote,) = explain_functions(asked, take(SETTINGS[name], BATCH, SEQ))
    return quote


@pytest.mark.parametrize("name", SETTINGS)
def test_the_closed_form_is_exact(name: str) -> None:
    quote = explain(name, make_function(closed_form(SETTINGS[name])))
    assert (quote.causes, quote.residual, quote.terms) == ({}, 0, ())


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
