"""Runs thop.profile and returns its ledger, one entry per module that thop hooks and per path at which thop adds its count.

thop patches nothing, but leaves buffers on the modules, so it gets a module of its own.  Python 3.8, torch 1.x and later.
"""

from collections import Counter
from typing import Any, Dict, List, Tuple

import torch

from ....core.records import ALIAS, LIVE, MAC, Entry, Ledger, Sighting
from ...pytorch.model import TorchModel, versions
from ...pytorch.tracing.module_path import module_paths
from ...shared.distribution import version_of
from ...shared.refusal import CannotCount
from .. import ROOT as ROOT_ENTRY
from .. import SUM
from ..limits import Limit, explain_limits
from ..module_calls import ModuleCalls, class_name, visits

COUNTER = "thop"
LIMITS = (
    Limit(
        ("not supported on ScriptModules", "cannot assign buffer before Module.__init__() call"),
        "it puts hooks and buffers on every module, and a ScriptModule takes none: give the module that it was made of",
    ),
    Limit(
        ("/_functorch/", "(vjp, jvp, grad, etc) transform"),
        "it adds to its own buffers while the model runs, which torch.func does not allow: give the function that it "
        "transforms as a model of its own",
    ),
)
"""What thop cannot count."""

CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList)
EXACT = 1 << 53
"""From here on, float64 does not hold every whole number."""


def leaves(root: torch.nn.Module) -> List[Tuple[str, torch.nn.Module]]:
    """All modules with their first paths, each once: those that thop adds up before 0.0.31.post2004101309 are among them."""
    return list(root.named_modules())


def flatten(layers: Dict[str, Any], prefix: str, values: Dict[str, float]) -> None:
    """Own counts by path from thop's nested {name: (ops, params, children)}, where a parent's ops are a sum."""
    for name, (ops, _params, children) in layers.items():
        path = prefix + "." + name if prefix else name
        values[path] = ops - sum(child[0] for child in children.values())
        flatten(children, path, values)


def capture(counter: str, model: TorchModel) -> Ledger:
    """Run thop.profile on a fresh module on ``model.device``."""
    import importlib
    import inspect

    import thop

    table = importlib.import_module("thop.profile")  # the package's attribute of that name is the function
    number = version_of("thop", table)
    if date_of(number) < ADDS:
        raise CannotCount(
            f"thop {number} keeps only the last call of a module: take 0.0.23.post1908061459 or a later release"
        )
    module = model.build(model.device)
    inputs = tuple(model.example(model.device))
    hooks = Counter(m for _, m in visits(module))  # model.apply reaches it so often, and thop puts as many hooks on it
    own_hooks = {m: len(m._forward_hooks) for m in module.modules() if m._forward_hooks}
    with explain_limits(LIMITS, lambda: None):
        calls = ModuleCalls(module)
    values: Dict[str, float] = {}

    def is_hooked(m: torch.nn.Module) -> bool:
        return type(m) in table.register_hooks

    def is_entered(m: torch.nn.Module) -> bool:
        return not is_hooked(m) or isinstance(m, CONTAINERS)  # as dfs_count does (profile.py:209)

    walking = walks(thop.profile)
    visited = visits(module, is_entered) if walking else leaves(module)
    root_counts = not walking or date_of(number) >= ROOT
    with explain_limits(LIMITS, lambda: thop.profile(torch.nn.Linear(1, 1), (torch.zeros(1, 1),), verbose=False)):
        if "ret_layer_info" in inspect.signature(thop.profile).parameters:
            total, _params, layers = thop.profile(module, inputs, verbose=False, ret_layer_info=True)
            flatten(layers, "", values)
            values[""] = total - sum(ops for ops, _p, _c in layers.values())
        else:
            watched = Watched(table.register_hooks)
            total = watched.profile(thop.profile, module, inputs)
            values = {path: watched.values.get(m, 0.0) for path, m in visited}
            if not root_counts:
                values[""] = 0.0
    calls.remove()
    calls.check()
    if total >= EXACT:
        raise CannotCount(f"thop adds in floating point; its total {total!r} is above {EXACT} and therefore not exact")

    entries: List[Entry] = []
    sightings: List[Sighting] = []
    names = module_paths(module)
    for path, child in visited:
        owner = names[child]
        name, entry = class_name(child), path or ROOT_ENTRY
        if values[path]:
            entries.append(Entry(entry, owner, name, int(values[path]), calls.count(child)))
        for op in calls.ops(child, path, owner, len(sightings), own_hooks.get(child)):
            copies = hooks[child] if path or root_counts else 0
            sightings.append(Sighting(op, entry, LIVE if path == owner else ALIAS, copies))
    rounded = int(total) - sum(entry.value for entry in entries)
    if rounded:  # thop's sum of the modules in float32
        entries.append(Entry(SUM, "", "thop.float32", rounded, 1))
    unsupported: Dict[str, int] = {}
    for m in module.modules():
        if not is_hooked(m) and not list(m.children()):
            unsupported[class_name(m)] = unsupported.get(class_name(m), 0) + 1
    numbers = dict(versions(module), thop=number)
    return Ledger(
        COUNTER, "torch", MAC, model.device, numbers, int(total), tuple(entries), tuple(sightings), unsupported
    )


class Watched:
    """thop.profile of an old version (0.0.31), which reports only a total, with every hook of its table wrapped.

    ``values`` holds the amount that each module's hook added.
    """

    def __init__(self, table: Dict[Any, Any]) -> None:
        self.values: Dict[Any, float] = {}
        self.custom = {kind: self._wrap_hook(hook) for kind, hook in table.items()}

    def _wrap_hook(self, hook: Any) -> Any:
        def watch_hook(module: Any, inputs: Any, outputs: Any) -> None:
            before = float(module.total_ops)
            hook(module, inputs, outputs)
            self.values[module] = self.values.get(module, 0.0) + float(module.total_ops) - before

        return watch_hook

    def profile(self, profile: Any, module: Any, inputs: Any) -> float:
        """The total as thop reports it."""
        total, _params = profile(module, inputs, custom_ops=self.custom, verbose=False)
        return float(total)


def date_of(number: str) -> int:
    """The date of a release (``0.0.4.post2006111041``), year first; that of the newest for a number without a date."""
    date = number.rpartition("post")[2]
    return int(date.ljust(10, "9")) if date.isdigit() and len(date) in (6, 10) else 9999999999


ADDS = 1908061459
"""Before this release, a hook sets the count of its module: of several calls, only the last is in the total."""

ROOT = 2109101449
"""Before this release, the model's own count is not in the total, since there is a walk over children (``dfs_count``)."""


def walks(profile: Any) -> bool:
    """Whether a release walks over children; if not, it adds up all modules that have none, each once."""
    return any(getattr(c, "co_name", "") == "dfs_count" for c in profile.__code__.co_consts)
