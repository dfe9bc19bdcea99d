"""One page per cause, convention and counter: what ``reconcile explain`` prints and ``docs/`` shows, from one text.

What somebody wrote lies beside this file, ``KIND/NAME.md``; what the code knows already (meaning, booking order, unit,
rules with their source lines) is put before and after it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..adapters import COUNTERS
from ..core.causes import ORDER, Cause
from ..core.conventions import BUILT_IN
from ..core.registry import title

HERE = Path(__file__).parent
UNITS = {"FLOP": "a multiply-add counts 2", "MAC": "a multiply-add counts 1, so its total is doubled to be compared"}
LETTERS = (
    "N and O are the elements of the first input and of the output, K the positions of a kernel, B a batch, T its steps, "
    "H the units of a cell and I its inputs."
)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a counter counts for some operations, in which versions of its package, and where its source says so."""

    ops: tuple[str, ...]
    formula: str
    versions: str
    source: str


@dataclass(frozen=True, slots=True)
class Page:
    """``text`` is Markdown below the title; links are relative to the page's place in ``docs/KIND/``."""

    kind: str
    name: str
    meaning: str
    facts: str
    text: str
    rules: tuple[Rule, ...] = ()


@cache
def names() -> dict[str, str]:
    """The name of every page and its kind; a family of counters (``tf.profiler``) has a page of its own."""
    counters = [name for c in COUNTERS.values() for name in dict.fromkeys((c.family, c.name))]
    by_kind = {"causes": [c.value for c in Cause], "conventions": list(BUILT_IN), "counters": counters}
    return {name: kind for kind, found in by_kind.items() for name in found}


def page(name: str) -> Page:
    """The page of this name. Raises KeyError."""
    kind = names()[name]
    text = (HERE / kind / f"{name}.md").read_text(encoding="utf-8").strip() + "\n"
    meaning, facts = {"causes": _cause, "conventions": _convention, "counters": _counter}[kind](name)
    return Page(kind, name, meaning, facts, text, _rules(name) if kind == "counters" and "@" not in name else ())


def _cause(name: str) -> tuple[str, str]:
    cause = Cause(name)
    earlier = [c.value for c in Cause if ORDER[c] < ORDER[cause]]
    first = (
        f"Only what is none of these is booked here: {', '.join(earlier)}."
        if earlier
        else "Nothing is booked before it."
    )
    return cause.meaning, f"Number {ORDER[cause] + 1} of {len(Cause)} in booking order. {first}"


def _convention(name: str) -> tuple[str, str]:
    convention = BUILT_IN[name]
    weights = {part: convention.weight(part) for part in ("mac", "accumulators", "add", "mul", "div", "cmp", "special")}
    shown = ", ".join(f"{part} {weight}" for part, weight in weights.items() if weight)
    return convention.meaning, f"Weights: {shown}; all others 0."


def _counter(name: str) -> tuple[str, str]:
    if name not in COUNTERS:
        family = [c.name for c in COUNTERS.values() if c.family == name]
        return f"A family of {len(family)} counters.", f"Its members: {', '.join(family)}."
    counter = COUNTERS[name]
    asked = "Runs unless others are asked for." if counter.default else "Runs when asked for (--counter)."
    if counter.recipe:
        asked = "Runs when asked for (--counter), alone."
    return (
        counter.summary + ".",
        f"{title(counter.framework)}; unit {counter.unit}: {UNITS[counter.unit]}. {asked}",
    )


def _rules(name: str) -> tuple[Rule, ...]:
    """The rules of a counter's family, operations with the same formula in one."""
    module = next(c.module for c in COUNTERS.values() if c.family == name)
    book = importlib.import_module(f"{module}.rules").BOOK
    found: dict[tuple[str, str, str], list[str]] = {}
    for rule in book.rules():
        found.setdefault((rule.formula, str(rule.versions), rule.source), []).append(rule.op)
    return tuple(Rule(tuple(ops), *key) for key, ops in found.items())


def pages() -> Iterator[Page]:
    """All of them, by kind."""
    return (page(name) for name in names())


def short(op: str) -> str:
    """``Conv2d`` for ``torch.nn.modules.conv.Conv2d``; names of one or two parts stay."""
    return op.rpartition(".")[2] if op.count(".") > 1 else op
