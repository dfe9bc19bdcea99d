"""A shell completes commands, options and names; its script is what click makes, and a real bash takes it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("reconcile expl", ["explain"]),
        ("reconcile explain loop", ["loop-counted-once"]),
        ("reconcile explain caus", ["causes", "causal"]),
        ("reconcile zoo s", ["scorecard"]),
        ("reconcile counter ", ["new", "conform", "draft", "reproduce"]),
        ("reconcile zoo gallery --mod", ["--model"]),
        ("reconcile run --convention-f", ["--convention-file"]),
        ("reconcile run --model gru", ["gru_demo"]),
        ("reconcile run --counter th", ["thop"]),
        ("reconcile run --to trace", ["trace@tf", "trace@torch", "trace@onnx", "trace@jax"]),
        ("reconcile run --convention m", ["matmul"]),
        ("reconcile run --model nothing", [""]),
    ],
)
def test_bash_completes(tmp_path: Path, words: str, found: list[str]) -> None:
    tool = tmp_path / "reconcile"
    tool.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m reconcile "$@"\n'
    )
    tool.chmod(0o755)
    given = " ".join(map(shlex.quote, words.split(" ")))
    script = f"""
        eval "$(_RECONCILE_COMPLETE=bash_source reconcile)"
        COMP_WORDS=({given}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMPREPLY=()
        _reconcile_completion reconcile
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environ, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (found, "")
