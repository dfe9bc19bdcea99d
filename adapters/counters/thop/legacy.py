"""Old thops (0.0.31) report a total only: their hooks are watched one by one through ``custom_ops``. Python 3.6.

A wrapper calls the very hook thop would have called and notes what it added to the module's count.
"""

from typing import Any, Dict


class Watched(object):
    """thop.profile with every hook of its table wrapped; ``values`` holds what each module's hook added."""

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
    """Where thop's accumulator stops holding whole units: float32 in 0.0.31.post2001170342, float64 since."""
    return 1 << 24 if single else 1 << 53
