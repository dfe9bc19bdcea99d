"""Reduces an exception's message to the one line that says what went wrong, below the headings of TensorFlow and Keras.

Workers import it: Python 3.6 and standard library only.
"""

import re

LONGEST = 300

HEADING = re.compile(
    r"Graph execution error:|Exception encountered when calling |Detected at node |Node: |<stack traces "
)
"""The heading that TensorFlow and Keras write above a message. Stacks between are indented, colours are escapes."""


def text_of(error: BaseException) -> str:
    """An error's message, '' if its class cannot say it: the __str__ of a user's error may fail itself, in any way."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""


def first_line(error: BaseException) -> str:
    """The first line of an error's message, not too long; of a message with headings, the first line below them. A line that
    ends with a colon is read together with the next."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text_of(error)).strip().splitlines()
    if lines and HEADING.match(lines[0]):
        below = [line for line in lines if line.strip() and not line[0].isspace() and not HEADING.match(line)]
        lines = below or lines
    lines = [line.strip() for line in lines if line.strip()]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])[:LONGEST] if lines else ""
