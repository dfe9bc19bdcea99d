"""ONNX Runtime's operators (com.microsoft): each has its work or is unknown by name, held to its schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.adapters.onnx.microsoft import INPUTS, MICROSOFT
from reconcile.core.records import Op, Tensor
from reconcile.work import known_part, load, registered_formulas
from tests.matrix.reports import answer_of, python_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

SCHEMAS = """
import json
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
found = [each for each in get_all_operator_schema() if each.domain == "com.microsoft"]
print(json.dumps({each.name: [given.name for given in each.inputs] for each in found}))
"""


def test_every_operator_has_its_work_or_is_unknown_by_name() -> None:
    load()
    schemas = answer_of(python_of("onnxruntime", Path(__file__).with_name("onnxruntime.toml")), SCHEMAS)
    own = {name.removeprefix(f"{MICROSOFT}.") for name in registered_formulas() if name.startswith(f"{MICROSOFT}.")}
    assert sorted(own - set(schemas)) == []
    assert {name: names.split() for name, names in INPUTS.items()} == {name: schemas[name] for name in INPUTS}
    assert len(schemas) > len(own) > 20
    for name in sorted(set(schemas) - own):
        matrix = Tensor((2, 2), "float32")
        part = known_part(Op("node", f"{MICROSOFT}.{name}", "", (matrix, matrix), (matrix,), {}, 1, "forward", ()))
        assert ("mac" in part.unknown, name in part.reason) == (True, True), name
