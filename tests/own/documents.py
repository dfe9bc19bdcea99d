"""Python blocks of a document, executed as a reader would: files are written, prompts typed into one session.

``python -c "from tests.own.documents import main; main(PATH)"`` does so in the working directory and exits 1 if anything
shows otherwise than the document says.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.py)\n")


def main(path: str) -> None:
    """Execute the document's blocks: one that starts with ``# name.py`` is that file, one of prompts is typed."""
    typed = ""
    for block in BLOCK.findall(Path(path).read_text(encoding="utf-8")):
        named = FILE.match(block)
        if named:
            Path(named[1]).write_text(block, encoding="utf-8")
        elif block.startswith(">>> "):
            typed += block + "\n"
        else:
            sys.exit(f"a block is neither a file nor typed: {block[:60]!r}")
    test = doctest.DocTestParser().get_doctest(typed, {"__name__": "document"}, path, path, 0)
    found = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    print(f"{found.attempted} examples, {found.failed} failed")
    sys.exit(1 if found.failed or not found.attempted else 0)
