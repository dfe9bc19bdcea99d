"""Old versions of thop (0.0.31) report only a total, so ``custom_ops`` wraps their hooks one by one. Python 3.6.

A wrapper calls the hook that thop would call and notes the amount that it adds to the module's count.
"""

from typing import Any, Dict


class Watched(object):
    """thop.profile with every hook of its table wrapped; ``values`` holds the amount that each module's hook added."""

    def __init__(self, table):
        # type: (Dict[Any, Any]) -> None
        self.values = {}  # type: Dict[Any, float]
        self.custom = {kind: self._wrapped(hook) for kind, hook in table.items()}

    def _wrapped(self, hook):
        # type: (Any) -> Any
        def watching(module, inputs, outputs):
            # type: (Any, Any, Any) -> None
            before = float(module.total_ops)
            hook(module, inputs, outputs)
            self.values[module] = self.values.get(module, 0.0) + float(module.total_ops) - before

        return watching

    def profile(self, profile, module, inputs):
        # type: (Any, Any, Any) -> float
        """The total as thop reports it."""
        total, _params = profile(module, inputs, custom_ops=self.custom, verbose=False)
        return float(total)


def exact_below(single):
    # type: (bool) -> int
    """The total from which thop's accumulator no longer holds whole units: float32 in 0.0.31.post2001170342, float64 since."""
    return 1 << 24 if single else 1 << 53
