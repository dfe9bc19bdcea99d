"""``reconcile zoo``: the commands of the zoo's pairs and of its families of layers, loaded when they are called."""

from __future__ import annotations

import click

from ..lazy import LazyGroup

GROUPS = {
    "Commands": {
        "gallery": "Run every pair of the zoo and write the gallery.",
        "scorecard": "Test every counter on every layer of the zoo's families.",
        "new": "Write a pair file to start from.",
    }
}


@click.group(cls=LazyGroup, groups=GROUPS, functions={"new": "new.new_pair"})
def zoo() -> None:
    """Run the models of this tool and write their pages.

    A pair is one model in TensorFlow and PyTorch. `reconcile explain models` lists the pairs, and `reconcile run --model NAME`
    runs one.
    """
