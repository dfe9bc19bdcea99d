"""keras-flops: why a newer TensorFlow refuses it, what it leaves behind, and what it counts in its own environment."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from reconcile.adapters.counters.keras_flops.rules import BOOK
from reconcile.adapters.shared.refusal import CannotCount
from tests.adapters.counters.in_environment import settled_pair

VERSIONS = {"keras-flops": "0.1.2", "tensorflow": "2.12.1"}
REGISTERS = """
from tensorflow.python.framework import ops
ops.RegisterStatistics("Max", "flops")(lambda graph, node: ops.OpStats("flops", 1))
ops.RegisterStatistics("AddV2", "flops")(lambda graph, node: ops.OpStats("flops", 1))
"""
"""What the import of keras-flops does: its first formula is new to TensorFlow, its last is not (since 2.13)."""


def test_its_own_formulas_come_before_the_profilers() -> None:
    own, profilers = (BOOK.find(name, VERSIONS) for name in ("AddV2", "Conv2D"))
    assert [rule.id for rule in (own, profilers) if rule] == ["keras_flops/AddV2", "tf.profiler/Conv2D"]
    assert BOOK.find("Relu", VERSIONS) is None


def test_an_import_that_fails_is_explained_and_leaves_no_formula(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorflow")
    from tensorflow.python.framework import ops

    from reconcile.adapters.counters.keras_flops import capture

    before = list(ops._stats_registry.list())
    assert ("AddV2,flops" in before, "Max,flops" in before) == (True, False)
    (tmp_path / "keras_flops.py").write_text(REGISTERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "keras_flops", raising=False)
    monkeypatch.setattr(capture, "_registered", {})
    with (
        pytest.raises(CannotCount, match=r"2\.12 is the newest .* add --environment keras_flops"),
        capture._import_package(),
    ):
        pass
    assert list(ops._stats_registry.list()) == before


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.parametrize("batch", ["1", "2"])
def test_gru_demo_loses_the_loop(batch: str) -> None:
    """The loop's products with the state have no shape: 97 steps of 3 * 96 * (4064 + 96) multiply-adds are lost."""
    ledger, statement = settled_pair("keras_flops", "keras_flops", "gru_demo", batch=batch)
    unknown = [line.amount for line in statement.adjustments if line.cause.value == "shape-unknown"]
    assert sum(unknown) == int(batch) * 2 * 97 * 3 * 96 * (4064 + 96)
    assert ledger.versions["tensorflow"] == "2.12.1"


def test_it_says_which_models_get_flops_takes() -> None:
    """A subclassed model does not know its inputs; another model's own sizes are not those of the run."""
    from reconcile.adapters.counters.keras_flops import capture

    def batch(inputs: list[tuple[int | None, ...]] | None, *called: tuple[int, ...]) -> int:
        shapes = None if inputs is None else [SimpleNamespace(shape=shape) for shape in inputs]
        tensors = tuple(SimpleNamespace(shape=shape, dtype="float32") for shape in called)
        return capture.batch_of(SimpleNamespace(called_model=SimpleNamespace(inputs=shapes), arguments=(tensors, {})))

    assert batch([(None, 3)], (2, 3)) == 2
    assert batch([(None, None, 3), (None, 5)], (4, 7, 3), (4, 5)) == 4
    for inputs, says in (
        (None, "Sequential or functional"),
        ([(None, 5)], "run with"),
        ([(None, 3), (None, 3)], "run with"),
    ):
        with pytest.raises(CannotCount, match=says):
            batch(inputs, (2, 3))
