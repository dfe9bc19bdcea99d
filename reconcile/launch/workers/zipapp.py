"""The tool as one file that any Python can run, for interpreters in which nothing may be installed."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

NAME = "reconcile.pyz"
MAIN = "worker/boot.py"
"""The module that is the file's ``__main__``."""


def pack(folder: Path) -> Path:
    """Write the file into ``folder``: every module of the package, adapters and zoo included, as source.

    It contains no bytecode, so it is the same for every version of Python.
    """
    package = Path(__file__).resolve().parents[2]
    path = folder / NAME
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("__main__.py", (package / MAIN).read_bytes())
        for parent, folders, names in os.walk(package, followlinks=True):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                if name.endswith(".py"):
                    module = Path(parent, name)
                    file.writestr(f"reconcile/{module.relative_to(package).as_posix()}", module.read_bytes())
    return path
