"""Which products read a parameter of which a rank has a part, and which of its gradients they make; ops made by hand."""

from __future__ import annotations

import pytest

from reconcile.adapters.counters.formulas.parameter_products import is_part, products_by_parameter
from reconcile.core.records import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Op, Tensor

WHOLE, PART, BATCH = (6, 10), (3, 10), 4
FACTS = {"name": "a.weight", "shape": list(WHOLE), "part": list(PART), "owners": ["a"], "routed": False}


def product(id: str, phase: str, left: tuple[int, int], right: tuple[int, int]) -> Op:
    inputs = tuple(Tensor(shape, "float32") for shape in (left, right))
    return Op(id, "aten.mm", "a", inputs, (Tensor((left[0], right[1]), "float32"),), {}, 1, phase)


def phases(*ops: Op) -> dict[str, str]:
    return {op.id: op.phase for op in products_by_parameter([FACTS], ops)["a.weight"]}


def test_products_of_a_part_read_the_parameter() -> None:
    ops = (
        product("forward", FORWARD, (BATCH, 10), (10, 3)),
        product("input", BACKWARD, (BATCH, 3), PART),
        product("own", BACKWARD, (3, BATCH), (BATCH, 10)),
        product("other", FORWARD, (BATCH, 5), (5, 5)),
    )
    assert phases(*ops) == {"forward": FORWARD, "input": INPUT_GRADIENT, "own": WEIGHT_GRADIENT}


def test_a_gradient_that_could_be_either_stays_open() -> None:
    assert phases(product("both", BACKWARD, PART, (10, 10))) == {"both": BACKWARD}


@pytest.mark.parametrize(("ran", "is_it"), [(30, True), (60, False), (29, False), (0, False)])
def test_a_part_is_multiplied(ran: int, is_it: bool) -> None:
    assert is_part(FACTS, 60, ran) is is_it


def test_whole_parameters_are_no_parts() -> None:
    assert not is_part(dict(FACTS, part=list(WHOLE)), 60, 60)
    assert not is_part(dict(FACTS, part=[0, 10]), 60, 0)
