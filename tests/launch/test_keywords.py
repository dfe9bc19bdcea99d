"""Sentences for those who call Python: an option of the command line is a keyword argument there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import reconcile
from reconcile.core.errors import UsageError
from reconcile.launch.keywords import in_keywords, keywords_of, speaks_python

KEYWORDS = {**keywords_of(reconcile.run), "torch": "", "tf": "", "jax": "", "at": "Mapping[str, Any]", "image_size": ""}


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("give them with --input, such as --input 1,3,224,224, or", 'give them with inputs=, such as inputs="1,3,224,224", or'),
        ("--input 'B,4': B has no sizes", "inputs='B,4': B has no sizes"),
        ("give one with --tf MODULE:FUNCTION.", 'give one with tf="MODULE:FUNCTION".'),
        ("--pass prefill and --pass decode need", 'pass_="prefill" and pass_="decode" need'),
        ("add --context 128, say.", "add context=128, say."),
        ("--torch, --tf and --jax name", "torch=, tf= and jax= name"),
        ("with --counter thop@x.", 'with counters=["thop@x"].'),
        ("with --at B=LO..HI.", 'with at={"B": "LO..HI"}.'),
        ("or --set batch=B.", 'or overrides={"batch": "B"}.'),
        ("(--device cpu)", '(device="cpu")'),
        ("--python /no: it is not there", 'python="/no": it is not there'),
        ("leave --image-size out", "leave image_size= out"),
        ("--timeout SECONDS gives more", "timeout=SECONDS gives more"),
        ("count it with reconcile run --torch module:function.", "count it with reconcile run --torch module:function."),
        ("run `reconcile run --pass training`", "run `reconcile run --pass training`"),
        ("--trust-file lets it", "--trust-file lets it"),  # no argument does
        ("a--pass training", "a--pass training"),
    ],
)  # fmt: skip
def test_an_option_is_said_as_its_keyword(sentence: str, said: str) -> None:
    assert in_keywords(sentence, KEYWORDS) == said


@pytest.mark.parametrize(
    "call",
    [
        lambda: reconcile.run(model="gru_demo", inputs="1,3"),
        lambda: reconcile.run(model="gru_demo", overrides={}, torch="net:make"),
        lambda: reconcile.run(torch="net:make", overrides={"a": 1}),
        lambda: reconcile.run(torch="net:make", pass_="decode"),
        lambda: reconcile.run(torch="net:make", optimizer="sgd"),
        lambda: reconcile.run(torch="net:make", timeout=-1),
        lambda: reconcile.run(torch="net:make", counters=["tf.profiler@function"]),
        lambda: reconcile.run(torch="net:make", python="/no/such/python"),
        lambda: reconcile.polynomials(at={"B": "1..3"}),
        lambda: reconcile.polynomials(at={}, model="gru_demo"),
        lambda: reconcile.polynomials(at={"C": "1..3"}, torch="net:make", inputs="B,4"),
        lambda: reconcile.llm("gru_demo", seq=3),
        lambda: reconcile.llm("gru_demo", lora=3),
        lambda: reconcile.count(device="cuda"),
    ],
)
def test_no_function_of_the_interface_names_an_option(call: Callable[[], Any]) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert "--" not in str(caught.value).replace("reconcile mfu --peak", "")


def test_the_signature_stays() -> None:
    """Editors and ``help`` show it."""
    assert list(inspect.signature(reconcile.run).parameters)[:3] == ["torch", "tf", "inputs"]
    with pytest.raises(ValueError, match=r"^--device$"):  # another's error is left alone
        speaks_python()(_raise)(device="x")


def _raise(*, device: str) -> None:
    raise ValueError("--device")
