"""Answer hook: adds the published numbers of a pair, looked up by decode, to the answer of a training step.

``reconcile run --model PAIR --pass training`` shows them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...engine.answer import Answer
    from ...engine.settle import Collected
    from ...launch.request import RunRequest


def add_published_figures(request: RunRequest, collected: Collected, answer: Answer) -> Answer:
    """Look up the published figures of a pair in its training step and in saved runs, and add them to the answer."""
    if not (request.training and request.model):
        return answer
    from .sources import claims, folders_of

    return replace(answer, published=claims(request.model, collected, folders_of(request.model)))
