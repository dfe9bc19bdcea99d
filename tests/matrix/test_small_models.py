"""Classes of transformers and diffusers from their rows: each does the work that the committed page of its sweep says.

The page has what the trace counted; here every kernel is counted as PyTorch dispatches it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.matrix.llm_page import python
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
MODELS = {
    "transformers": (
        "BertLMHeadModel", "MixtralForCausalLM", "Qwen2VLForConditionalGeneration", "T5ForConditionalGeneration",
        "ViTForImageClassification",
    ),
    "diffusers": ("AutoencoderKL", "FluxTransformer2DModel", "UNet2DModel"),
}  # fmt: skip
WITHOUT_A_ROW = {"transformers": ("BertModel", "BarkModel"), "diffusers": ()}
PROGRAM = """
import importlib, json, sys

library, *names = sys.argv[1:]
small_models = importlib.import_module(f"reconcile.products.sweep.small_models.{library}")
from tests.products.sweep.dispatch_count import count

for name in names:
    try:
        model, _, inputs = small_models.maker(getattr(importlib.import_module(library), name))()
        print("=", json.dumps([name, 2 * count(model, inputs)]))
    except small_models.table.Unfit as error:
        print("=", json.dumps([name, str(error)]))
"""


def page_work(library: str) -> dict[str, int]:
    """The work of products of every class in the committed page."""
    rows = re.findall(
        rf"^\| {library}\.(\w+) \| ([\d,]+) \|", (ROOT / "reports" / library / "README.md").read_text(), re.M
    )
    return {name: int(work.replace(",", "")) for name, work in rows}


@pytest.mark.parametrize("library", sorted(MODELS))
def test_a_class_does_the_work_of_the_committed_page(library: str) -> None:
    printed = output_of("-c", PROGRAM, library, *MODELS[library], *WITHOUT_A_ROW[library], python=python())
    found = dict(json.loads(line[1:]) for line in printed.splitlines() if line.startswith("= "))
    assert {name: found[name] for name in MODELS[library]} == {
        name: page_work(library)[name] for name in MODELS[library]
    }
    if library == "transformers":
        assert 0 < found["BertModel"] < found["BertLMHeadModel"]
        assert found["BarkModel"].startswith("no small model of BarkModel is known")
