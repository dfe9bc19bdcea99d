"""The smaller published numbers (S1, S3, the convolution of S5 alone), on the versions they were taken on and today's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.test_seeds import (
    CONV,
    CONV_KERNEL,
    CONV_OUT,
    INPUT,
    TF_1,
    TF_2,
    THOP_2001,
    THOP_2005,
    THOP_2209,
    all_reconciled,
    causes,
    entries,
    load,
    statements,
    totals,
)

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(3600)]

SESSION = """
["session"]
title = "the session graph on the running TensorFlow"
python = "current"
frameworks = ["tf"]
requirements = []
counters = ["tf.profiler@session"]
"""
TODAY = ("tf.profiler@function", "tf.profiler@frozen", "tf.profiler@runmeta")
INIT = "initializer"


@pytest.fixture(scope="module")
def matrix(written: Callable[..., Path]) -> Callable[..., dict[str, Any]]:
    def of(model: str, *args: str) -> dict[str, Any]:
        folder = written(model, *args)
        assert (folder / "code").read_text() == "0", (folder / "screen").read_text()
        data = load(folder)
        all_reconciled(data)
        return data

    return of


def test_s1_one_product_is_2_and_the_rest_is_the_initialiser(matrix: Any) -> None:
    """2 * 1 * 1 * 1: a multiply and an add. Unfrozen, Glorot's Mul, Add and Sub of a kernel of one element stand beside."""
    data = matrix("conv1x1")
    for name in (TF_1, TF_2):
        env = name.partition(":")[0]
        assert totals(data)[name] == 2 + 3
        assert causes(statements(data)[name, f"{env}: trace@tf"]) == {(INIT, "conv"): -3}
        (ledger,) = next(e["ledgers"] for e in data["environments"] if e["name"] == env)
        assert [e["value"] for e in ledger["entries"] if e["op"] == "Conv2D"] == [2]
    for counter in TODAY:
        assert totals(data)[f"current: {counter}"] == 2
    for name in (THOP_2001, THOP_2005, THOP_2209, "current: thop"):
        assert totals(data)[name] == 2 * 1


def test_s3_8288_with_initialisers_7200_without(matrix: Any, tmp_path: Path) -> None:
    """(25, 16) x (16, 9): 2 * 25 * 16 * 9 = 7,200; random_normal is a Mul and an Add for each of 400 + 144 elements."""
    product, initialisers = 2 * 25 * 16 * 9, 2 * (25 * 16 + 16 * 9)
    assert (product, product + initialisers) == (7_200, 8_288)
    file = tmp_path / "session.toml"
    file.write_text(SESSION)
    names = ("tf-1.12", "tf-2.3.1", "session", "current")
    chosen = [word for name in names for word in ("--environment", name)]
    data = matrix("matmul_init", "--environments", str(file), *chosen)
    for env in names[:-1]:
        assert totals(data)[f"{env}: tf.profiler@session"] == 8_288
        lines = statements(data)[f"{env}: tf.profiler@session", f"{env}: trace@tf"]["adjustments"]
        assert {line["cause"] for line in lines} == {INIT}
        for op in ("Mul", "Add"):
            assert sum(line["amount"] for line in lines if line["op"].replace("V2", "") == op) == -initialisers // 2
    for counter in TODAY:
        assert totals(data)[f"current: {counter}"] == 7_200
    assert totals(data)["current: flop_counter"] == 7_200
    change = statements(data)["session: tf.profiler@session", "current: tf.profiler@function"]
    assert {cause for cause, _ in causes(change)} == {INIT}


def test_s5_the_convolution_alone_does_not_agree_and_why(matrix: Any) -> None:
    """13,061,089 against 13,403,072: the bias once or (a MAC, doubled) twice, and what is made in the session graph."""
    data = matrix("conv_only")
    made = {"conv": 2 * CONV_KERNEL + 1, "(model)": 2 * INPUT}
    for name in (TF_1, TF_2):
        assert totals(data)[name] == 2 * CONV + CONV_OUT + sum(made.values()) == 13_061_089
        found = causes(statements(data)[name, f"{name.partition(':')[0]}: trace@tf"])
        assert found == {
            **{(INIT, layer): -amount for layer, amount in made.items()},
            ("outside-convention", "conv"): -CONV_OUT,
        }
    for name in (THOP_2001, THOP_2005):
        assert totals(data)[name] == 2 * (CONV + CONV_OUT) == 13_403_072
        env = name.partition(":")[0]
        assert causes(statements(data)[name, f"{env}: trace@torch"]) == {("outside-convention", "conv"): -2 * CONV_OUT}
    assert totals(data)[THOP_2209] == 2 * CONV == 12_614_656
    assert entries(data, THOP_2209) == {"conv": CONV}
    for counter in TODAY:
        assert totals(data)[f"current: {counter}"] == 2 * CONV + CONV_OUT
    assert totals(data)["current: flop_counter"] == 2 * CONV


BROKEN = """
["py-3.5"]
title = "a Python that does not exist"
python = "3.5"
frameworks = ["tf"]
requirements = ["tensorflow==1.12.0"]

["no-such-release"]
title = "a release that does not exist"
python = "3.8"
frameworks = ["torch"]
requirements = ["torch==1.10.1.999"]
"""


def test_what_cannot_be_made_fails_its_own_cell_only(written: Callable[..., Path], tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(BROKEN)
    names = ("py-3.5", "tf-2.3.1", "no-such-release", "current")
    chosen = [word for name in names for word in ("--environment", name)]
    folder = written("conv1x1", "--environments", str(file), *chosen)
    assert (folder / "code").read_text() == "3"
    data = load(folder)
    cells = {env["name"]: env for env in data["environments"]}
    assert cells["py-3.5"]["state"] == cells["no-such-release"]["state"] == "failed"
    assert "there is no Python 3.5" in cells["py-3.5"]["reason"]
    assert "torch==1.10.1.999" in cells["no-such-release"]["reason"]
    assert (cells["tf-2.3.1"]["state"], cells["current"]["state"]) == ("explained", "explained")
    assert totals(data)["tf-2.3.1: tf.profiler@session"] == 5
    assert totals(data)["current: flop_counter"] == 2
    assert [s["residual"] for s in data["neighbours"]] == [0, 0, 0]
    for text in (" ".join((folder / "screen").read_text().split()), (folder / "conv1x1_matrix.md").read_text()):
        assert "there is no Python 3.5" in text
        assert "torch==1.10.1.999" in text


def test_an_old_torch_alone_borrows_a_trace_taken_for_it(matrix: Any) -> None:
    """torch 1.10.1 has no dispatch modes; the current environment is not in this matrix, and lends its trace all the same."""
    data = matrix("conv_only", "--environment", "torch-1.10.1")
    assert totals(data)[THOP_2209] == totals(data)["torch-1.10.1: fvcore"] == 2 * CONV
    (cell,) = data["environments"]
    assert "borrows the current environment's trace" in json.dumps(cell)
