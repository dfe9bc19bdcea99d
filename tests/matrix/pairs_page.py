"""The page of `make pairs`: a row per class that a library has in both frameworks, and their sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reconcile.core.causes import Cause
from reconcile.core.conventions import MATMUL
from reconcile.core.escaping import markdown
from reconcile.core.number_format import format_signed, number
from reconcile.core.results import Statement
from reconcile.engine.answer import Answer

NAMED = 3
"""The most differing layers of a pair, or reasons why it is not in order, that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """A pair's result under `matmul`. A total that is not known is None, and `reasons` say why a pair is not in order.

    `work` is per framework, `counters` per counter. `layers` are those with products, `uneven` those of them in which the
    frameworks multiply differently, with both amounts. `causes` are between the two frameworks.
    """

    pair: str
    work: Mapping[str, int | None] = field(default_factory=dict)
    counters: Mapping[str, int | None] = field(default_factory=dict)
    residuals: tuple[int | None, ...] = ()
    layers: int = 0
    uneven: tuple[str, ...] = ()
    causes: Mapping[Cause, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @property
    def in_order(self) -> bool:
        """Whether both traces are complete and every statement is closed with residual 0."""
        return not self.reasons and bool(self.residuals) and not any(r != 0 for r in self.residuals)

    @property
    def equal(self) -> bool:
        """Whether both frameworks multiply the same, layer by layer."""
        return self.in_order and not self.uneven and len(set(self.work.values())) == 1


def row_of(pair: str, result: Answer) -> Row:
    """The row of a pair that ran."""
    layers = [row for row in result.layers if any(row.work.values())]
    uneven = [row for row in layers if row.work.get("tf") != row.work.get("torch")]
    between = result.statement("trace@tf", "trace@torch")
    return Row(
        pair,
        {trace.framework: trace.totals.get(MATMUL.name) for trace in result.traces},
        {ledger.counter: ledger.normalised_total for ledger in result.ledgers},
        tuple(statement.residual for statement in result.statements),
        len(layers),
        tuple(f"{row.layer} {_total(row.work.get('tf'))} and {_total(row.work.get('torch'))}" for row in uneven),
        between.by_cause(),
        tuple(dict.fromkeys((*_incomplete(result), *map(_open, filter(_is_open, result.statements))))),
    )


def _incomplete(result: Answer) -> list[str]:
    return [f"{trace.name}: {trace.reason}" for trace in result.traces if not trace.complete]


def _is_open(statement: Statement) -> bool:
    return statement.residual != 0


def _open(statement: Statement) -> str:
    return f"{statement.from_} to {statement.to}: {statement.reason}"


def _total(value: int | None) -> str:
    return "unknown" if value is None else number(value)


def finding(row: Row) -> str:
    """`equal`, the named difference between the frameworks, or why the pair is not in order."""
    if not row.in_order:
        return "; ".join(_first(row.reasons)) or "nothing was compared"
    if row.equal:
        return "equal"
    causes = ", ".join(f"{cause.value} {format_signed(amount)}" for cause, amount in row.causes.items())
    return "; ".join([f"differs by {causes or 'nothing that has a name'}", *_first(row.uneven)])


def _first(texts: Sequence[str]) -> list[str]:
    """The first of these texts, and how many there are beside them."""
    rest = len(texts) - NAMED
    return [*texts[:NAMED], *([f"and {rest} more"] if rest > 0 else [])]


def residual(row: Row) -> str:
    """0 if every statement's residual is 0, otherwise each that is not."""
    left = [_total(r) if r is None else format_signed(r) for r in row.residuals if r != 0]
    return ", ".join(left) if left else "0" if row.residuals else "unknown"


def summary(rows: Sequence[Row]) -> str:
    """How many pairs are in order, and how many of them do equal work."""
    good = [row for row in rows if row.in_order]
    equal = [row for row in rows if row.equal]
    return (
        f"{len(rows)} pairs: {len(equal)} with equal work in every layer, {len(good) - len(equal)} that differ by named "
        f"causes, {len(rows) - len(good)} not in order."
    )


def page(rows: Sequence[Row], counters: Sequence[str], title: str, versions: Mapping[str, str]) -> str:
    """The page as Markdown; ``title`` is that of the environment, and ``versions`` are of the packages that ran."""
    columns = ["pair", "TensorFlow", "PyTorch", "finding", *counters, "residual", "layers alike"]
    lines = [
        "# Pairs of transformers",
        "",
        "Written by `make pairs`: classes that transformers has in TensorFlow and in PyTorch, both made from one small",
        "configuration ([transformers_models.py](../tests/matrix/transformers_models.py)), with untrained weights. The layers",
        "are aligned without a mapping file.",
        "",
        f"Environment: {title}, made by uv from",
        "[huggingface.toml](../tests/matrix/huggingface.toml); "
        + ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
        + ".",
        "",
        summary(rows),
        "",
        "All numbers are FLOPs of one call under `matmul`. The columns of the frameworks are the work that ran, those of the",
        "counters their totals, with a multiply-add as two. A residual of 0 means that named causes explain each difference to",
        "the last unit: from each counter to the work that ran, between the counters, and between the frameworks. The last",
        "column says in how many of the layers with products both frameworks do the same work.",
        "",
        "| " + " | ".join(columns) + " |",
        "|:--|--:|--:|:--|" + "--:|" * (len(counters) + 2),
    ]
    return "\n".join([*lines, *(_line(row, counters) for row in rows)]) + "\n"


def _line(row: Row, counters: Sequence[str]) -> str:
    cells = [
        markdown(row.pair),
        *(_total(row.work.get(framework)) for framework in ("tf", "torch")),
        markdown(finding(row)),
        *(_total(row.counters.get(counter)) for counter in counters),
        residual(row),
        f"{row.layers - len(row.uneven)} of {row.layers}",
    ]
    return "| " + " | ".join(cells) + " |"
