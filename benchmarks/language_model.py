"""What `reconcile llm` costs beside importing PyTorch and transformers and making the model on meta."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from measure import BARE, HERE, Section, median, table

from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments.provision import ensure

ROOT = HERE.parent
CONFIGURATIONS = ROOT / "tests/matrix/llm"
RUNS, SEQ, LIMIT, DEEP_LIMIT = 3, "4096", 2.0, 1.25
LAYERS = (8, 80)


def language_model() -> Section:
    """Processor seconds of whole processes: of models of 8 and 671 billion parameters, and of one with few layers and many."""
    section = Section("`reconcile llm` of a training step on meta")
    python = str(ensure(environments.load(ROOT / "tests/matrix/llm.toml")["llm"]))
    rows = []
    for name in ("llama-3-8b", "deepseek-v3"):
        file = CONFIGURATIONS / f"{name}.json"
        made, told = _seconds([python, str(BARE / "meta_model.py"), str(file)]), _seconds(_command(python, file))
        ratio = section.bound(name, told / made, LIMIT) if name == "llama-3-8b" else f"**{told / made:.2f}** times"
        rows.append((name, f"{told:.1f}", f"{made:.1f}", ratio))
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for layers in LAYERS:
            file = Path(folder) / f"{layers}.json"
            settings = json.loads((CONFIGURATIONS / "llama-3-8b.json").read_text())
            file.write_text(json.dumps({**settings, "num_hidden_layers": layers}))
            seconds.append(_seconds(_command(python, file)))
    few, many = seconds
    rows.append(
        (
            f"{LAYERS[1]} layers, {LAYERS[0]} layers",
            f"{many:.1f}",
            f"{few:.1f}",
            section.bound("layers", many / few, DEEP_LIMIT),
        )
    )
    section.lines = [
        f"Processor seconds of whole processes, medians of {RUNS} runs, beside those of a program that imports PyTorch and "
        "transformers and makes the model on meta; in the last row beside those of the same model with fewer layers.",
        "",
        *table(("model", "llm", "beside", "ratio"), rows),
    ]
    return section


def _command(python: str, file: Path) -> list[str]:
    return [python, "-m", "reconcile", "llm", str(file), "--seq", SEQ]


def _seconds(command: list[str]) -> float:
    """The median of a command's processor seconds."""
    found = []
    for _ in range(RUNS):
        before = os.times()
        subprocess.run(command, capture_output=True, cwd=ROOT)
        after = os.times()
        found.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return median(found)
