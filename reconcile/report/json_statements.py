"""A statement as JSON data, each line with its evidence: for the JSON reports of a run, a matrix, --ncu and --ranks."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.records import Tensor
from ..core.results import Statement
from .json_text import LateRows, RowMaker, fields_of, make_form, plain, rows_at_once


def statement_data(statement: Statement, listed: RowMaker = rows_at_once) -> dict[str, Any]:
    """A statement as plain data; ``listed`` makes the lists of records."""
    return {
        **fields_of(statement, "from_ to state reason from_total to_total"),
        "adjustments": listed(_adjustment, statement.adjustments),
        "residual": statement.residual,
        "residuals": listed(_residual, statement.residuals),
    }


_residual = partial(fields_of, names="layer amount reason")
_tensor = partial(fields_of, names="shape dtype")


def _list_tensors(tensors: tuple[Tensor, ...]) -> list[Any]:
    return [_tensor(tensor) for tensor in tensors]


_op = make_form(
    "id op layer inputs outputs attrs calls phase within",
    own="id layer attrs",
    inputs=_list_tensors,
    outputs=_list_tensors,
    attrs=lambda attrs: {name: plain(attrs[name]) for name in sorted(attrs)},
    within=list,
)
_evidence = make_form(
    "side counter rule source cause repeat layer component formula only seen_times times ops seen",
    own="layer ops seen",
    cause=plain,
    repeat=plain,
    only=list,
    ops=list,
    seen=partial(LateRows, _op),
)
_adjustment = make_form(
    "cause layer op counter amount evidence", own="layer evidence", cause=plain, evidence=partial(LateRows, _evidence)
)
