"""Every target of the fuzzing, by name."""

from __future__ import annotations

from .harness import Target


def load() -> dict[str, Target]:
    """The targets; their frameworks are imported when one is run."""
    from . import texts

    return {target.name: target for target in (*texts.TARGETS,)}
