"""Old versions of thop (0.0.31) report only a total, so ``custom_ops`` wraps their hooks one by one. Python 3.8.

A wrapper calls the hook that thop would call and notes the amount that it adds to the module's count.
"""

from typing import Any, Dict


class Watched:
    """thop.profile with every hook of its table wrapped; ``values`` holds the amount that each module's hook added."""

    def __init__(self, table: Dict[Any, Any]) -> None:
        self.values: Dict[Any, float] = {}
        self.custom = {kind: self._wrapped(hook) for kind, hook in table.items()}

    def _wrapped(self, hook: Any) -> Any:
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
