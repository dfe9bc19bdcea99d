"""Why a ledger changed between two takes: the cause lines, the rules, and the reasons for uncounted ops that differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..adapters.counters.bridge import Item, view
from ..align.alignment import Alignment
from ..core.causes import ORDER, Cause
from ..core.records import Ledger, Trace
from ..engine.ledger import Reconciled, build_bridge
from .changes import Basis, CauseChange


def cause_changes(before: Reconciled, after: Reconciled) -> tuple[CauseChange, ...]:
    """Cause lines that differ between the two bridges, layer by layer, in booking order."""
    old, new = _lines(before), _lines(after)
    changes = [
        CauseChange(cause, layer, old.get((cause, layer), 0), new.get((cause, layer), 0))
        for cause, layer in dict.fromkeys([*old, *new])
        if old.get((cause, layer), 0) != new.get((cause, layer), 0)
    ]
    return tuple(sorted(changes, key=lambda change: ORDER[change.cause]))


def _lines(done: Reconciled) -> dict[tuple[Cause, str], int]:
    sums: dict[tuple[Cause, str], int] = {}
    for line in done.adjustments:
        sums[line.cause, line.layer] = sums.get((line.cause, line.layer), 0) + line.amount
    return sums


def basis(
    old: tuple[Ledger, Trace, Alignment], new: tuple[Ledger, Trace, Alignment], layers: Iterable[str]
) -> tuple[Basis, ...]:
    """The rules that apply in these layers in only one of the two takes."""
    before, after = _grounds(*old), _grounds(*new)
    changed = []
    for layer in layers:
        left, right = before.get(layer, {}), after.get(layer, {})
        gone = tuple(words for words in left if words not in right)
        come = tuple(words for words in right if words not in left)
        if gone or come:
            changed.append(Basis(layer, gone, come))
    return tuple(changed)


def _grounds(ledger: Ledger, trace: Trace, align: Alignment) -> Mapping[str, dict[str, None]]:
    grounds: dict[str, dict[str, None]] = {}
    for item in build_bridge(view(ledger), trace).items:
        if item.counted or item.ran or item.rule:
            grounds.setdefault(align.layer(ledger.framework, item.layer), {})[_words(item)] = None
    return grounds


def _words(item: Item) -> str:
    """``thop/torch.nn.modules.rnn.GRU: T B (...) (thop/rnn_hooks.py:124)``, or why the op is not counted."""
    counted = f"{item.formula} ({item.source})" if item.source else item.formula
    words = f"{item.op}: {counted}" if item.op else counted
    if item.gap:
        return f"{words}, {item.gap}"
    return f"{words}, {item.cause.value}" if item.cause else words
