"""The links of a page, and what becomes of those that lead nowhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def linked(text: str, path: Path, there: Collection[Path], pages: Mapping[Path, Path] | None = None) -> str:
    """The text of the page ``path`` with the text in place of each link that leads to none of the files that are ``there``.
    ``pages`` maps a table to the page that is made of it: other pages lead there."""

    def kept(found: re.Match[str]) -> str:
        image, text, where = found.groups()
        target = where.partition("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        reached = Path(os.path.normpath(path.parent / target))
        page = (pages or {}).get(reached, path)
        if page != path:
            return f"{image}[{text}]({os.path.relpath(page, path.parent)})"
        if reached in there:
            return found[0]
        readme = reached / "README.md"
        if readme in there:
            return f"{image}[{text}]({os.path.relpath(readme, path.parent)})"
        return str(text)

    return outside_code(text, lambda part: LINK.sub(kept, part))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with what is neither a fenced block nor a span of code changed."""
    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))
