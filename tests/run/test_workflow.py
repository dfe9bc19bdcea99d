"""The list of steps that a newcomer reads first names them in their order."""

from __future__ import annotations

import re

from reconcile import workflow


def test_the_table_lists_the_steps_in_their_order() -> None:
    table = re.search(r"^=+ +=+$\n(.*?)^=+ +=+$", workflow.__doc__ or "", re.MULTILINE | re.DOTALL)
    assert table is not None
    first = [line.split()[0].strip("`") for line in table[1].splitlines() if line and not line.startswith(" ")]
    assert first == ["read", *(step.__name__ for step in workflow.STEPS), "render"]
