"""The inputs that a Keras model says itself, and the sizes that its documentation gives where it leaves them open."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.model_zoo.pair import Input
from reconcile.worker.introspect import find_documented, inputs_of

DOC = "with a resolution that is not\n`(224, 224, 3)`. E.g. `(160, 160, 3)`, or (1000,) classes."


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ((None, None, 3), [224, 224, 3]),
        ((160, None, 3), [160, 160, 3]),
        ((None, None, 1), None),
        ((None,), None),
        ((None, 3), None),
    ],
)
def test_the_first_shape_that_fits(sizes: tuple[int | None, ...], found: list[int] | None) -> None:
    assert find_documented(sizes, DOC) == found


def model(*shapes: tuple[int | None, ...], dtype: str = "float32", package: str = "keras.src") -> Any:
    kind = type("Model", (), {"__module__": package})
    made = kind()
    made.inputs = [SimpleNamespace(shape=shape, dtype=dtype) for shape in shapes]
    return made


def test_what_a_keras_model_is_called_with() -> None:
    assert inputs_of(model((None, 8, 8, 3)), "") == (Input("", (1, 8, 8, 3), "float32"),)
    assert inputs_of(model((4, 8), dtype="int32"), "") == (Input("", (4, 8), "int32"),)
    assert inputs_of(model((None, None, None, 3)), DOC) == (Input("", (1, 224, 224, 3), "float32"),)
    two = (Input("", (1, 2), "float32"), Input("", (1, 3), "float32"))
    assert inputs_of(model((None, 2), (None, 3)), "") == (list(two),)


def test_where_nothing_says_it_nothing_is_made_up() -> None:
    assert inputs_of(model((None, None, None, 3)), "any size") is None
    assert inputs_of(model(), "") is None
    assert inputs_of(model((None, 8), package="torch.nn"), "") is None
    subclassed = model()
    del subclassed.inputs
    assert inputs_of(subclassed, DOC) is None
