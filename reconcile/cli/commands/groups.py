"""``reconcile zoo`` and ``reconcile counter``: groups of commands, loaded when they are called."""

from __future__ import annotations

import click

from ..lazy import LazyGroup

ZOO = {
    "Commands": {
        "gallery": "Run every pair of the zoo and write the gallery.",
        "scorecard": "Test every counter on every layer of the zoo's families.",
        "new": "Write a pair file to start from.",
    }
}
COUNTER = {
    "Commands": {
        "new": "Write the package of a counter to start from.",
        "conform": "Run the conformance tests on a counter.",
        "draft": "Draft the rules of a counter that has none.",
        "reproduce": "Print the shortest program that shows a counter's error.",
    }
}


@click.group(cls=LazyGroup, groups=ZOO, functions={"new": "new.new_pair"})
def zoo() -> None:
    """Run the models of this tool and write their pages.

    A pair is one model in TensorFlow and PyTorch. `reconcile explain models` lists the pairs, and `reconcile run --model NAME`
    runs one.
    """


@click.group(cls=LazyGroup, groups=COUNTER, functions={"new": "new.new_counter", "draft": "draft_rules.draft_rules"})
def counter() -> None:
    """Write, test and draft a counter, and show its errors.

    `reconcile explain counters` lists the counters, and `reconcile run --counter NAME` runs one.
    """
