"""The adapters of FLOP counters: a folder per counter, the modules that several counters share, and how a counter is declared.

Python 3.6.
"""

from typing import Any, List

from ...core.counter import Counter
from ...core.records import Entry

ROOT = "(root)"
"""The entry of the model itself, whose path is empty."""
SUM = "(sum)"
"""The entry of the part of a total that belongs to no module."""
FORWARD_ONLY = "sees the forward pass only"
"""Why most counters cannot count a training step."""


def package_counter(name: str, module: str, unit: str, summary: str, blind: str = FORWARD_ONLY, **more: Any) -> Counter:
    """A counter of a package with the name of its family, which runs only if requested.

    ``more`` are its ``framework``, and fields with other values, or with values instead of their defaults.
    """
    family = name.partition("@")[0]
    fields = {"package": family, "distribution": family, "versions_key": family, "default": False}
    return Counter(name=name, module=module, unit=unit, summary=summary, blind=blind, **dict(fields, **more))


def torch_counter(name: str, module: str, unit: str, summary: str, blind: str = FORWARD_ONLY, **more: Any) -> Counter:
    """As ``package_counter``, for a counter of PyTorch models."""
    return package_counter(name, module, unit, summary, blind, **dict({"framework": "torch"}, **more))


def framework_counter(name: str, module: str, unit: str, summary: str, blind: str = "", **more: Any) -> Counter:
    """A counter that is a part of its framework, of PyTorch unless ``more`` says another, and runs only if requested."""
    fields = {"package": "", "distribution": "", "framework": "torch", "versions_key": "torch", "default": False}
    return Counter(name=name, module=module, unit=unit, summary=summary, blind=blind, **dict(fields, **more))


def add_rest(entries: List[Entry], total: int) -> None:
    """Add an entry for the part of a total that no module with a path has: no rule covers it, so it is a residual."""
    rest = total - sum(entry.value for entry in entries)
    if rest:
        entries.append(Entry(SUM, "", SUM, rest, 1))
