"""The adapters of FLOP counters: a folder per counter, the modules that several counters share, and how a counter is declared.

Python 3.6.
"""

from typing import Any

from ...core.counter import Counter

ROOT = "(root)"
"""The entry of the model itself, whose path is empty."""
SUM = "(sum)"
"""The entry of the part of a total that belongs to no module."""


def torch_counter(name: str, module: str, unit: str, summary: str, blind: str, **more: Any) -> Counter:
    """A counter of PyTorch models that runs only if requested; its package has the name of its family.

    ``more`` are fields with other values, or with values instead of their defaults.
    """
    family = name.partition("@")[0]
    fields = {"framework": "torch", "package": family, "distribution": family, "versions_key": family, "default": False}
    return Counter(name=name, module=module, unit=unit, summary=summary, blind=blind, **dict(fields, **more))
