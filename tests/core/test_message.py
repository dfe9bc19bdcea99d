"""The one line that a report shows of an error says what went wrong, not where TensorFlow or Keras met it."""

from __future__ import annotations

import pytest

from reconcile.adapters.shared.refusal import reason_of
from reconcile.core.errors import describe_error
from reconcile.core.message import LONGEST, first_line, text_of
from reconcile.worker import user_code

MESSAGES = {
    "": "",
    "a bug\nand its second line": "a bug",
    "  \n a bug  ": "a bug",
    "x" * (LONGEST + 1): "x" * LONGEST,
    # TensorFlow 2.21, with and without a stack of the graph
    "Graph execution error:\n\nOp type not registered 'f' in binary": "Op type not registered 'f' in binary",
    "Graph execution error:\n\nDetected at node MatMul defined at (most recent call last):\n<stack traces unavailable>\n"
    "Matrix size-incompatible: In[0]: [2,4]\n\t [[{{node MatMul}}]] [Op:__inference_f_10]": (
        "Matrix size-incompatible: In[0]: [2,4]"
    ),
    # TensorFlow 2.8
    "Graph execution error:\n\nDetected at node 'MatMul' defined at (most recent call last):\n"
    "    File \"net.py\", line 5, in <module>\n      f()\nNode: 'MatMul'\nMatrix size-incompatible\n\t [[{{node MatMul}}]]": (
        "Matrix size-incompatible"
    ),
    # Keras 3
    "Exception encountered when calling Net.call().\n\n\x1b[1mCondition x < y did not hold.\x1b[0m\n\nArguments received by": (
        "Condition x < y did not hold."
    ),
    "Graph execution error:": "Graph execution error:",
    "the layer failed:\n\n  for a reason\n  of its own": "the layer failed: for a reason",
}


@pytest.mark.parametrize(("message", "line"), MESSAGES.items(), ids=range(len(MESSAGES)))
def test_the_line_that_says_what_went_wrong(message: str, line: str) -> None:
    error = RuntimeError(message)
    assert first_line(error) == line
    half = f"RuntimeError: {line.rstrip('.')}" if line else "RuntimeError"
    assert describe_error(error) == half
    assert user_code.describe_user_error(error) == f"raised {half}"


class Unreadable(Exception):
    """An error whose own message fails, by another of its kind."""

    def __str__(self) -> str:
        raise Unreadable


class NoText(Exception):
    """An error whose message is no text."""

    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307


class Exits(Exception):
    """An error whose message ends the process."""

    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize("kind", [Unreadable, NoText, Exits])
def test_an_error_whose_message_fails_has_none(kind: type[Exception]) -> None:
    assert first_line(kind()) == text_of(kind()) == ""
    assert reason_of(kind()) == f"{kind.__name__}: "
    assert user_code.describe_user_error(kind(), "/nowhere") == f"raised {kind.__name__}"
