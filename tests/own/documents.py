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
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TYPED = re.compile(r"^```(sh|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LEFT_OUT = "[...]"


def files(text: str) -> dict[str, str]:
    """The Python files of a document: blocks that start with ``# name.py``."""
    return {named[1]: block for block in BLOCK.findall(text) if (named := FILE.match(block))}


def commands(text: str) -> list[str]:
    """Every command line in the ``sh`` and ``console`` blocks of a document, without its comment."""
    lines = [
        line if kind == "sh" else line.removeprefix("$ ")
        for kind, block in TYPED.findall(text)
        for line in block.splitlines()
        if kind == "sh" or line.startswith("$ ")
    ]
    return [command for line in lines if (command := re.split(r"(?:^|\s)#", line)[0].strip())]


def consoles(text: str) -> list[tuple[str, list[str]]]:
    """The ``console`` blocks of a document: a command, and the parts of its output that are shown."""
    return [
        (command, [part.strip("\n") for part in shown.split(LEFT_OUT) if part.strip("\n")])
        for command, shown in CONSOLE.findall(text)
    ]


def not_printed(parts: list[str], printed: str) -> list[str]:
    """The parts that the output does not have in this order; spaces at the ends of its lines do not count."""
    rest = "\n".join(line.rstrip() for line in printed.splitlines())
    missing = []
    for part in parts:
        _, there, after = rest.partition(part)
        if there:
            rest = after
        else:
            missing.append(part)
    return missing


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
