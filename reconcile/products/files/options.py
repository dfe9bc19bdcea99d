"""The options of ``run``, ``check`` and ``matrix`` about model files: --signature and --trust-file."""

from __future__ import annotations

from ...core.option import CHECK, MATRIX, RUN, Group, Kind, Option

OPTIONS = (
    Option(
        "signature", field="files", after="args", group=Group.MODEL, takers=(RUN, CHECK, MATRIX), default="",
        metavar="NAME", baseline=True,
        help="Of a SavedModel.  [default: serving_default]",
    ),
    Option(
        "trust-file", field="files", after="signature", group=Group.MODEL, takers=(RUN, CHECK, MATRIX), kind=Kind.FLAG,
        default=False, baseline=True,
        help="Read a file unconfined: its code may run.",
    ),
)  # fmt: skip
