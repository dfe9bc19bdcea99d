"""What docs/counters/README.md says about figures that are not counters."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from docs.write import NOT_COUNTERS
from tests.pages.reading import programs

LOGGED = r"Estimated count of arithmetic ops: (\S+ ?M?) +ops, equivalently (\S+ ?M?) +MACs"


@pytest.mark.slow
@pytest.mark.parametrize(("units", "says"), [("12345", ("2.469 M", "1.234 M")), ("49", ("9800", "4900"))])
def test_the_converter_rounds_from_ten_thousand_on(units: str, says: tuple[str, str]) -> None:
    (code,) = programs(NOT_COUNTERS)
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}
    code = code.replace("12345", units)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert [tuple(part.strip() for part in found) for found in re.findall(LOGGED, done.stderr)] == [says]
    assert f" {units} " in NOT_COUNTERS or f"({units}," in NOT_COUNTERS


@pytest.mark.slow
def test_the_compilers_pass_cannot_be_run_on_tflites_ops() -> None:
    code = (
        "import tensorflow as tf\n"
        'text = \'func.func @main(%a: tensor<f32>) -> tensor<f32> {\\n %0 = "tfl.tanh"(%a) : (tensor<f32>) -> tensor<f32>\\n'
        " return %0 : tensor<f32>\\n}'\n"
        "tf.mlir.experimental.run_pass_pipeline(text, 'func.func(tfl-get-arithmetic-count)')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "operation being parsed with an unregistered dialect" in done.stderr
