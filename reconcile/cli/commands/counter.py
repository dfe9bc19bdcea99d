"""``reconcile counter``: the commands for authors of counters, loaded when they are called."""

from __future__ import annotations

import click

from ..lazy import LazyGroup

GROUPS = {
    "Commands": {
        "new": "Write the package of a counter to start from.",
        "conform": "Run the conformance tests on a counter.",
        "draft": "Draft the rules of a counter that has none.",
        "reproduce": "Print the shortest program that shows a counter's error.",
    }
}


@click.group(cls=LazyGroup, groups=GROUPS, functions={"new": "new.new_counter", "draft": "draft_rules.draft_rules"})
def counter() -> None:
    """Write, test and draft a counter, and show its errors.

    `reconcile explain counters` lists the counters, and `reconcile run --counter NAME` runs one.
    """
