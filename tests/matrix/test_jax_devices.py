"""One device of a JAX program by closed form: what it multiplies, what all devices do, what XLA counts, and what is withheld."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.reports import found_in, python_of
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("jax_devices_run.py")
LOWERED, COMPILED = "xla@lowered", "xla@compiled"
N, ROWS, WIDTH, HIDDEN, VOCABULARY = 4, 8, 64, 256, 50257
PRODUCT = 2 * ROWS * WIDTH * HIDDEN
"""FLOPs of one of the two products of the MLP."""
MLP, RELU, OUT, WEIGHT = 2 * PRODUCT, ROWS * HIDDEN, ROWS * WIDTH, WIDTH * HIDDEN
GRADIENTS = 4 * PRODUCT
"""The first product again, both gradients of weights, and that of the hidden state. The loss needs no second product."""
COLUMNS = -(-VOCABULARY // N)
"""Of a vocabulary that four devices do not share evenly, each has so many columns."""
IMAGES = 2 * 4 * 16 * 16 * 16 * 3 * 3 * 8
EACH = {
    **dict.fromkeys(("tensor", "data", "both", "put", "mapped", "mapped_along_one", "mapped_experts"), MLP // N),
    "on_each": MLP,
    "half": PRODUCT // N + PRODUCT,
    "pairs": PRODUCT // N + PRODUCT // 2,
    **dict.fromkeys(("tensor_gradients", "data_gradients", "both_gradients"), GRADIENTS // N),
    "scanned": 6 * MLP // N,
    "uneven": 2 * ROWS * WIDTH * COLUMNS,
    "rows_of_images": IMAGES // N,
}
ONE = {
    **dict.fromkeys(EACH, MLP),
    "scanned": 6 * MLP,
    "uneven": 2 * ROWS * WIDTH * VOCABULARY,
    "rows_of_images": IMAGES,
}
ONE.update(dict.fromkeys(("tensor_gradients", "data_gradients", "both_gradients"), GRADIENTS))
CAUSES = {
    "on_each": {"replicated": -(N - 1) * MLP},
    "half": {"replicated": -(N - 1) * PRODUCT},
    "pairs": {"replicated": -PRODUCT},
    "uneven": {"padded-shard": -2 * ROWS * WIDTH * (N * COLUMNS - VOCABULARY)},
}


def ring(elements: int, devices: int) -> int:
    """The additions of one of so many devices that sum these elements."""
    return elements * (devices - 1) // devices


ADDED = {
    **dict.fromkeys(("tensor", "put", "mapped"), ring(OUT, N)),
    **dict.fromkeys(("both", "mapped_along_one"), ring(OUT // 2, 2)),  # each half of the batch between two devices
    "data_gradients": 2 * ring(WEIGHT, N),
    "both_gradients": 2 * ring(WEIGHT // 2, 2),
    "scanned": 6 * ring(OUT, N),
}
"""Additions of one device's collectives: under `all` they count."""
BYTES = 4
PASSED: dict[str, list[list[Any]]] = {
    "tensor": [["all_reduce", "tp", 1, 2 * ring(OUT, N) * BYTES]],
    "both": [["all_reduce", "tp", 1, 2 * ring(OUT // 2, 2) * BYTES]],
    "data": [],
    "on_each": [],
    "half": [["all_gather", "tp", 1, (N - 1) * RELU // N * BYTES]],
    "data_gradients": [["all_reduce", "dp", 2, 2 * 2 * ring(WEIGHT, N) * BYTES]],
    "scanned": [["all_reduce", "tp", 6, 6 * 2 * ring(OUT, N) * BYTES]],
    "rows_of_images": [["p2p", "tp", 2, None]],  # the rows above and below
}


@pytest.fixture(scope="module")
def python() -> Path:
    return python_of("xla")


@pytest.fixture(scope="module")
def found(python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return dict(found_in(python, PROGRAMS, tmp_path_factory.mktemp("devices")))


@pytest.mark.parametrize("name", EACH)
def test_a_device_multiplies_its_part(found: dict[str, Any], name: str) -> None:
    held = found[name]["matmul"]
    assert (held["each"], held["sum"], held["one"]) == (EACH[name], N * EACH[name], ONE[name])
    assert held["causes"] == CAUSES.get(name, {})
    assert held["state"] == ("explained" if name in CAUSES else "equal")


@pytest.mark.parametrize("name", EACH)
def test_what_devices_add_is_all_that_they_do_more(found: dict[str, Any], name: str) -> None:
    held, matmul = found[name]["all"], found[name]["matmul"]
    causes = dict(CAUSES.get(name, {}))
    if name in {"on_each", "half"}:  # and the activation: the whole of it on each device
        causes["replicated"] -= (N - 1) * RELU
    if name == "pairs":  # of its half of the batch, on each device
        causes["replicated"] -= RELU
    if name in ADDED:
        causes["added-between-ranks"] = -N * ADDED[name]
    assert held["causes"] == causes
    elements = {"tensor_gradients": 2, "data_gradients": 2, "both_gradients": 2, "scanned": 6}.get(name, 1) * RELU
    if name in {"uneven", "rows_of_images"}:
        elements = 0
    singly = elements // {"on_each": 1, "half": 1, "pairs": 2}.get(name, N)
    assert held["each"] - matmul["each"] == singly + ADDED.get(name, 0)


@pytest.mark.parametrize("name", PASSED)
def test_collectives_have_their_group_and_bytes(found: dict[str, Any], name: str) -> None:
    assert found[name]["matmul"]["passed"] == PASSED[name]


@pytest.mark.parametrize("convention", ["matmul", "all"])
@pytest.mark.parametrize("name", EACH)
def test_xla_s_counts_are_explained_on_a_device(found: dict[str, Any], name: str, convention: str) -> None:
    counters = found[name][convention]["counters"]
    assert {counter: said["residual"] for counter, said in counters.items()} == {LOWERED: 0, COMPILED: 0}
    assert {counter: said["recomputed"] for counter, said in counters.items()} == {LOWERED: [], COMPILED: []}


def test_xla_counts_one_device_once_it_has_cut(found: dict[str, Any]) -> None:
    for name, added in (("tensor", OUT), ("data", 0), ("both", OUT // 2)):
        held = found[name]["matmul"]
        assert held["ledgers"][COMPILED] == MLP // N + RELU // N + added  # a sum of devices as one addition per element
        assert held["counters"][COMPILED]["outside-convention"] == -RELU // N - added
        assert "global-shape" not in held["counters"][COMPILED]
        assert held["counters"][LOWERED]["global-shape"] == -(MLP + RELU) * (N - 1) // N
    sums = found["tensor"]["all"]["counters"][LOWERED]["op-not-counted"]  # XLA adds them when it cuts
    assert sums == ring(OUT, N)
    assert "global-shape" not in found["mapped"]["matmul"]["counters"][LOWERED]  # the program has a device's shapes


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("merged", "XLA merged it with an equal one"),
        ("by_place", "lax.cond"),
        ("cut_experts", "how XLA cuts it is not known here"),
    ],
)
def test_what_is_not_followed_is_withheld_by_name(found: dict[str, Any], name: str, reason: str) -> None:
    for convention in ("matmul", "all"):
        held = found[name][convention]
        assert (held["each"], held["sum"], held["state"]) == (None, None, "not_comparable")
        assert reason in held["reason"]


def test_single_operations_are_withheld_alone(found: dict[str, Any]) -> None:
    matmul, every = found["cumulative"]["matmul"], found["cumulative"]["all"]
    assert (matmul["each"], matmul["sum"], matmul["state"]) == (PRODUCT // N, PRODUCT, "equal")
    assert (every["each"], every["state"]) == (None, "not_comparable")
    assert "lax.cumsum: the instructions of one device's program do not show its part" in every["reason"]


def test_a_program_on_fewer_devices_is_refused(found: dict[str, Any]) -> None:
    assert "the program runs on 1 of the 4 devices" in found["no_shard"]["refused"]


def test_a_plain_run_does_not_compare_one_device(found: dict[str, Any]) -> None:
    for name in ("tensor", "put", "mapped"):
        assert "count one device with --ranks 4" in found[name]["plain"]


def test_a_product_that_is_cut_otherwise_is_withheld(found: dict[str, Any]) -> None:
    reasons = {name: " and ".join(said) for name, said in found["withheld"].items()}
    assert "into several products" in reasons["twice"]
    assert "a loop of its own" in reasons["looped"]
    assert "less than the whole" in reasons["halved"]
    assert "do not show its part" in reasons["turned"]
    assert "no product of its own" in reasons["gone"]
    assert reasons["kept"] == ""


def test_a_loop_of_no_equation_is_the_cutter_s_own(found: dict[str, Any]) -> None:
    assert found["looped"] == [[False], [True], [True]]


def test_groups_of_every_form(found: dict[str, Any]) -> None:
    assert found["groups"] == [
        [1, 3],
        [0, 1, 2],
        [3, 4, 5],
        [1, 3, 5],  # 0..5 in three rows of two, read by columns
        [1, 4],
        [3, 4, 5],
        None,  # a mesh in another order
        None,
        [2, 3],
        None,  # this rank sends and receives nothing
    ]


def test_a_program_mapped_along_one_axis_runs_there(found: dict[str, Any]) -> None:
    assert found["mapped_along_one"]["whole"] == [2, 2]  # of a mesh of 2 x 2


@pytest.mark.parametrize(("name", "each"), [("tensor", MLP // N), ("copies", MLP)])
def test_the_command_of_the_page(name: str, each: int, python: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "ranks.md").read_text()
    shutil.copy(ROOT / "docs" / "ranks" / "sharded.py", tmp_path)
    command = next(line for line in page.splitlines() if line.startswith("reconcile run --jax sharded:tensor"))
    words = ["-m", *command.replace("tensor", name).split(), "--out", "out"]
    printed = output_of(*words, python=python, folder=tmp_path)
    (file,) = (tmp_path / "out").glob("*.ranks.json")
    report = json.loads(file.read_text())
    assert [(entry["ranks"], entry["totals"]["matmul"]) for entry in report["ranks"]] == [([0, 1, 2, 3], each)]
    assert report["sum"]["matmul"] == N * each
    assert "; 1 ran)" in printed
    assert report["statements"][0]["residual"] == 0
