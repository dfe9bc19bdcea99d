"""The page of all releases: which release moved which layer, and by what cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reconcile.core.escaping import markdown
from reconcile.core.number_format import number

HEAD = (
    "# The day your number changed",
    "",
    "Written by `make releases`: each release of a counter's package, in an environment of its own over the packages that run",
    "here. It counts one call of the layers of the zoo's [families](../../model_zoo) and of three of its networks. A release",
    "that asks the packages here for what they no longer have counts the three networks beside PyTorch 1.10.1, on Python 3.8.",
    "Counters that a framework brings come with the framework's own release, and are held to the trace that it takes; there the",
    "last of each minor release is looked at, those of TensorFlow before 2.12 on Python 3.8 with the three networks, those that",
    "have nothing for Python 3.11 on 3.13. Each is compared with the release before it. *All explained* are releases whose rules",
    "explain every entry that they gave.",
    "Amounts are in the counter's own unit. Of a package with more than fifty releases some are left out: a change lies between",
    "the two that are named. `releases.csv`, which the command writes, has every release, `changes.csv` every layer and op that",
    "moved, with the lines of its bridge before and after.",
    "",
)

VERIFIED = (
    "",
    "## Read in the sources",
    "",
    "* calflops 0.2.8, which does not run, and 0.2.9 no longer patch `torch.bmm` (calflops/pytorch_ops.py:511, a comment from",
    "  then on): attention that gives back its weights, of which PyTorch makes two `bmm`, loses both products.",
    "* onnx-tool 0.9.0 counts a recurrent layer at each step (onnx_tool/node.py:2655); before, at one (0.8.5, :2341): the GRU of",
    "  gru_demo has 97.",
    "* ptflops 0.7.5 counts a transposed convolution at each position of its input (ptflops/pytorch_ops.py:310); before, of its",
    "  output (0.7.4, :74).",
    "* torchinfo 1.6.2 gives each module one hook (torchinfo/torchinfo.py:517); before, it gave one more for each parent of the",
    "  module (1.6.1, :477), and a Linear with two parents had three times its multiply-adds.",
)
"""Changes found in the source of both releases. tests/zoo/test_every_release.py checks their amounts."""


def page(releases: Sequence[Any], changes: Sequence[Any]) -> str:
    """The page, of the rows of both files."""
    counters = list(dict.fromkeys(row.counter for row in releases))
    columns = ("on the index", "looked at", "ran", "moved something", "all explained")
    lines = [*HEAD, f"| counter | package | {' | '.join(columns)} |", "|:--|:--|" + "--:|" * len(columns)]
    for name in counters:
        own = [row for row in releases if row.counter == name]
        ran = [row for row in own if row.families]
        days = {row.release for row in changes if row.counter == name}
        closed = sum(row.families == row.explained for row in ran)
        numbers = (own[0].listed, len(own), len(ran), len(days), closed)
        lines.append(f"| {name} | {own[0].package} | {' | '.join(map(str, numbers))} |")
    lines += VERIFIED
    for name in counters:
        lines += _counter(name, [r for r in releases if r.counter == name], [c for c in changes if c.counter == name])
    return "\n".join(lines) + "\n"


def _counter(name: str, releases: Sequence[Any], changes: Sequence[Any]) -> Iterator[str]:
    yield from ("", f"## {name}", "")
    ran = [row.release for row in releases if row.families]
    if ran and not changes:
        yield f"No layer moved from {ran[0]} to {ran[-1]}."
    moved = {row.release for row in changes}
    for day in (row.release for row in releases if row.release in moved):
        own = [row for row in changes if row.release == day]
        yield f"**{day}** (before it {own[0].before})"
        yield ""
        yield from map(_line, _grouped(own))
        yield ""
    for reason, which in _refused(releases):
        yield f"* Not run: {', '.join(which)}: {markdown(reason)}"


def _line(rows: Sequence[Any]) -> str:
    """One change: an op, how many layers it moved in, one of them with its amounts, and by what cause."""
    first = rows[0]
    layers = {(row.family, row.layer) for row in rows}
    place = markdown(f"{first.family.removeprefix('family_')} {first.layer}")
    where = place if len(layers) == 1 else f"{number(len(layers))} layers, such as {place}"
    causes = "; ".join(dict.fromkeys(cause for row in rows for cause in _causes(row)))
    open_ = "" if first.explained == "yes" else "; the rules do not explain it"
    amounts = f"{_amount(first.was)} → {_amount(first.now)} {first.unit}"
    return f"* `{first.op}` in {where}: {amounts}" + (f" ({causes})" if causes else "") + open_


def _grouped(rows: Sequence[Any]) -> list[list[Any]]:
    """Together if the same op moved by the same causes, in the same way."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        was, now = (int(text) if text else 0 for text in (row.was, row.now))
        found.setdefault((row.op, tuple(_causes(row)), row.explained, now > was), []).append(row)
    return list(found.values())


def _causes(row: Any) -> Iterator[str]:
    """``bias-and-scale +0 -> +64`` as the name of a cause that came, went or changed."""
    for line in row.causes.split("; "):
        name, _, amounts = line.partition(" ")
        if name:
            was, _, now = amounts.partition(" -> ")
            yield f"{name} {'comes' if was == '0' else 'goes' if now == '0' else 'changes'}"


def _amount(text: str) -> str:
    return number(int(text)) if text else "not there"


def _refused(releases: Sequence[Any]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[Any]] = {}
    for row in releases:
        if not row.families:
            found.setdefault(row.reason.replace(row.release, "") or row.reason, []).append(row)
    return [(_short(rows[0].reason), [row.release for row in rows]) for rows in found.values()]


def _short(reason: str) -> str:
    return reason if len(reason) < 160 else f"{reason[:160]} […]"
