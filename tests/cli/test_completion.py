"""A shell completes commands, options and names; its script is what click makes, and a real bash takes it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from reconcile.cli import cli

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("expl", ["explain"]),
        ("explain loop", ["loop-counted-once"]),
        ("explain caus", ["causes", "causal"]),
        ("zoo s", ["scorecard"]),
        ("counter ", ["new", "conform", "draft", "reproduce"]),
        ("zoo gallery --mod", ["--model"]),
        ("run --convention-f", ["--convention-file"]),
        ("run --model gru", ["gru_demo"]),
        ("run --counter th", ["thop"]),
        ("run --to trace", ["trace@tf", "trace@torch", "trace@onnx", "trace@tflite", "trace@jax"]),
        ("run --convention m", ["matmul"]),
        ("run --model nothing", []),
    ],
)
def test_words_are_completed(words: str, found: list[str]) -> None:
    *args, incomplete = words.split(" ")
    shell = BashComplete(cli, {}, "reconcile", "_RECONCILE_COMPLETE")
    assert [item.value for item in shell.get_completions(args, incomplete)] == found


def test_bash_completes(tmp_path: Path) -> None:
    tool = tmp_path / "reconcile"
    tool.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m reconcile "$@"\n'
    )
    tool.chmod(0o755)
    script = """
        eval "$(_RECONCILE_COMPLETE=bash_source reconcile)"
        COMP_WORDS=(reconcile explain caus); COMP_CWORD=2; COMPREPLY=()
        _reconcile_completion reconcile
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environ, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (["causes", "causal"], "")
