"""Documentation pages, one per cause, convention and counter: ``reconcile explain`` prints and ``docs/`` shows them.

The written part of a page is the file ``KIND/NAME.md`` beside this one; the facts that the code knows (meaning, booking
order, unit, rules with their source lines) are put before and after it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..core.causes import CAUSES, ORDER, Cause
from ..core.conventions import NAMED
from ..core.counter import Counter
from ..core.registry import known_counters, list_default_counters, title

HERE = Path(__file__).parent
UNITS = {"FLOP": "a multiply-add counts 2", "MAC": "a multiply-add counts 1, so its total is doubled to be compared"}
LETTERS_OF_FORMULAS = (
    "N and O are the elements of the first input and of the output, K the positions of a kernel, B a batch, T its steps, "
    "H the units of a cell and I its inputs."
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A counter's formula for some operations, the versions of its package that use it, and its place in the source."""

    ops: tuple[str, ...]
    formula: str
    versions: str
    source: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page: what the code knows, and ``text``, the Markdown below the title; its links are relative to ``docs/KIND/``."""

    kind: str
    name: str
    meaning: str
    facts: str
    text: str
    rules: tuple[Rule, ...] = ()


@cache
def names() -> dict[str, str]:
    """The name of every page and its kind. A family of counters (``tf.profiler``) has its own page, and members after
    a colon (``formula:6n``) have no other."""
    own = [(c.family,) if ":" in c.name else (c.family, c.name) for c in known_counters().values()]
    counters = [name for pair in own for name in dict.fromkeys(pair)]
    by_kind = {"causes": [c.value for c in Cause], "conventions": list(NAMED), "counters": counters}
    return {name: kind for kind, page_names in by_kind.items() for name in page_names}


def page(name: str) -> Page:
    """The page of this name. Raises KeyError."""
    kind = names()[name]
    text = _read_page(kind, name).strip() + "\n"
    meaning, facts = {"causes": _cause, "conventions": _convention, "counters": _counter}[kind](name)
    return Page(kind, name, meaning, facts, text, _rules(name) if kind == "counters" and "@" not in name else ())


def _read_page(kind: str, name: str) -> str:
    """The written part of a page. That of another package's counter is ``NAME.md`` beside the module that declares it, if any."""
    outside = _family(name)[0] if kind == "counters" else None
    if outside is None or not outside.folder:
        return (HERE / kind / f"{name}.md").read_text(encoding="utf-8")
    file = importlib.import_module(outside.module).__file__
    path = Path(file or "").parent / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _family(name: str) -> list[Counter]:
    """The counter of this name, otherwise those of this family."""
    counters = known_counters()
    return [counters[name]] if name in counters else [c for c in counters.values() if c.family == name]


def _cause(name: str) -> tuple[str, str]:
    cause = CAUSES[name]
    earlier = [c.value for c in Cause if ORDER[c] < ORDER[cause]]
    first = f"Earlier causes take precedence: {', '.join(earlier)}." if earlier else "Nothing is booked before it."
    return cause.meaning, f"Number {ORDER[cause] + 1} of {len(Cause)} in booking order. {first}"


def _convention(name: str) -> tuple[str, str]:
    convention = NAMED[name]
    shown = ", ".join(f"{part} {weight}" for part, weight in convention.weights.items() if weight)
    return convention.meaning, f"Weights: {shown}; all others 0."


def _counter(name: str) -> tuple[str, str]:
    if name not in known_counters():
        family = [c.name for c in _family(name)]
        return f"A family of {len(family)} counters.", f"Its members: {', '.join(family)}."
    counter = known_counters()[name]
    asked = "Runs by default." if counter.default else "Runs only if you name it with --counter."
    others = (c for c in known_counters().values() if c.framework == counter.framework)
    if name in list_default_counters(counter.framework) and not any(c.default for c in others):
        asked = f"Runs by default where {title(counter.framework)} is installed."
    if counter.recipe:
        asked = "Runs only if you name it, and no other counter, with --counter."
    return (
        counter.summary + ".",
        f"{title(counter.framework)}; unit {counter.unit}: {UNITS[counter.unit]}. {asked}",
    )


def _rules(name: str) -> tuple[Rule, ...]:
    """The rules of a counter's family. Operations with the same formula share one rule."""
    module = next(c.module for c in known_counters().values() if c.family == name)
    book = importlib.import_module(f"{module}.rules").BOOK
    ops_by_rule: dict[tuple[str, str, str], list[str]] = {}
    for rule in book.rules() or (book.base.rules() if book.base else ()):
        ops_by_rule.setdefault((rule.formula, str(rule.versions), rule.source), []).append(rule.op)
    return tuple(Rule(tuple(ops), *key) for key, ops in ops_by_rule.items())


def pages() -> Iterator[Page]:
    """All pages of what this package has, by kind."""
    return (page(name) for name, kind in names().items() if kind != "counters" or not _family(name)[0].folder)


def short(op: str) -> str:
    """``Conv2d`` for ``torch.nn.modules.conv.Conv2d``; names of one or two parts stay."""
    return op.rpartition(".")[2] if op.count(".") > 1 else op
