"""The result of ``reconcile check`` for GitHub: the comment on a pull request, and annotations in the log of its workflow.

The verdict comes first, then what changed, then everything as ``reconcile check --verbose`` prints it, folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ...core.conventions import Convention
from ...core.escaping import escape_line, escape_lines
from ...drift import work_changes
from ...drift.changes import Change, CounterDrift, Drift
from ...drift.check import Checked
from ...drift.report import details, group_changes, sides, verdict
from ...report.document import Block, Code, Fold, Items, Table, Text, strong, tabulate
from ...report.document.markdown import render_blocks

LIMIT = 60_000
"""Bytes of a comment; GitHub takes 65,536 characters."""
TABLE = LIMIT // 2
"""Bytes of its table."""
ROW = tuple[str, str, str, str, str, str]
WORK = "the model's work changed"
SENTENCE = 600
"""Characters of a verdict, and of a message in the log."""
ANNOTATED = 10
"""The most annotations of one kind that GitHub shows for a step."""


def write_for_github(
    model: str, done: Checked | None, _convention: Convention, remarks: Sequence[str], remedy: str
) -> tuple[str, list[str]]:
    """The comment and the annotations, see Product.check_formats."""
    return (first(model, remedy), []) if done is None else (comment(done, remarks, remedy), annotate_layers(done))


def comment(done: Checked, remarks: Sequence[str], remedy: str = "") -> str:
    """The comment, in GitHub's Markdown; ``remarks`` are sentences for its end, ``remedy`` the command that accepts all of it."""
    drift, mark = done.drift, "✅" if done.exit_code == 0 else "❌"
    blocks: list[Block] = [Text((f"{mark} ", strong(_verdict(done))))]
    if drift is not None and drift.has_moved:
        for trace in work_changes.traces_in_flops(drift):
            table = tabulate("layer|before>|after>|change>|what changed", work_changes.layer_rows(trace))
            blocks += [Text(f"The work that runs ({trace.name}), in FLOPs:"), table]
        if same := work_changes.following_counters(drift):
            blocks.append(Text(f"{', '.join(same)}: the same change, and no other."))
        if found := rows(drift):
            blocks.append(tabulate("counter|layer|op|before|after|cause", found))
        if remedy:
            blocks += [Text("If this is what you want, accept it and commit the baseline:"), Code(remedy, "sh")]
    blocks.append(Items(tuple(map(_brief, remarks))))
    text = _render(blocks)
    said = details(drift, verbose=True) if drift is not None and done.exit_code else []
    if said:
        room = LIMIT - len(text.encode("utf-8", "backslashreplace")) - 1000
        text += "\n" + _render([Fold("Everything that moved", (Code("\n".join(_cut_lines(said, room, "lines"))),))])
    return text


def first(model: str, remedy: str) -> str:
    """The comment where there is no baseline yet: how to take one."""
    verdict = ("❌ ", strong(f"{model}: there is no baseline yet"))
    how = Text("Take one on your machine, look at it, and commit the file:")
    return _render([Text(verdict), how, Code(remedy, "sh")])


def _render(blocks: Iterable[Block]) -> str:
    """As Markdown of which GitHub makes no links and calls nobody; tables are cut."""
    texts = []
    for block in blocks:
        for text in render_blocks([block]):
            lines = text.split("\n")
            if isinstance(block, Table):
                text = "\n".join([*lines[:2], *_cut_lines(lines[2:], TABLE, "rows")])
            texts.append(text if isinstance(block, Code | Fold) else _disable_links(text))
    return "\n\n".join(texts) + "\n"


def annotate_layers(done: Checked) -> list[str]:
    """Workflow commands for the log: an error for each layer that moved, at the baseline's file, and for each that failed."""
    found: dict[str, list[str]] = {}
    for trace in work_changes.traces_in_flops(done.drift) if done.drift is not None else ():
        for layer, before, after, change, what in work_changes.layer_rows(trace)[:-1]:
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
    """Counter or trace, layer, op, before, after, cause: a row for what moved at one layer, but for what work_changes.py
    shows in FLOPs. Counters of which it says the same share it."""
    found: list[ROW] = []
    for trace in (trace for trace in drift.traces if trace not in work_changes.traces_in_flops(drift)):
        found += [(trace.name, *at, *sides(changes), WORK) for at, changes in group_changes(trace.changes).items()]
    for counter in work_changes.other_counters(drift):
        found += _of_counter(counter)
    alike: dict[ROW, list[str]] = {}
    for each in found:
        alike.setdefault(("", *each[1:]), []).append(each[0])
    return [(", ".join(names), *row[1:]) for row, names in alike.items()]


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


def _verdict(done: Checked) -> str:
    if done.drift is None:
        return escape_line(f"{_model(done)}: {'a new baseline' if done.written else 'nothing was accepted'}")
    return _brief(verdict(done.drift, str(done.path)))


def _brief(text: str) -> str:
    """The beginning of a sentence that names many layers."""
    return text if len(text) <= SENTENCE else f"{text[:SENTENCE].rpartition(', ')[0] or text[:SENTENCE]}, and more"


def _model(done: Checked) -> str:
    return str(done.collected.meta["name"])


def _data(text: str) -> str:
    """A message of a workflow command (docs.github.com, workflow commands; actions/toolkit, command.ts)."""
    return escape_lines(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# Text that GitHub turns into links besides its markup: links, addresses, and names of people and issues.
_GITHUB_LINK = re.compile(
    r"(?i:https?|ftp)(?=://)|(?i:mailto|xmpp)(?=:)|(?i:\bwww)(?=\.)|(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|#(?=\d)|\b(?i:gh)-(?=\d)"
)


def _disable_links(text: str) -> str:
    """Markdown for a comment on GitHub: an empty HTML comment inside keeps links and mentions inactive."""
    return _GITHUB_LINK.sub(r"\g<0><!-- -->", text)
