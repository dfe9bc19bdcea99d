"""Reports of bugs in reconcile itself: a sentence for the user with the error and its line, and a file with the traceback."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback

from .. import __version__

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
LONGEST = 300
"""Characters of an exception's message that are shown."""


def summary(error: BaseException) -> str:
    """The exception's type, the first line of its message, and the innermost line of this package in its traceback."""
    first_line = str(error).strip().partition("\n")[0][:LONGEST].rstrip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(HERE)]
    location = (
        f" ({os.path.relpath(frames[-1].filename, os.path.dirname(HERE[:-1]))}, line {frames[-1].lineno})"
        if frames
        else ""
    )
    return f"{type(error).__name__}{f': {first_line}' if first_line else ''}{location}"


def sentence(error: BaseException) -> str:
    """Save the traceback of an error to a file and return the message for the user, with the traceback in it if that fails."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    began = f"this is a defect of reconcile: {summary(error)}. Please report it (see CONTRIBUTING.md)"
    path = _keep(text)
    if path:
        return f"{began} and attach the traceback, which is in {path}."
    return f"{began} and attach this traceback, which could not be saved to a file.\n{text.rstrip()}"


def _keep(text: str) -> str:
    """The path of a new file with the traceback and the versions; '' if it cannot be written."""
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
