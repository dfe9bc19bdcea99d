"""The result of ``reconcile check`` for GitHub: the comment on a pull request, and annotations in the log of its workflow.

The verdict comes first, then what changed, then everything as ``reconcile check --verbose`` prints it, folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..core.text import clean, inert, plain
from . import told
from .changes import Change, CounterDrift, Drift
from .check import Checked
from .words import details, group_changes, sides, verdict

LIMIT = 60_000
"""Bytes of a comment; GitHub takes 65,536 characters."""
TABLE = LIMIT // 2
"""Bytes of its table."""
HEAD = ("| counter | layer | op | before | after | cause |", "|:--|:--|:--|:--|:--|:--|")
WORK_HEAD = ("| layer | before | after | change | what changed |", "|:--|--:|--:|--:|:--|")
ROW = tuple[str, str, str, str, str, str]
WORK = "the model's work changed"
SENTENCE = 600
"""Characters of a verdict, and of a message in the log."""
ANNOTATED = 10
"""The most annotations of one kind that GitHub shows for a step."""


def comment(done: Checked, remarks: Sequence[str], remedy: str = "") -> str:
    """The comment, in GitHub's Markdown; ``remarks`` are sentences for its end, ``remedy`` the command that accepts all of it."""
    drift = done.drift
    mark = "✅" if done.exit_code == 0 else "❌"
    lines = [f"{mark} **{inert(_verdict(done))}**", ""]
    if drift is not None and drift.moved:
        for trace in told.find_known(drift):
            lines += [
                f"The work that runs ({inert(trace.name)}), in FLOPs:",
                "",
                *_table(told.rows(trace), WORK_HEAD),
                "",
            ]
        if same := told.same(drift):
            lines += [f"{inert(', '.join(same))}: the same change, and no other.", ""]
        if found := rows(drift):
            lines += [*_table(found), ""]
        if remedy:
            lines += ["If this is what you want, accept it and commit the baseline:", "", *_code([remedy], "sh"), ""]
    lines += [f"{inert(_brief(remark))}  " for remark in remarks]
    said = details(drift, verbose=True) if drift is not None else []
    if said and done.exit_code:
        room = LIMIT - len("\n".join(lines).encode("utf-8", "backslashreplace")) - 1000
        lines += [
            "",
            "<details><summary>Everything that moved</summary>",
            "",
            *_code(_cut_lines(said, room, "lines")),
            "",
            "</details>",
        ]
    return "\n".join(lines).rstrip("\n") + "\n"


def first(model: str, remedy: str) -> str:
    """The comment where there is no baseline yet: how to take one."""
    lines = [f"❌ **{inert(clean(model))}: there is no baseline yet**", ""]
    lines += ["Take one on your machine, look at it, and commit the file:", "", *_code([remedy], "sh")]
    return "\n".join(lines) + "\n"


def annotate_layers(done: Checked) -> list[str]:
    """Workflow commands for the log: an error for each layer that moved, at the baseline's file, and for each that failed."""
    found: dict[str, list[str]] = {}
    for trace in told.find_known(done.drift) if done.drift is not None else ():
        for layer, before, after, change, what in told.rows(trace)[:-1]:
            text = f"{trace.name}: {before} -> {after} FLOPs, {change}"
            found.setdefault(layer, []).append(f"{text}: {what}" if what else text)
    for counter, layer, op, before, after, cause in rows(done.drift) if done.drift is not None else ():
        found.setdefault(layer, []).append(f"{counter}: {op} {before} -> {after}{f' ({cause})' if cause else ''}")
    errors = [(f"{_model(done)}: {layer} moved", "\n".join(said)) for layer, said in found.items()]
    errors += [(f"{_model(done)}: {missing.name} failed", missing.reason) for missing in done.failed]
    if not errors and done.exit_code:
        errors = [(f"{_model(done)}: not as in the baseline", _verdict(done))]
    return [
        f"::error file={_property(str(done.path))},title={_property(title)}::{_data(_brief(text))}"
        for title, text in errors[:ANNOTATED]
    ]


def rows(drift: Drift) -> list[ROW]:
    """Counter or trace, layer, op, before, after, cause: a row for what moved at one layer and is not told in FLOPs (told.py)."""
    found: list[ROW] = []
    for trace in (trace for trace in drift.traces if trace not in told.find_known(drift)):
        found += [(trace.name, *at, *sides(changes), WORK) for at, changes in group_changes(trace.changes).items()]
    for counter in told.apart(drift):
        found += _of_counter(counter)
    return found


def _of_counter(drift: CounterDrift) -> Iterator[ROW]:
    causes: dict[str, list[str]] = {}
    for line in drift.lines:
        causes.setdefault(line.layer, []).append(line.cause.value)
    for change in drift.causes:
        causes.setdefault(change.layer, []).append(change.cause.value)
    seen: dict[tuple[str, str], list[Change]] = group_changes(drift.changes)
    for (layer, op), changes in seen.items():
        yield drift.counter, layer, op, *sides(changes), ", ".join(dict.fromkeys(causes.get(layer, ())))
    entered = {layer for layer, _ in seen}
    for layer, names in causes.items():
        if layer not in entered:
            yield drift.counter, layer, "", "entries as before", "", ", ".join(dict.fromkeys(names))


def _table(found: Iterable[tuple[str, ...]], head: tuple[str, str] = HEAD) -> list[str]:
    return [*head, *_cut_lines([f"| {' | '.join(map(inert, row))} |" for row in found], TABLE, "rows")]


def _cut_lines(lines: Sequence[str], room: int, what: str) -> list[str]:
    """The first of these lines that fit into ``room`` bytes, and how many are left out."""
    kept: list[str] = []
    for number, line in enumerate(lines):
        room -= len(line.encode("utf-8", "backslashreplace")) + 1
        if room < 0:
            rest = f"{len(lines) - number:,} more {what}: run `reconcile check --verbose`"
            return [*kept, f"| {rest} | | | | | |" if what == "rows" else rest]
        kept.append(line)
    return kept


def _code(lines: Sequence[str], language: str = "text") -> list[str]:
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, *lines, fence]


def _verdict(done: Checked) -> str:
    if done.drift is None:
        return clean(f"{_model(done)}: {'a new baseline' if done.written else 'nothing was accepted'}")
    return _brief(verdict(done.drift, str(done.path)))


def _brief(text: str) -> str:
    """The beginning of a sentence that names many layers."""
    return text if len(text) <= SENTENCE else f"{text[:SENTENCE].rpartition(', ')[0] or text[:SENTENCE]}, and more"


def _model(done: Checked) -> str:
    return str(done.collected.meta["name"])


def _data(text: str) -> str:
    """A message of a workflow command (docs.github.com, workflow commands; actions/toolkit, command.ts)."""
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
