"""mmengine's handles by hand: fvcore's of its last release, but for products with a vector (analysis/jit_handles.py:216)."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.work import Work
from tests.adapters.counters import torch_cases
from tests.adapters.counters.cases import Case, op

RELEASES = ("0.10.7",)


def vectors() -> Iterator[Case]:
    for macs, shapes, out in (
        (2 * 3, [(2, 3), (3,)], (2,)),
        (3 * 5, [(3,), (3, 5)], (5,)),
        (3, [(3,), (3,)], ()),
    ):
        yield Case(op("aten.matmul", shapes, [out]), RELEASES, macs, Work(mac=macs))


CASES = (
    *(case._replace(releases=RELEASES) for case in torch_cases.FVCORE if torch_cases.DEC22 in case.releases),
    *vectors(),
)

FAMILIES = {"mmengine": (RELEASES, CASES)}
