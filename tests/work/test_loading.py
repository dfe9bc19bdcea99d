"""Formulas are loaded for the frameworks that a run has, and for others when an op has none among these."""

from __future__ import annotations

import pytest

from reconcile import work
from reconcile.core import registry
from reconcile.core.errors import UsageError
from tests.outside import NUMPY
from tests.programs import output_of

FRESH = """
import sys
from reconcile import work
from reconcile.work import attention_kernels
def there():
    names = ("work.tensorflow", "work.aten", "adapters.onnx.formulas", "adapters.jax.formulas")
    return [name for name in names if f"reconcile.{name}" in sys.modules]
work.load(("torch",))
print(there(), work.find("aten.mm") is not None, work.find("MatMul") is not None)
print(work.formula_of("MatMul") is not None, work.is_ours("MatMul"), there())
print(work.formula_of("no.such_op"), there())
print(all(map(work.is_ours, work.registered_formulas())))
"""


def test_formulas_are_loaded_as_they_are_needed() -> None:
    assert output_of("-c", FRESH).splitlines() == [
        "['work.aten'] True False",
        "True True ['work.tensorflow', 'work.aten']",
        "None ['work.tensorflow', 'work.aten', 'adapters.onnx.formulas', 'adapters.jax.formulas']",
        "True",
    ]


SPARSE = """
from reconcile import work
from reconcile.core.records import STORED, Op, Tensor
shapes = (3, 4), (4, 5), (3, 5)
left, right, result = (Tensor(shape, "float32") for shape in shapes)
work.load(("torch",))
print(work.find("aten.mm") is not None, work.find("aten.mm", "sparse"))
print(work.work_of(Op("x", "aten.mm", "", (left, right), (result,), {STORED: [2, None]})).mac)
"""


def test_a_formula_on_sparse_tensors_is_loaded_where_that_on_dense_ones_is_there() -> None:
    """Each of the two stored values is multiplied with a row of 5."""
    assert output_of("-c", SPARSE).split() == ["True", "None", str(2 * 5)]


def test_another_packages_formulas_stop_only_who_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = NUMPY._replace(name="broken", formulas="no_such_package.formulas", folder="somewhere")
    monkeypatch.setitem(registry.frameworks(), "broken", broken)
    monkeypatch.setattr(work, "_loaded", set(work._loaded))
    work.load(("torch",))
    assert work.formula_of("aten.mm") is not None
    with pytest.raises(UsageError, match="no_such_package"):
        work.load()
