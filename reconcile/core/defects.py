"""A defect of ours, in a sentence: what happened and where; the whole traceback is kept in a file that can be sent along."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback

from .. import __version__

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
LONGEST = 300
"""Characters of what an exception says that are shown."""


def what(error: BaseException) -> str:
    """The exception's type and first line, and the innermost line of this package that it came through."""
    said = str(error).strip().partition("\n")[0][:LONGEST].rstrip()
    mine = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(HERE)]
    place = (
        f" ({os.path.relpath(mine[-1].filename, os.path.dirname(HERE[:-1]))}, line {mine[-1].lineno})" if mine else ""
    )
    return f"{type(error).__name__}{f': {said}' if said else ''}{place}"


def sentence(error: BaseException) -> str:
    """What to tell the user; the traceback itself follows where no file can take it."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    began = f"this is a defect of reconcile: {what(error)}. A report of it is welcome (see CONTRIBUTING.md)"
    path = _keep(text)
    if path:
        return f"{began}; please send along the traceback, which is in {path}."
    return f"{began}; please send along this traceback, for which there was no room in a file.\n{text.rstrip()}"


def _keep(text: str) -> str:
    """The new file that holds the traceback and the versions; '' where none can be written."""
    versions = f"reconcile {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    try:
        handle, path = tempfile.mkstemp(prefix="reconcile-", suffix=".traceback")
    except OSError:
        return ""
    try:
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(versions + text)
    except OSError:
        os.unlink(path)
        return ""
    return path
