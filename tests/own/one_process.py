"""Commands of the tool, one after the other in one process, so that frameworks are imported once: imports take seconds.

``python -m tests.own.one_process`` runs commands where it is, such as `reconcile llm` beside transformers; with ``warm`` its
workers come from a process that has the frameworks. Each line of the input is a folder and the command's words in JSON; each line
of the output is what ``Done`` holds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Commands:
    """The process, and what it is asked for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __call__(self, *words: str, folder: Path = ROOT) -> Done:
        """`reconcile WORDS` in that folder."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([str(folder), words]), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "the process ended"
        return Done(*json.loads(line))


@contextmanager
def started(python: str, *words: str) -> Iterator[Commands]:
    """The process of that interpreter, until the end of the block."""
    command = [python, "-m", "tests.own.one_process", *words]
    pipe = subprocess.PIPE
    there = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=there, stdin=pipe, stdout=pipe, text=True) as process:
        yield Commands(process)


def _done(words: Sequence[str]) -> Done:
    from click.testing import CliRunner

    from reconcile.cli import cli

    result = CliRunner().invoke(cli, list(words), prog_name="reconcile")
    error = result.exception
    told = "".join(traceback.format_exception(error)) if error and not isinstance(error, SystemExit) else ""
    return Done(result.exit_code, result.stdout, result.stderr + told)


def main(*words: str) -> None:
    """Answer until the input ends."""
    from reconcile.products.forked_workers import warm

    with warm() if words == ("warm",) else nullcontext():
        for line in sys.stdin:
            folder, asked = json.loads(line)
            os.chdir(folder)
            print(json.dumps(_done(asked)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
