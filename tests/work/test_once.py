"""Equal ops share one work; a formula of a user's sees every op."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile import work
from reconcile.core.records import Op, Tensor
from reconcile.work import Known, Work, formula, known_part, load, restore_registry

ROWS, INNER, COLUMNS = 3, 5, 7


def product(id: str, layer: str, inner: int = INNER, **attrs: Any) -> Op:
    """A matrix product of (3, inner) and (inner, 7)."""
    given = (Tensor((ROWS, inner), "float32"), Tensor((inner, COLUMNS), "float32"))
    return Op(id, "aten.mm", layer, given, (Tensor((ROWS, COLUMNS), "float32"),), attrs)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the ops whose work is computed from now on."""
    load()
    ids: list[str] = []
    compute = work._known_part

    def counted(op: Op) -> Known:
        ids.append(op.id)
        return compute(op)

    monkeypatch.setattr(work, "_known_part", counted)
    monkeypatch.setattr(work, "_parts", {})
    return ids


def test_ops_that_differ_in_their_place_alone_are_computed_once(computed: list[str]) -> None:
    ops = [product("op0", "a"), product("op1", "b"), product("op2", "b")._replace(calls=4, phase="backward")]
    assert [known_part(op).work.mac for op in ops] == [ROWS * INNER * COLUMNS] * len(ops)
    assert computed == ["op0"]


def test_ops_that_differ_in_shape_or_attribute_are_computed(computed: list[str]) -> None:
    whole = product("op3", "a")._replace(inputs=tuple(t._replace(dtype="int64") for t in product("", "").inputs))
    ops = [product("op0", "a"), product("op1", "a", INNER + 1), product("op2", "a", beta=1), whole]
    ops.append(product("op4", "a", beta=True))  # equal to 1 in Python, and another record
    assert [known_part(op).work.mac for op in ops[:2]] == [ROWS * INNER * COLUMNS, ROWS * (INNER + 1) * COLUMNS]
    for op in ops[2:]:
        known_part(op)
    assert computed == [op.id for op in ops]


def test_a_formula_of_a_users_may_read_the_layer() -> None:
    sizes = {"a": 2, "b": 11}
    ops = [product("op0", layer)._replace(op="mine.sparse") for layer in ("a", "b", "a")]
    before = known_part(ops[0])
    with restore_registry():
        formula("mine.sparse", source="a test")(lambda op: Work(mac=sizes[op.layer]))
        assert [known_part(op).work.mac for op in ops] == [sizes[op.layer] for op in ops]
    assert known_part(ops[0]) == before, "a user's formula ends with its scope"
    assert before.unknown
