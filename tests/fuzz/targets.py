"""Every target of the fuzzing, by name."""

from __future__ import annotations

from .harness import Target


def load() -> dict[str, Target]:
    """The targets; their frameworks are imported when one is run."""
    from . import archives, arguments, networks, onnx_models, readers, tflite_models

    parts = (archives, arguments, networks, onnx_models, readers, tflite_models)
    return {target.name: target for part in parts for target in part.TARGETS}
