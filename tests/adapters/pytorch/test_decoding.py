"""A language model's call with a cache: counts follow from sizes, and every counter meets a cache that is as full as asked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import reconcile
from reconcile.adapters.pytorch.decoding import copy_cache
from reconcile.core.causes import State
from reconcile.core.errors import UsageError
from reconcile.engine.answer import Answer
from reconcile.report.reports import stem

WIDTH, WORDS = 6, 5
WEIGHTS = 4 * WIDTH * WIDTH + WIDTH * WORDS
"""The weights that a token is multiplied by: queries, keys, values, output, and the head."""
COUNTERS = ("thop", "flop_counter", "torchinfo")


class Cache:
    """Keys and values, to which a call appends in place."""

    def __init__(self) -> None:
        self.layers: list[dict[str, torch.Tensor]] = []

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> dict[str, torch.Tensor]:
        if not self.layers:
            self.layers.append({"keys": keys, "values": values})
        else:
            layer = self.layers[0]
            layer["keys"] = torch.cat([layer["keys"], keys], 1)
            layer["values"] = torch.cat([layer["values"], values], 1)
        return self.layers[0]


class Decoder(nn.Module):
    """One head of attention, with the calling convention of transformers; ``remembers`` says whether it returns its cache."""

    remembers = True

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.queries, self.keys, self.values, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(
        self, input_ids: Any, attention_mask: Any = None, past_key_values: Any = None, use_cache: bool = False
    ) -> dict[str, Any]:
        x = self.embed(input_ids)
        cache = Cache() if past_key_values is None else past_key_values
        layer = cache.append(self.keys(x), self.values(x))
        if attention_mask is not None and attention_mask.shape[1] != layer["keys"].shape[1]:
            raise ValueError("the mask has another length than the cache")
        weights = torch.softmax(torch.matmul(self.queries(x), layer["keys"].transpose(1, 2)), -1)
        outputs = {"logits": self.head(self.out(torch.matmul(weights, layer["values"])))}
        return {**outputs, "past_key_values": cache} if use_cache and self.remembers else outputs


class Forgetful(Decoder):
    """Takes a cache and returns none."""

    remembers = False


class Translator(Decoder):
    """Has an encoder."""

    def forward(
        self, input_ids: Any, decoder_input_ids: Any, past_key_values: Any = None, use_cache: bool = False
    ) -> Any:
        return super().forward(input_ids, None, past_key_values, use_cache)


def products(batch: int, tokens: int, seen: int) -> int:
    """FLOPs of products for these many new tokens of each sequence, each of which attends to ``seen`` tokens."""
    return batch * tokens * (2 * WEIGHTS + 2 * 2 * WIDTH * seen)


def run(inputs: Any, **options: Any) -> Answer:
    return reconcile.run(torch=Decoder(), inputs=inputs, **{"counters": ("flop_counter",), **options}).result


def total(result: Answer) -> int:
    (trace,) = result.traces
    assert trace.state is State.EXPLAINED or trace.complete, trace.reason
    return trace.totals["matmul"]


@pytest.mark.parametrize(("batch", "context"), [(1, 1), (3, 7)])
def test_a_decoding_step_is_one_token_on_a_full_cache(batch: int, context: int) -> None:
    result = run(f"input_ids={batch},4:int64", pass_="decode", context=context, counters=COUNTERS)
    assert total(result) == products(batch, 1, context + 1)
    ledgers = {ledger.counter: ledger for ledger in result.ledgers}
    assert ledgers["flop_counter"].total == total(result)
    assert [name for name, ledger in ledgers.items() if ledger.state not in (State.EQUAL, State.EXPLAINED)] == []


def test_a_prompt_and_a_step_are_a_longer_prompt_but_the_mask() -> None:
    """Without a causal kernel, the earlier tokens of the longer prompt each have a product with the new key and value."""
    prompt, step = run("input_ids=2,7:int64", pass_="prefill"), run("input_ids=2,7:int64", pass_="decode", context=7)
    longer = run("input_ids=2,8:int64")
    assert total(prompt) == products(2, 7, 7) == total(run("input_ids=2,7:int64"))
    assert total(longer) - total(prompt) - total(step) == 2 * 7 * 2 * 2 * WIDTH


def test_a_mask_grows_with_the_cache() -> None:
    result = run(["input_ids=1,4:int64", "attention_mask=1,4:int64"], pass_="decode", context=5)
    assert total(result) == products(1, 1, 6)
    (inputs,) = result.inputs.values()
    assert (
        inputs
        == "input_ids=int64 (1, 1), attention_mask=int64 (1, 6), past_key_values=a cache of 5 tokens, use_cache=True"
    )


def test_the_results_name_the_pass() -> None:
    step = reconcile.run(torch=Decoder(), inputs="input_ids=1,4:int64", counters=["thop"], pass_="decode", context=5)
    assert step.result.pass_ == "decode with a cache of 5 tokens"
    assert "decoding step with a cache of 5 tokens of" in step.cite()
    (trace,) = step.result.traces
    assert [note for note in trace.notes if note.startswith("a decoding step with a cache of 5 tokens: ")]
    assert run("input_ids=1,4:int64", pass_="prefill").pass_ == "prefill"


def test_a_call_appends_to_a_cache_of_its_own() -> None:
    cache = Cache()
    cache.append(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3))
    taken = copy_cache(cache)
    taken.append(torch.zeros(1, 1, 3), torch.zeros(1, 1, 3))
    assert (cache.layers[0]["keys"].shape[1], taken.layers[0]["keys"].shape[1]) == (2, 3)
    assert copy_cache(cache).layers[0]["keys"] is cache.layers[0]["keys"]
    for plain in (True, "text", torch.float32, None):
        assert copy_cache(plain) is plain


@pytest.mark.parametrize(
    ("model", "inputs", "reason"),
    [
        (lambda: nn.Linear(3, 3), "1,3", "Linear has no cache to fill or to read"),
        (Translator, ["input_ids=1,4:int64", "decoder_input_ids=1,4:int64"], "Translator has an encoder"),
        (Forgetful, "input_ids=1,4:int64", "Forgetful returned no past_key_values"),
        (Decoder, "input_ids=4:int64", r"takes input_ids of \(batch, tokens\)"),
    ],
)
def test_other_models_are_refused_in_a_sentence(model: Any, inputs: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        reconcile.run(torch=model(), inputs=inputs, counters=COUNTERS, pass_="decode", context=5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"pass_": "decode"}, "add context=128"),
        ({"context": 5}, "a context applies only to a decoding step"),
        ({"pass_": "prefill", "context": 5}, "a context applies only to a decoding step"),
        ({"pass_": "decode", "context": 0}, "the context is a number of tokens"),
        ({"pass_": "decode", "context": -1}, "the context is a number of tokens"),
        ({"pass_": "decode", "context": 5, "optimizer": "sgd"}, "an optimizer applies only to a training step"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        reconcile.run(torch=Decoder(), inputs="input_ids=1,4:int64", counters=COUNTERS, **options)


def test_a_pair_and_tensorflow_are_refused() -> None:
    from reconcile.launch import choose
    from reconcile.launch.request import run_request

    for options in ({"model": "gpt2"}, {"torch": "net:make", "tf": "net:make"}):
        request = run_request(pass_="decode", context="5", **options)
        with pytest.raises(UsageError, match="--torch MODULE:FUNCTION"):
            choose.check_cached(request)


def test_the_files_of_a_pass_replace_no_others() -> None:
    names = [
        stem("net", pass_=name) for name in ("forward", "prefill", "decode with a cache of 1,024 tokens", "training")
    ]
    assert names == ["net", "net-prefill", "net-decode-1024", "net-training"]
