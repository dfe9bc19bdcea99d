"""The files that docs/mfu.md names: each is a block of the page that begins with its name, and the table of claims."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def files(page: str) -> dict[str, str]:
    """The text of each file by its name."""
    named = dict(re.findall(r"^```\w+\n# (\S+\.(?:toml|py))\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    claims = re.findall(r"^```csv\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return {**named, **({"claims.csv": claims[0]} if claims else {})}
