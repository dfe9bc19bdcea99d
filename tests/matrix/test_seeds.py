"""The published numbers from real runs in the environments they were taken in, each beside its closed form.

The network: Conv2D(32, (4, 4), stride (1, 2)) on (1, 1, 100, 256), relu, GRU(96, reset_after) over 97 frames of
32 * 127 = 4064 features, Dense(256, sigmoid).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(3600)]

FRAMES, COLUMNS, FILTERS, H, CLASSES = 97, 127, 32, 96, 256
X = FILTERS * COLUMNS  # features of a frame
TAPS = 4 * 4  # products per output of the convolution, one channel

CONV_OUT = FILTERS * FRAMES * COLUMNS  # also what its bias adds
CONV = CONV_OUT * TAPS  # MACs
GRU = FRAMES * 3 * H * (X + H)
DENSE_OUT = FRAMES * CLASSES
DENSE = DENSE_OUT * H
WORK = 2 * (CONV + GRU + DENSE)

# One GRU step: six matrix products of one row, 3 x (1, X) x (X, H) and 3 x (1, H) x (H, H), then vectors of H:
# six biases; the sums of the two halves of z, r and h, and r * h; z * old + (1 - z) * new: two Mul, a Sub, an Add.
PRODUCTS = 2 * 3 * H * (X + H)
GATES = (6 + 3 + 1 + 2 + 1 + 1) * H
# Keras of TF 1 has hard sigmoids for z and r: 0.2 * x + 0.5 (Mul, Add), cut off at 0 and 1 (Minimum, Maximum).
HARD = 2 * 4 * H
STEP_1_12 = PRODUCTS + GATES + HARD
# TF 2.3.1 writes its own sums as AddV2, which that profiler does not know; Keras' hard sigmoid still says Add.
ADD_V2 = (3 + 1) * H
STEP_2_3_1 = STEP_1_12 - ADD_V2

# random_uniform (Glorot): u * (high - low) + low is a Mul and an Add per element, and one Sub of two scalars.
# random_normal: n * deviation + mean, a Mul and an Add. Orthogonal: a random_normal, its QR times the signs of R's
# diagonal (Mul), times the gain (Mul). Biases are zeros.
CONV_KERNEL = 4 * 4 * 1 * FILTERS
GRU_KERNEL, GRU_RECURRENT = X * 3 * H, H * 3 * H
DENSE_KERNEL = H * CLASSES
INPUT = 1 * 100 * 256  # K.random_normal((1, 1, 100, 256)): random_normal too
INITIALIZERS = {
    "conv": 2 * CONV_KERNEL + 1,
    "gru": 2 * GRU_KERNEL + 1 + 4 * GRU_RECURRENT,
    "dense": 2 * DENSE_KERNEL + 1,
    "(model)": 2 * INPUT,
}
FORWARD = 2 * CONV + CONV_OUT + 2 * DENSE + DENSE_OUT  # convolution and dense layer with their biases

TF_1, TF_2 = "tf-1.12: tf.profiler@session", "tf-2.3.1: tf.profiler@session"
THOP_2001, THOP_2005, THOP_2209 = (
    f"{name}: thop" for name in ("torch-1.10.1-thop-2001", "torch-1.10.1-thop-2005", "torch-1.10.1")
)

# thop x 2. A cell of its GRU: z and r with H (X + H) products, H sums and 2H biases each, the third gate the same
# and H products with r; the new state 3H.
THOP_GRU = FRAMES * (3 * (H * (X + H) + 3 * H) + H + 3 * H)
TOTALS = {
    TF_1: (25_150_826, FORWARD + sum(INITIALIZERS.values()) + 2 * STEP_1_12 + 3 + 4),
    TF_2: (22_752_165, FORWARD + sum(INITIALIZERS.values()) + STEP_2_3_1 + 2),
    # Convolution with the bias as a MAC; no GRU; Linear: H products, H - 1 sums and the bias per output.
    THOP_2001: (22_938_560, 2 * (CONV + CONV_OUT + DENSE_OUT * (H + H - 1 + 1))),
    THOP_2005: (250_840_448, 2 * (CONV + CONV_OUT + THOP_GRU + DENSE)),
    THOP_2209: (250_052_032, 2 * (CONV + THOP_GRU + DENSE)),
    "current: thop": (250_052_032, 2 * (CONV + THOP_GRU + DENSE)),
    "current: fvcore": (2 * 8_691_200, 2 * (CONV + DENSE)),
    "current: flop_counter": (249_809_920, WORK),
    # Keras 3 walks one step that is not read; sigmoid is one op without a formula; every Add of 2.21 is known.
    "current: tf.profiler@function": (20_198_944, FORWARD + PRODUCTS + GATES),
    # The loop's body once, its matrix products of the state and all gates without shapes.
    "current: tf.profiler@frozen": (20_142_592, FORWARD + 2 * 3 * H * X + 3 * H),
    # Every step, the one that is not read, and the loop's integers: two Less in 98 looks, two sums in 97 steps.
    "current: tf.profiler@runmeta": (
        252_757_222,
        FORWARD + (FRAMES + 1) * (PRODUCTS + GATES) + 2 * (FRAMES + 1) + 2 * FRAMES,
    ),
}
TOTALS |= {THOP.replace("thop", "fvcore").replace("-fvcore-", "-thop-"): (2 * 8_691_200, 2 * (CONV + DENSE))
           for THOP in (THOP_2001, THOP_2005, THOP_2209)}  # fmt: skip


def load(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("*_matrix.json")
    data: dict[str, Any] = json.loads(file.read_text())
    return data


def totals(data: dict[str, Any]) -> dict[str, int]:
    """Normalised totals by ``environment: counter``."""
    return {
        f"{env['name']}: {ledger['counter']}": ledger["normalised_total"]
        for env in data["environments"]
        for ledger in env["ledgers"]
    }


def statements(data: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    every = [*data["neighbours"], *(s for env in data["environments"] for s in env["statements"])]
    return {(s["from"], s["to"]): s for s in every}


def entries(data: dict[str, Any], name: str) -> dict[str, int]:
    """What one counter says by layer, in its own unit."""
    environment, _, counter = name.partition(": ")
    env = next(e for e in data["environments"] if e["name"] == environment)
    ledger = next(x for x in env["ledgers"] if x["counter"] == counter)
    sums: dict[str, int] = {}
    for entry in ledger["entries"]:
        sums[entry["layer"]] = sums.get(entry["layer"], 0) + entry["value"]
    return {layer: n for layer, n in sums.items() if n}


def causes(statement: dict[str, Any]) -> dict[tuple[str, str], int]:
    """Amounts by (cause, layer)."""
    sums: dict[tuple[str, str], int] = {}
    for line in statement["adjustments"]:
        key = (line["cause"], line["layer"])
        sums[key] = sums.get(key, 0) + line["amount"]
    return sums


def all_reconciled(data: dict[str, Any]) -> None:
    """Every counter has its statement to the trace, every family its neighbours, every residual is 0."""
    found = statements(data)
    for env in data["environments"]:
        for ledger in env["ledgers"]:
            assert (f"{env['name']}: {ledger['counter']}", f"{env['name']}: trace@{ledger['framework']}") in found
            assert not ledger["rule_mismatches"]
            assert not ledger["unchecked"]
    families: dict[str, int] = {}
    for name in totals(data):
        family = name.partition(": ")[2].partition("@")[0]
        families[family] = families.get(family, 0) + 1
    assert len(data["neighbours"]) == sum(n - 1 for n in families.values())
    for s in found.values():
        assert (s["residual"], s["residuals"]) == (0, []), (s["from"], s["to"])
        assert s["state"] in ("equal", "explained")
        assert s["from_total"] + sum(line["amount"] for line in s["adjustments"]) == s["to_total"]


@pytest.fixture(scope="module")
def gru(written: Callable[..., Path]) -> dict[str, Any]:
    folder = written("gru_demo")
    assert (folder / "code").read_text() == "0", (folder / "screen").read_text()
    return load(folder)


def test_the_closed_forms_are_the_published_numbers() -> None:
    assert WORK == 249_809_920
    assert sum(INITIALIZERS.values()) == 2_552_835
    for name, (published, derived) in TOTALS.items():
        assert published == derived, name


def test_every_total_is_the_published_one(gru: dict[str, Any]) -> None:
    assert totals(gru) == {name: published for name, (published, _) in TOTALS.items()}


def test_every_statement_and_pair_of_neighbours_is_reconciled(gru: dict[str, Any]) -> None:
    all_reconciled(gru)
    assert len(gru["environments"]) == 6
    assert len(gru["neighbours"]) == 10


def test_the_work_that_ran_is_the_same_everywhere(gru: dict[str, Any]) -> None:
    for env in gru["environments"]:
        for trace in env["traces"]:
            assert trace["complete"]
            assert trace["totals"]["matmul"] == WORK


@pytest.mark.parametrize("name", [TF_1, TF_2])
def test_initialisers_and_the_random_input_are_named_as_such(gru: dict[str, Any], name: str) -> None:
    found = causes(statements(gru)[name, f"{name.partition(':')[0]}: trace@tf"])
    booked = {layer: -amount for (cause, layer), amount in found.items() if cause == "initializer"}
    assert booked == INITIALIZERS


def test_tf_1_counts_the_body_of_a_loop_once_tf_2_does_not(gru: dict[str, Any]) -> None:
    first = causes(statements(gru)[TF_1, "tf-1.12: trace@tf"])
    assert first["loop-counted-once", "gru"] == (FRAMES - 1) * PRODUCTS
    assert first["dead-op", "gru"] == -(STEP_1_12 + 3)
    assert first["integer-op", "gru"] == -4
    second = causes(statements(gru)[TF_2, "tf-2.3.1: trace@tf"])
    assert second["body-not-entered", "gru"] == FRAMES * PRODUCTS
    assert second["dead-op", "gru"] == -(STEP_2_3_1 + 2)
    between = causes(statements(gru)[TF_1, TF_2])
    assert between == {
        ("dead-op", "gru"): -(ADD_V2 + 1),
        ("integer-op", "gru"): -4,
        ("body-not-entered", "gru"): -FRAMES * PRODUCTS,
        ("loop-counted-once", "gru"): (FRAMES - 1) * PRODUCTS,
        ("outside-convention", "gru"): -(GATES + HARD),
    }


def test_from_tf_2_3_1_to_today_the_initialisers_go(gru: dict[str, Any]) -> None:
    found = causes(statements(gru)[TF_2, "current: tf.profiler@function"])
    assert {k: v for k, v in found.items() if k[0] == "initializer"} == {
        ("initializer", layer): -amount for layer, amount in INITIALIZERS.items()
    }
    assert set(found) == {*(("initializer", layer) for layer in INITIALIZERS), ("dead-op", "gru")}


def test_thop_learned_the_gru_changed_linear_kept_convolution(gru: dict[str, Any]) -> None:
    before, after, last = (entries(gru, name) for name in (THOP_2001, THOP_2005, THOP_2209))
    assert before == {"conv": 6_701_536, "dense": 4_767_744}
    assert after == {"conv": 6_701_536, "gru": 116_334_816, "dense": 2_383_872}
    assert last == {"conv": 6_307_328, "gru": 116_334_816, "dense": 2_383_872}
    assert (CONV + CONV_OUT, DENSE_OUT * 2 * H, THOP_GRU, DENSE) == (6_701_536, 4_767_744, 116_334_816, 2_383_872)
    change = statements(gru)[THOP_2001, THOP_2005]
    assert causes(change) == {
        ("op-not-counted", "gru"): 2 * GRU,
        ("outside-convention", "gru"): 2 * (THOP_GRU - GRU),
        ("formula-differs", "dense"): -2 * DENSE,
    }
    rules = {e["rule"] for line in change["adjustments"] if line["layer"] == "dense" for e in line["evidence"]}
    assert len(rules) == 1, "the old Linear's rule is what differs from the work; today's does not"
    assert causes(statements(gru)[THOP_2005, THOP_2209]) == {("outside-convention", "conv"): -2 * CONV_OUT}
    assert statements(gru)[THOP_2209, "current: thop"]["state"] == "equal"


def test_an_old_torch_says_that_its_trace_is_borrowed(gru: dict[str, Any], written: Callable[..., Path]) -> None:
    borrowing = {env["name"] for env in gru["environments"] if env["borrowed"]}
    assert borrowing == {"torch-1.10.1-thop-2001", "torch-1.10.1-thop-2005", "torch-1.10.1"}
    assert "borrows the current environment's trace" in (written("gru_demo") / "gru_demo_matrix.md").read_text()


def test_the_committed_matrix_is_what_the_tool_writes(written: Callable[..., Path]) -> None:
    name = "gru_demo_matrix.md"
    committed = Path(__file__).parents[2] / "reports" / name
    assert committed.read_text() == (written("gru_demo") / name).read_text(), (
        f"reports/{name} is stale: run `reconcile matrix --model gru_demo` and commit what changed"
    )
