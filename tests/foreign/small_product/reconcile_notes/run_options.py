"""``reconcile run --note TEXT``: count without a time limit to speak of, and keep the text with the result."""

from dataclasses import replace

import click

from reconcile.cli.run_options import RunCall, RunOptions
from reconcile.core.errors import UsageError

PATIENT = 86400.0


class NoteOptions(RunOptions):
    options = (
        click.option("--note", metavar="TEXT", help="Keep this note beside the reports; wait a day per counter."),
    )

    def prepare(self, call: RunCall) -> RunCall:
        """Refuse a note of several lines, and change the request."""
        note = call.given["note"]
        if note and "\n" in note:
            raise UsageError("--note takes one line.")
        return replace(call, request=replace(call.request, timeout=PATIENT)) if note else call

    def repeat_options(self, call: RunCall) -> list[str]:
        """The option as typed."""
        return ["--note", call.given["note"]] if call.given["note"] else []

    def follow(self, call: RunCall, answer: object, stem: str) -> int:
        """Write the note, with the code that the run ends with."""
        if call.given["note"]:
            (call.out / f"{stem}.note").write_text(f"{call.given['note']} ({answer.exit_code})")
        return 0


NOTES = NoteOptions()
