"""Cases of the formulas' rules: every term and every assumption with its closed form, for widths that are all different."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.adapters.counters.formulas.table import FORMULAS, parts
from reconcile.core.records import Op
from reconcile.work import Work
from tests.adapters.counters.cases import Case

B, T, L, H, N, K, D, F, V, E, A, FE, NS = 2, 16, 3, 32, 4, 2, 24, 48, 100, 8, 2, 20, 3
RQ, RKV = 12, 10
NARROW, TOKENS = H // N, B * T
FACTS = {
    "B": B, "T": T, "tokens": TOKENS, "L": L, "h": H, "n": N, "k": K, "d": D, "dqk": D, "dv": D, "f": F, "V": V, "m": 3, "E": E,
    "a": A, "fe": FE, "ns": NS, "moe": False, "tied": False, "model_type": "", "whole": "", "config_class": "Config",
    "context": 0, "index": 0, "window": 0, "sliding": 0, "stated": [],
}  # fmt: skip
MATRIX = {
    **FACTS, "shape": [F, H], "numel": F * H, "embedding": False, "positions": False, "inside": True, "routed": False,
    "owners": [""], "kinds": ["Linear"], "block_norm": False,
}  # fmt: skip


def case(op: str, mac: int, special: int = 0, **facts: object) -> Case:
    """A case of one part of a term in any release of torch."""
    attrs = {**(MATRIX if op.split("/")[1] == "parameter" else FACTS), **facts}
    return Case(Op("x", op, "", (), (), attrs), ("2.13.0",), 2 * mac + special, Work(mac=mac, special=special))


def heads(d: int = D, k: int = K) -> int:
    """Projections of d wide heads."""
    return TOKENS * (H * (N * d + 2 * k * d) + N * d * H)


def mlp(m: int = 3, f: int = F) -> int:
    """The feed-forward of m matrices."""
    return TOKENS * m * H * f


def pairs(d: int = D) -> int:
    """Attention on T^2 pairs."""
    return 2 * B * N * d * T**2


EVERY = F * H * TOKENS
HEAD = TOKENS * H * V
PADDED = TOKENS * H * 128
SOFTMAX = 3 * B * N * T**2
WIDTH = heads(NARROW) - heads()
KEYS = heads(NARROW, N) - heads(NARROW)
MIX = (A + NS) * FE
EXPERTS = {"routed": True}
COOKBOOK = ("cookbook", "cookbook-plain")
MEGATRON = ("megatron", "megatron-mtp", "megatron-dsa", "megatron-bridge")
CHOOSES = ("nemo", "verl")
"""Formulas that take things for granted by a configuration's class or type."""


def having(part: str, *but: str) -> list[str]:
    """The formulas that have a term, or take something for granted in it, but these."""
    return [name for name in FORMULAS if f"{name}/{part}" in parts(name) and name not in but]


LLAMA, GPT2, DEEPSEEK = ({"config_class": f"{name}Config"} for name in ("Llama", "GPT2", "DeepseekV3"))
LATENT = {"rq": RQ, "rkv": RKV, "drope": 6, "dqk": 11, "dv": 9}


def _parameters() -> Iterator[Case]:
    for name in having("parameter"):
        yield case(f"{name}/parameter", EVERY)
        yield case(f"{name}/parameter", EVERY * A // E, **EXPERTS)
    for name in having("parameter/all experts"):
        yield case(f"{name}/parameter/all experts", EVERY * (E - A) // E, **EXPERTS)
    yield case("hf-trainer/parameter/elements", F * H * (3 * 8 * 8 * B - TOKENS), elements=3 * 8 * 8 * B)
    yield case("hf-trainer/parameter/elements", 0, elements=TOKENS)
    for name in ("6n-nonembedding", "hf-trainer", "torchtitan", "torchtitan-main", "olmo-core"):
        yield case(f"{name}/parameter", 0, embedding=True)
    yield case("llm-foundry/parameter", 0, embedding=True, shape=[V, H])
    for name in ("torchtitan-main", "olmo-core", "llm-foundry"):
        yield case(f"{name}/parameter", EVERY, embedding=True, owners=["a", "b"])
    yield case("torchtitan/parameter", EVERY, embedding=True, tied=True)
    yield case("llm-foundry/parameter", EVERY, embedding=True, shape=[F, H])  # of positions, or of token types
    yield case("nanogpt/parameter", 0, embedding=True, positions=True)
    yield case("kaplan/parameter", 0, inside=False)
    yield case("olmo-core/parameter", 0, block_norm=True)
    yield case("nanochat/parameter", 0, kinds=["Embedding"])
    yield case("nanochat/parameter", EVERY, kinds=["Embedding", "Linear"])
    yield case("nanochat/parameter", EVERY, kinds=["Conv1D"])


def _attention() -> Iterator[Case]:
    for name in having("attention"):
        yield case(f"{name}/attention", pairs())
        yield case(f"{name}/attention", B * N * (11 + 9) * T**2, **LATENT)
    for name in having("attention/width", *CHOOSES):
        yield case(f"{name}/attention/width", pairs(NARROW) - pairs())
    for name in having("attention/T^2/2", "nemo", "nemo-llama3"):
        yield case(f"{name}/attention/T^2/2", -pairs() // 2)
    yield case("nanochat-prefill/attention/T(T+1)/2", B * N * NARROW * (T * (T + 1) - 2 * T**2))
    yield case("torchtitan-hf/attention/one product", -pairs() // 2)
    yield case("torchtitan-hf/attention/one product", B * N * (6 - 11 - 9) * T**2, **{**LATENT, "d": 6})
    yield from _windows()
    yield case("nemo/attention/width", pairs(NARROW) - pairs(), **LLAMA)
    yield case("nemo/attention/T^2/2", -pairs(NARROW) // 2, **LLAMA)
    yield case("nemo/attention/T^2/2", -pairs() // 2)
    yield case("nemo-llama3/attention/T^2/2", -pairs(NARROW) // 2)
    yield case("litgpt/attention again", pairs(NARROW))
    yield case("litgpt/attention/width", 2 * B * (H + 1) * T**2 - pairs(), h=H + 1)  # 4 heads are 33 wide
    yield case("nanogpt/attention/width", pairs(NARROW) - pairs(), h=H + 1)
    linear = {"linear": True, "lkd": 5, "lv": 6, "lvd": 7}
    for name in ("torchtitan", "torchtitan-main"):
        yield case(f"{name}/attention", 0, **linear)
    yield case("torchtitan-main/recurrence", 3 * 5 * 7 * 6 * TOKENS, **linear)
    yield case("torchtitan-main/recurrence", 0)
    for name in having("softmax"):
        yield case(f"{name}/softmax", 0, SOFTMAX)


def ramp(window: int) -> int:
    """Keys that the tokens see together under a causal mask and a window, token by token."""
    return sum(min(step + 1, window) for step in range(T))


def _windows() -> Iterator[Case]:
    wide, both = 5, B * N * 2 * D
    for name in ("torchtitan-main", "nanochat", "nanochat-prefill", "vllm", "olmo-core", "megatron-bridge"):
        yield case(f"{name}/attention/window", 0)
        yield case(f"{name}/attention/window", both * T * (wide - T), window=wide)
        yield case(f"{name}/attention/window", 0, window=T + 1)
    yield case("nanochat-prefill/attention/T(T+1)/2", B * N * 2 * NARROW * (ramp(wide) - T * wide), window=wide)
    yield case("megatron-bridge/attention/T^2/2", both * (ramp(wide) - T * wide), window=wide)
    yield case("megatron-bridge/attention/T^2/2", -both * T**2 // 2, window=T)
    for name in ("nanochat-decode", "vllm"):
        step = {"T": 1, "tokens": B, "context": 9}
        yield case(f"{name}/attention", both * 10, **step)
        yield case(f"{name}/attention/window", 0, **step, window=10)
        yield case(f"{name}/attention/window", both * (wide - 10), **step, window=wide)
    gemma = {"model_type": "gemma3_text", "sliding": 4}
    yield case("maxtext/attention/window", both * T * (4 - T), **gemma)
    yield case("maxtext/attention/window", 0, **gemma, index=5)
    yield case("maxtext/attention/window", 0, model_type="mistral", sliding=4, window=4)
    yield case("maxtext/attention/T^2/2", -both * 4**2 // 2, **gemma)
    yield case("maxtext/attention/T^2/2", -both * T**2 // 2, **gemma, index=5)


def _layers() -> Iterator[Case]:
    latent = TOKENS * (RQ * (H + N * 11) + H * (RKV + 6) + RKV * N * (5 + 9) + N * 9 * H)
    for name in having("weights"):
        yield case(f"{name}/weights", heads() + mlp())
        yield case(f"{name}/weights", heads() + mlp(f=MIX), moe=True)
        yield case(f"{name}/weights", latent + mlp(), **LATENT)
    for name in having("router"):
        yield case(f"{name}/router", TOKENS * H * E, moe=True)
    for name in having("weights/width", *CHOOSES):
        yield case(f"{name}/weights/width", WIDTH)
    for name in having("weights/key heads", "nemo", "levanter"):
        yield case(f"{name}/weights/key heads", KEYS)
        yield case(f"{name}/weights/two matrices", -mlp(1))
    for name in COOKBOOK:
        yield case(f"{name}/weights/feed-forward", mlp(f=4 * H) - mlp())
        yield case(f"{name}/weights/experts", (A + NS) * mlp(f=4 * H - FE), moe=True)
        yield case(f"{name}/weights/experts", 0, E=0)
        yield case(f"{name}/weights/every layer", mlp(f=4 * H * (A + NS)) - mlp(f=4 * H))
        yield case(f"{name}/weights/no shared expert", -NS * mlp(f=4 * H), moe=True)
    for name in having("router/every layer", "verl"):
        yield case(f"{name}/router/every layer", TOKENS * H * E)
    yield case("maxtext/weights/every layer", mlp(f=MIX) - mlp())
    yield case("maxtext/weights/every layer", 0, dense=1)
    yield case("maxtext/weights/no shared expert", -mlp(f=NS * FE), moe=True)
    yield case("maxtext/weights/no shared expert", 0, **LATENT, moe=True)
    yield case("megatron/weights", heads() + mlp(f=A * FE + 11), moe=True, fs=11)
    yield case("levanter/weights/shared width", mlp(f=NS * FE - 11), moe=True, fs=11)
    yield case("vllm/weights/shared experts", -mlp(f=NS * FE), moe=True)
    yield case("vllm/weights/shared experts", mlp(f=NS * FE - 11), moe=True, fs=11, stated=["num_shared_experts"])
    for name in ("gpt-neox", "gpt-neox-hfu"):
        yield case(f"{name}/weights/feed-forward", mlp(2, 4 * H) - mlp(2))
    yield case("levanter/weights/key heads", KEYS, model_type="mistral")
    yield case("levanter/weights/two matrices", -mlp(1), model_type="gemma2")
    for name in having("weights/three matrices", "nemo"):
        yield case(f"{name}/weights/three matrices", mlp(1), m=2)
    for name in ("trl", "trl-1.9", "verl"):
        yield case(f"{name}/weights/no shared expert", -mlp(f=NS * FE), moe=True)
    yield case("vllm/weights/feed-forward", mlp(f=4 * H) - mlp(), E=0)
    yield case("vllm/weights/feed-forward", 0, E=0, stated=["intermediate_size"])
    yield case(
        "vllm/weights/feed-forward", mlp(f=FE) - mlp(), E=0, stated=["intermediate_size", "intermediate_size_mlp"]
    )
    dense = {"stated": ["intermediate_size"], "moe": False}
    yield case("vllm/weights/layers with experts", mlp(f=MIX) - mlp(), **dense)
    yield case("vllm/weights/layers with experts", 0, **dense, E=0)
    yield case("vllm/weights/layers with experts", 0, **dense, dense=1, frequency=1)
    yield case("vllm/weights/layers with experts", mlp(f=MIX) - mlp(), **dense, dense=1, frequency=1, index=1)
    yield case("vllm/weights/layers with experts", mlp() - mlp(f=MIX), **{**dense, "moe": True}, step=2)
    for name in ("deepseek_v3", "hy_v3"):
        yield case("verl/weights/no shared expert", 0, moe=True, whole=name)
    yield from _verl()
    for name in ("trl", "trl-1.9"):
        yield case(f"{name}/weights/layers with experts", mlp(f=MIX) - mlp(), sparse=3)
        yield case(f"{name}/weights/layers with experts", mlp() - mlp(f=MIX), sparse=3, index=1, moe=True)
        yield case(f"{name}/weights/layers with experts", 0, a=0)
        yield case(f"{name}/router/layers with experts", TOKENS * H * E, sparse=3)
    yield case("levanter/weights/every layer", mlp(f=MIX) - mlp())
    yield case("levanter/weights/every layer", 0, E=0)
    yield case("nemo/weights/every layer", mlp(f=MIX) - mlp(), **LLAMA)
    yield case("nemo/weights/every layer", 0, **DEEPSEEK)
    yield case("nemo/weights/layers with experts", mlp(f=MIX) - mlp(), **DEEPSEEK, frequency=1)
    yield case("nemo/weights/layers with experts", 0, **DEEPSEEK)
    yield case("nemo/weights/width", WIDTH, **LLAMA)
    yield case("nemo/weights/three matrices", mlp(1), **LLAMA, m=2)
    yield case("nemo/weights/key heads", KEYS, **GPT2)
    yield case("nemo/weights/two matrices", -mlp(1), **GPT2)
    yield case("nemo/weights/feed-forward", mlp(2, 4 * H) - mlp(2), **GPT2)
    yield case("nemo/weights/no shared expert", -mlp(f=NS * FE), **LLAMA, moe=True)
    yield case("nemo/weights/one shared expert", -mlp(f=(NS - 1) * FE), **DEEPSEEK, moe=True)
    for name in MEGATRON:
        yield case(f"{name}/norms", TOKENS * (RQ + RKV), **LATENT)
    again = heads(NARROW) + mlp(f=4 * H) + pairs(NARROW)
    yield case("cookbook/recomputation", again, E=0)
    yield case("cookbook/recomputation", again + (A - 1) * mlp(f=4 * H) + TOKENS * H * E)
    yield case("gpt-neox-hfu/recomputation", 12 * H**2 * TOKENS + pairs(NARROW), E=0)


def _verl() -> Iterator[Case]:
    """The types of configuration that verl has a formula of its own for."""
    yield case("verl/weights/width", WIDTH, whole="qwen2_5_vl")
    yield case("verl/weights/width", 0, whole="qwen3_vl_moe")
    yield case("verl/attention/width", pairs(NARROW) - pairs(), whole="qwen3_vl")
    yield case("verl/weights/three matrices", 0, whole="apertus", m=2)
    for name in ("qwen2_moe", "gpt_oss", "hy_v3", "qwen3_vl_moe"):
        yield case("verl/weights/every layer", mlp(f=MIX) - mlp(), whole=name)
        yield case("verl/router/every layer", TOKENS * H * E, whole=name)
    yield case("verl/weights/every layer", 0, whole="deepseek_v3")
    wide, both = 5, B * N * 2 * D
    for name in ("gemma3_text", "gpt_oss"):
        yield case("verl/attention/window", both * T * (wide - T), whole=name, window=wide)
        yield case("verl/attention/T^2/2", -both * T * wide // 2, whole=name, window=wide)
    yield case("verl/attention/window", 0, whole="mistral", window=wide)
    yield case("verl/attention/T^2/2", -both * T**2 // 2, whole="mistral", window=0)
    yield case("verl/norms", TOKENS * (H + K * D), whole="apertus")
    yield case("verl/norms", 0, whole="qwen3")
    keys, values, conv = 3 * 5, 6 * 7, 4
    mixed = {"lk": 3, "lkd": 5, "lv": 6, "lvd": 7, "conv": conv, "fs": 11, "whole": "qwen3_5_moe"}
    dense, linear = {**mixed, "whole": "qwen3_5", "E": 0}, {"linear": True}
    projected = TOKENS * (H * (2 * keys + 3 * values + 2 * 6) + conv * (2 * keys + values))
    shared = TOKENS * H  # its gate
    yield case("verl/weights", heads() + TOKENS * H * N * D + mlp(), **dense)
    yield case("verl/weights", projected + mlp(), **dense, **linear)
    yield case("verl/weights", projected + mlp(f=A * FE + 11) + shared, **mixed, **linear, moe=True)
    yield case("verl/attention", 0, **dense, **linear)
    yield case("verl/recurrence", 0, 5 * 5 * 7 * 6 * TOKENS, **dense, **linear)
    yield case("verl/recurrence", 0, **dense)


def _heads() -> Iterator[Case]:
    for name in having("head"):
        yield case(f"{name}/head", HEAD)
    for name in having("head/padding"):
        yield case(f"{name}/head/padding", PADDED - HEAD)
    yield case("gpt-neox/head/quarter", -PADDED // 4)
    yield case("nemo-llama3/head/vocabulary", TOKENS * H * 128256 - HEAD)
    yield case("vllm/head/last token", B * H * V - HEAD)
    for name in having("lookup"):
        yield case(f"{name}/lookup", HEAD)
    yield case("trl-1.9/lookup", 0, tied=True)
    for name in COOKBOOK:
        yield case(f"{name}/embedding", 0, 4 * H * TOKENS)


def _documents() -> Iterator[Case]:
    """Documents of 6 and 10 tokens in each sequence: a formula that knows nothing of them has pairs of two documents, too."""
    across = B * N * 2 * D * (T**2 - 6**2 - 10**2)
    for name in having("attention/one document", "megatron-bridge"):
        yield case(f"{name}/attention/one document", across, lengths=[6, 10])
        yield case(f"{name}/attention/one document", 0)
    for name in (*MEGATRON, "verl"):
        yield case(f"{name}/attention", B * N * 2 * D * (6**2 + 10**2), lengths=[6, 10])
    yield case("megatron-bridge/attention/one document", across, lengths=[6, 10], window=5)
    yield case("megatron-bridge/attention/one document", 0, lengths=[6, 10])


HI, DI, TOPK = 3, 7, 5
SPARSE = {**LATENT, "hi": HI, "di": DI, "topk": TOPK, "often": 2, "skip": 1, "nextn": 2, "indexed": True, "last": False}
INDEX = TOKENS * (RQ * HI * DI + H * DI + H * HI)
SCORES = B * HI * (DI + 1) * T**2


def _sparse() -> Iterator[Case]:
    """Layers 1, 3 and 5 have an indexer by the schedule: of two further ones after L = 3 it is the second."""
    shared = {**SPARSE, "indexed": False}
    two = B * N * (11 + 9)
    absorbed = B * N * (2 * RKV + 6)
    half = sum(min(step, TOPK) + min(step + 1, TOPK) for step in range(T))
    for name in ("megatron-dsa", "megatron-bridge", "maxtext"):
        wide = absorbed if name == "megatron-bridge" else two
        yield case(f"{name}/attention/chosen keys", wide * (TOPK * T - T**2), **SPARSE)
        yield case(f"{name}/indexer", INDEX, **SPARSE)
        yield case(f"{name}/scores", SCORES, **SPARSE)
    for name in ("megatron-dsa", "megatron-bridge"):
        for term, amount in (("indexer", INDEX), ("scores", SCORES)):
            yield case(f"{name}/{term}/schedule", amount, **shared)
            yield case(f"{name}/{term}/schedule", -amount, **{**SPARSE, "index": 1})
    for term, amount in (("indexer", INDEX), ("scores", SCORES)):
        yield case(f"maxtext/{term}/every layer", amount, **shared)
        yield case(f"maxtext/{term}/skipped", -amount, **{**SPARSE, "topk": T})
        yield case(f"maxtext/{term}/skipped", 0, **SPARSE)
    yield case("maxtext/scores/T^2/2", -SCORES // 2, **SPARSE)
    yield case("maxtext/scores/one document", B * HI * (DI + 1) * (T**2 - 6**2 - 10**2), **SPARSE, lengths=[6, 10])
    yield case("maxtext/attention/chosen keys", 0, **{**SPARSE, "topk": T})
    yield case("megatron-dsa/attention/T^2/2", two * half // 2 - two * TOPK * T, **SPARSE)
    yield case("megatron-dsa/scores/no sum", -B * HI * T**2, **SPARSE)
    yield case("megatron-dsa/scores/T^2/2", -B * HI * DI * T**2 // 2, **SPARSE)
    yield case("megatron-bridge/attention/absorbed", (absorbed - two) * T**2, **SPARSE)
    yield case("megatron-bridge/attention/T^2/2", absorbed * (ramp(TOPK) - TOPK * T), **SPARSE)
    yield case("megatron-bridge/scores/T(T+1)/2", -B * HI * (DI + 1) * T * (T - 1) // 2, **SPARSE)
    yield case("megatron-bridge/score gradients", B * HI * (DI + 1) * ramp(TOPK), **SPARSE)
    yield case("megatron-bridge/teacher", B * N * (RKV + 6) * ramp(TOPK), **SPARSE)
    yield case("megatron-bridge/teacher", 0, **{**SPARSE, "index": 1})
    latent = TOKENS * (RQ * (H + N * 11 + 1) + H * (RKV + 6) + RKV * (N * (5 + 9) + 1) + N * 9 * H)
    further = latent + mlp() + TOKENS * (3 * H + 2 * H * H) + PADDED
    for name in ("megatron-mtp", "megatron-bridge"):
        yield case(f"{name}/multi-token prediction", 2 * further + two * T**2, **SPARSE)
    yield case("megatron-bridge/multi-token prediction", 0, **{**SPARSE, "model_type": "glm_moe_dsa"})
    scores = B * HI * DI * T**2 // 2
    yield case("megatron-dsa/multi-token prediction", 2 * further + two * half + scores, **SPARSE)
    yield case("megatron-dsa/its indexers", INDEX, **SPARSE)


CASES = [*_parameters(), *_attention(), *_layers(), *_heads(), *_documents(), *_sparse()]
FAMILIES = {"formula": (("2.13.0",), CASES)}
