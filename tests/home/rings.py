"""The two rings of the house: the core, and what can be taken away. Who belongs to what, and what the core knows of the rest."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

from reconcile.core import registry
from tests.home.modules import MODULES, facts, links

CORE = "core"
CORE_FRAMEWORKS = ("tensorflow", "pytorch")
CORE_COUNTERS = ("tf_profiler", "thop", "fvcore", "flop_counter")
CALLBACKS = {f"reconcile.{name}": "products.steps" for name in ("transformers", "lightning", "keras")}
"""Modules of a product at the root, because a program imports them by the name of the library beside it."""
SHARED = "products"
"""What lies beside the folders of the products: several of them share it, and the core imports none of it."""
TABLE = "reconcile.core.registry"
"""The module that has a row for everything that can be taken away."""


def removable() -> dict[str, str]:
    """What can be taken away: its name -> the package that holds it. Products, then frameworks, then counters."""
    found = {f"products.{name}": f"reconcile.products.{name}" for name in registry.PRODUCT_FOLDERS}
    found |= {f"frameworks.{n}": f"reconcile.adapters.{n}" for n in registry.BUILT_IN if n not in CORE_FRAMEWORKS}
    return found | {
        f"counters.{n}": f"reconcile.adapters.counters.{n}" for n in registry.COUNTER_FOLDERS if n not in CORE_COUNTERS
    }


REMOVABLE = removable()


@functools.cache
def owner(module: str) -> str:
    """What a module belongs to: a name of ``removable``, what products share, or the core."""
    if module in CALLBACKS:
        return CALLBACKS[module]
    rest = SHARED if module.startswith("reconcile.products.") else CORE
    return next((n for n, package in REMOVABLE.items() if f"{module}.".startswith(f"{package}.")), rest)


@functools.cache
def needs() -> dict[str, set[str]]:
    """What each removable part may import beside the core and itself, as its record says."""
    found = {f"products.{name}": {SHARED, *p.needs, *p.uses} for name, p in registry.products().items()}
    found |= {name: set(needs) for name, needs in registry._needs_of_folders().items()}
    return {name: found.get(name, set()) for name in REMOVABLE}


def with_dependents(names: Iterable[str]) -> set[str]:
    """These parts, and those that need one of them, directly or through others: without it the registry leaves them out."""
    needed = {f"products.{name}": product.needs for name, product in registry.products().items()}
    needed |= registry._needs_of_folders()
    return set(REMOVABLE) - registry._with_their_needs({n: needs for n, needs in needed.items() if n not in set(names)})


def seams(linked: Mapping[str, Iterable[str]]) -> list[str]:
    """The imports out of the core into what can be taken away, and those of a removable part into one that it does not need."""
    allowed = needs()
    return sorted(
        f"{module} imports {imported}"
        for module, found in linked.items()
        for imported in found
        if owner(imported) not in {CORE, owner(module), *allowed.get(owner(module), ())}
    )


def strings(modules: Iterable[str]) -> list[str]:
    """Strings of code, docstrings apart, that name the module or folder of a part which can be taken away and is not theirs."""
    parts = sorted({package.removeprefix("reconcile.") for package in REMOVABLE.values()}, key=len, reverse=True)
    named = re.compile(r"\b(?:" + "|".join(re.escape(p).replace(r"\.", "[./]") for p in parts) + r")\b")
    found = []
    for module in modules:
        if module == TABLE:
            continue
        for line, text in facts(module).strings:
            for match in named.finditer(text):
                target = owner("reconcile." + match[0].replace("/", "."))
                if target not in {owner(module), *needs().get(owner(module), ())}:
                    found.append(f"{module}, line {line}: {match[0]}")
    return sorted(set(found))


if __name__ == "__main__":
    print("\n".join(seams(links())))
    print("\n".join(strings(MODULES)))
