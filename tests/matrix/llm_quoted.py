"""Ratios that are quoted for the formulas, beside those that their sources give: a table of reports/llm.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SEQ = 8192
MODELS = ("llama-3-8b", "smollm-135m")


class Quoted(NamedTuple):
    """The ratios that are quoted for a training step of each of ``MODELS`` at ``SEQ`` tokens, to products with whole attention.

    ``formula`` is its name here, or 'causal' for what ran without masked products; ``why`` says who is right where they differ.
    """

    name: str
    formula: str
    ratios: tuple[str, str]
    why: str = ""


QUOTED = (
    Quoted("HF Trainer", "hf-trainer", ("0.7775", "0.2543")),
    Quoted("6 N", "6n", ("0.8320", "0.3221")),
    Quoted("Kaplan", "kaplan", ("0.8343", "0.5932")),
    Quoted("Megatron-LM", "megatron", ("0.8888", "0.6610")),
    Quoted("MaxText", "maxtext", ("0.8888", "0.6610")),
    Quoted("without masked products", "causal", ("0.8888", "0.6611")),
    Quoted("verl", "verl", ("0.9432", "0.7288")),
    Quoted(
        "cookbook",
        "cookbook",
        ("0.9637", "0.9548"),
        "The source: it takes the feed-forward for 4 h wide, whatever the model's is, and by default counts a "
        "recomputation. The quoted number is what ran - 4 h V + 4 h, with the model's width and without recomputation.",
    ),
    Quoted("torchtitan", "torchtitan", ("1.0000", "1.0001")),
    Quoted(
        "OLMo-core",
        "olmo-core",
        ("1.0000", "1.0001"),
        "The source: it leaves the norms of the blocks out, so that one norm remains of those that the quoted number contains.",
    ),
    Quoted("PaLM", "palm", ("1.0545", "1.0001")),
    Quoted("nanoGPT", "nanogpt", ("1.0545", "1.0001")),
    Quoted(
        "litgpt",
        "litgpt",
        ("1.0545", "1.0001"),
        "The source: it adds 4 L h T for each of five passes, 20 L h T. The quoted number is 6 N + 12 L h T.",
    ),
    Quoted(
        "Chinchilla",
        "chinchilla",
        ("1.0557", "1.0757"),
        "The source: its appendix knows two matrices in the feed-forward and as many key heads as query heads. The quoted number "
        "adds its look-up and softmax, 6 h V + 9 n L T, to the products of the model.",
    ),
    Quoted(
        "GPT-NeoX",
        "gpt-neox",
        ("1.9444", "3.7119"),
        "The source: 72 h^2 L (1 + T / 6 h + V / 16 L h). The quoted number is 6 N + 60 L h T, a line that is not GPT-NeoX's.",
    ),
)
INTRODUCTION = f"""\
## Ratios that are quoted

The same formulas are quoted with other ratios. This is a training step of {SEQ:,} tokens: first the ratio as quoted, then the
one that the formula has by its source.

"""


def table(sources: Mapping[str, Mapping[str, str]]) -> str:
    """The table; ``sources`` has the ratio of each formula by its source, for each model."""
    lines = [
        "| formula | " + " | ".join(f"{model}, quoted | by its source" for model in MODELS) + " | who is right |",
        "|:--|" + "--:|" * 2 * len(MODELS) + ":--|",
    ]
    for row in QUOTED:
        cells = [
            cell for model, said in zip(MODELS, row.ratios, strict=True) for cell in (said, sources[model][row.formula])
        ]
        lines.append(f"| {row.name} | " + " | ".join(cells) + f" | {row.why or 'both'} |")
    return INTRODUCTION + "\n".join(lines) + "\n\n"
