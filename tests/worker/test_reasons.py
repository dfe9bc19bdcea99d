"""Why a task failed: an error of ours is its sentence, any other says its type as well."""

from __future__ import annotations

import pytest

from reconcile.adapters.shared.distribution import OtherPackage
from reconcile.adapters.shared.refusal import CannotCount, FactoryError, OutOfMemory, reason_of


@pytest.mark.parametrize("kind", [CannotCount, FactoryError, OtherPackage, OutOfMemory])
def test_an_error_of_ours_is_its_own_sentence(kind: type[Exception]) -> None:
    assert reason_of(kind("the totals differ\nand more")) == "the totals differ"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("bad size\nand more"), "ValueError: bad size"),
        (SystemExit(4), "SystemExit: 4"),
        (KeyError("x"), "KeyError: 'x'"),
        (MemoryError(), "MemoryError: "),
        (OutOfMemory(), "OutOfMemory: "),
        (RuntimeError("a" * 400), "RuntimeError: " + "a" * 300),
    ],
)
def test_any_other_error_says_its_type(error: BaseException, reason: str) -> None:
    assert reason_of(error) == reason
