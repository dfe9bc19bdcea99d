"""Formulas of inference beside real steps of models of transformers: a token that meets a cache, and a prompt."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from reconcile.core.causes import Cause
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments.provision import ensure
from tests.own.one_process import Commands, started

FOLDER = Path(__file__).parent
B, T, L, H, N, K, D, F, V, E, A, W = 2, 6, 2, 24, 4, 2, 10, 36, 40, 4, 3, 4
"""Those of serving_models.py."""
CONTEXT = 9
NARROW = H // N

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(600)]


class Model(NamedTuple):
    """Widths of a model: of a head, key heads, matrices of the feed-forward, their width, keys that a layer keeps."""

    d: int = NARROW
    k: int = K
    m: int = 3
    f: int = F
    window: int = 0
    routed: bool = False

    def products(self, tokens: int, keys: int, logits: int, m: int, d: int, gate: bool) -> int:
        """FLOPs of ``tokens`` that each meet ``keys``, with logits of this number of tokens, for assumed widths."""
        attention = H * (N * self.d + 2 * self.k * self.d) + N * self.d * H
        layer = attention + m * H * self.f * (A if self.routed else 1) + (H * E if gate and self.routed else 0)
        met = min(keys, self.window) if self.window else keys
        return 2 * B * (tokens * L * (layer + 2 * N * d * met) + logits * H * V)

    def ran(self, tokens: int, keys: int) -> int:
        return self.products(tokens, keys, tokens, self.m, self.d, gate=True)

    def vllm(self, tokens: int, keys: int) -> int:
        """Three matrices in every model, no router, and the logits of the last token."""
        return self.products(tokens, keys, 1, 3, self.d, gate=False)

    def nanochat(self, tokens: int, keys: int) -> int:
        """Heads of H // N."""
        return self.products(tokens, keys, tokens, self.m, NARROW, gate=True)


MODELS = {
    "llama": Model(),
    "qwen3": Model(d=D),
    "gpt2": Model(k=N, m=2, f=4 * H),
    "mixtral": Model(routed=True),
    "mistral": Model(window=W),
}
CAUSES = {
    ("vllm", "gpt2"): {Cause.FORMULA_DIFFERS},
    ("vllm", "mixtral"): {Cause.OP_NOT_COUNTED},
    ("nanochat-decode", "qwen3"): {Cause.WIDTH_ASSUMED},
}
"""Why a formula differs from a decoding step; the others are exact."""


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    """`reconcile` beside transformers; its workers are forked."""
    with started(str(ensure(environments.load(FOLDER / "llm.toml")["llm"])), "warm") as made:
        yield made


def counted(commands: Commands, folder: Path, name: str, *words: str) -> dict[str, tuple[int, int, dict[str, int]]]:
    """By formula: FLOPs, what ran, and the causes between them; the residual is 0."""
    shutil.copy(FOLDER / "serving_models.py", folder)
    done = commands("run", "--torch", f"serving_models:{name}", *words, "--out", "out", "-q", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (folder / "out").glob("*.json")
    told = {}
    for statement in json.loads(file.read_text())["statements"]:
        if statement["state"] == "not_comparable":
            continue
        assert statement["residual"] == 0
        causes: dict[str, int] = {}
        for line in statement["adjustments"]:
            causes[line["cause"]] = causes.get(line["cause"], 0) + line["amount"]
        told[statement["from"].rpartition(":")[2]] = (statement["from_total"], statement["to_total"], causes)
    return told


@pytest.mark.parametrize("name", MODELS)
def test_a_decoding_step(name: str, commands: Commands, tmp_path: Path) -> None:
    model, step = MODELS[name], (1, CONTEXT + 1)
    words = ("--pass", "decode", "--context", str(CONTEXT), "--counter", "formula:vllm", "--counter")
    told = counted(commands, tmp_path, name, *words, "formula:nanochat-decode")
    assert told["vllm"][:2] == (model.vllm(*step), model.ran(*step))
    if name == "mixtral":
        assert set(told) == {"vllm"}  # nanochat has no term for experts
    else:
        assert told["nanochat-decode"][:2] == (model.nanochat(*step), model.ran(*step))
    assert {formula: set(causes) for formula, (_, _, causes) in told.items()} == {
        formula: CAUSES.get((formula, name), set()) for formula in told
    }


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_prompt(name: str, commands: Commands, tmp_path: Path) -> None:
    model = MODELS[name]
    told = counted(commands, tmp_path, name, "--pass", "prefill", "--counter", "formula:vllm")
    assert told["vllm"][:2] == (model.vllm(T, T), model.ran(T, T))
    assert set(told["vllm"][2]) == {Cause.FORMULA_DIFFERS}
