"""Folds are exact: expanded they give the lines that were folded, their names stand for these and no others, and the folded
report adds up to the same."""

from __future__ import annotations

import io
import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from reconcile.core.causes import Cause, State
from reconcile.core.results import LayerRow, Residual
from reconcile.engine.answer import Answer
from reconcile.engine.breakdown import Part
from reconcile.report import folds, reports
from reconcile.report.folds import list_shares
from reconcile.report.markdown import to_markdown
from reconcile.report.terminal.tables import statement_table
from tests.report import samples
from tests.report.tables import amount, read


def meant(name: str) -> list[str]:
    """The names that a fold's name stands for, read as the page on reports says."""
    number = r"(?:[0-9]+\.\.[0-9]+(?:/[0-9]+)?|[0-9]+)"
    pieces = re.split(rf"({number}(?:,{number})*)", name)
    choices = [list(listed(piece)) if i % 2 else [piece] for i, piece in enumerate(pieces)]
    return ["".join(combination) for combination in itertools.product(*choices)]


def listed(text: str) -> list[str]:
    found = []
    for part in text.split(","):
        bounds, _, step = part.partition("/")
        first, _, last = bounds.partition("..")
        found += [str(n) for n in range(int(first), int(last) + 1, int(step or 1))] if last else [first]
    return found


def folded(lines: list[tuple[str, int]], few: int = 0) -> list[folds.Fold[tuple[str, int]]]:
    return folds.fold_lines(lines, lambda line: line[0], lambda line: line[1], few)


# Trees of modules, as networks name them: stages with blocks with layers, in the three ways of writing, some with odd amounts.
indices = st.integers(0, 12).map(str)
segments = st.sampled_from(["layers", "encoder", "block", "conv", "h", "attn", "mlp", "stage1a", "experts"])
joints = st.sampled_from([".", "/", "_", ""])
paths = st.lists(st.tuples(segments, joints, indices, joints), min_size=1, max_size=4).map(
    lambda parts: "".join(map("".join, parts))
)
# Many of one kind, of which some lack and some are odd.
grids = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)), unique_by=lambda cell: cell[:2], max_size=16
).map(lambda cells: [(f"layers.{i}.experts.{j}", value) for i, j, value in cells])
trees = st.lists(st.tuples(paths, st.integers(0, 2)), max_size=60) | grids


def expanded(found: list[folds.Fold[tuple[str, int]]]) -> list[tuple[str, int]]:
    """The lines that were folded, in their order."""
    placed = {place: line for each in found for place, line in zip(each.places, each.lines, strict=True)}
    return [placed[place] for place in sorted(placed)]


@settings(max_examples=25)
@given(trees)
def test_every_line_comes_back_in_its_place(lines: list[tuple[str, int]]) -> None:
    found = folded(lines)
    assert expanded(found) == lines
    assert sorted(place for each in found for place in each.places) == list(range(len(lines)))
    assert sum(each.count * each.one[1] for each in found) == sum(value for _, value in lines)
    assert [each.places[0] for each in found] == sorted(each.places[0] for each in found)


@settings(max_examples=25)
@given(trees)
def test_a_name_stands_for_its_lines_and_no_others(lines: list[tuple[str, int]]) -> None:
    for each in folded(lines):
        assert sorted(meant(each.name)) == sorted(name for name, _ in each.lines)
        assert len({value for _, value in each.lines}) == 1


@settings(max_examples=25)
@given(st.text(max_size=30), st.text(alphabet="0123456789٣³._/", max_size=60))
def test_any_text_may_be_a_name(text: str, numbers: str) -> None:
    lines = [(name, 1) for name in (text, numbers) for _ in range(2)]
    assert expanded(folded(lines)) == lines


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=4),
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
)
def test_stages_with_blocks_fold_to_a_line_per_layer_of_a_block(
    sizes: list[tuple[int, int]], values: list[int]
) -> None:
    lines = [
        (f"stage{s}_block{b}_{layer}", 100 * s + values[layer])
        for s, (blocks, layers) in enumerate(sizes)
        for b in range(blocks)
        for layer in range(layers)
    ]
    found = folded(lines)
    assert len(found) == sum(len({values[layer] for layer in range(layers)}) for _, layers in sizes)
    whole = folds.list_structures(found)
    assert sorted(line for block in whole for line in block.lines) == sorted(lines)
    for block in whole:
        assert len(block.lines) % block.count == 0
        assert sum(value for _, value in block.lines) % block.count == 0


def test_a_part_of_a_block_is_not_called_the_block() -> None:
    """Four layers in each of 8 blocks, of which the first block has an odd q and k, and the last an odd up."""
    odd = {"layers.0.q": 7, "layers.0.k": 9, "layers.7.up": 5}
    lines = [
        (name, odd.get(name, 1)) for i in range(8) for name in (f"layers.{i}.{part}" for part in ("q", "k", "v", "up"))
    ]
    blocks = folds.list_structures(folded([*lines, ("head", 3)]))
    labels = folds.name_structures(blocks)
    assert labels == [
        ("layers.0", 1, ", 2 of 4 layers"),
        ("layers.0..7.v", 8, ""),
        ("layers.0..6.up", 7, ""),
        ("layers.1..7", 7, ", 2 of 4 layers"),
        ("layers.7.up", 1, ""),
        ("head", 1, ""),
    ]


def test_layers_that_are_all_in_one_layer_of_a_block_have_its_name() -> None:
    """Two experts of different amounts in each of 2 blocks, and a layer that is alike in both blocks."""
    lines = [
        ("b.0.q", 1),
        ("b.1.q", 1),
        *((f"b.{b}.moe.experts.{e}.w", 10 * b + e + 2) for b in range(2) for e in range(2)),
    ]
    labels = folds.name_structures(folds.list_structures(folded(lines)))
    assert ("b.0.moe.experts.*", 1, ", 2 layers") in labels, labels


@settings(max_examples=25)
@given(st.lists(paths, max_size=40).map(lambda names: [(name, i % 3) for i, name in enumerate(dict.fromkeys(names))]))
def test_no_two_blocks_have_one_label(lines: list[tuple[str, int]]) -> None:
    labels = folds.name_structures(folds.list_structures(folded(lines)))
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        (range(32), "l.0..31"),
        ([*range(7), *range(8, 32)], "l.0..6,8..31"),
        (range(5, 30, 6), "l.5..29/6"),
        ([3, 1], "l.1,3"),
        ([0, 7, 14], "l.0,7,14"),
        ([0, 6, 12, 18], "l.0..18/6"),
        ([4, 6, 7, 8, 9], "l.4,6..9"),
        ([0, 1, 2, 4, 6, 8, 10], "l.0..2,4..10/2"),
        (["01", "02"], "l.01,02"),
        (["0" * 12, "1" * 12], None),
    ],
)
def test_names_of_folds(numbers: list[object], name: str | None) -> None:
    found = folded([(f"l.{number}", 1) for number in numbers])
    assert [each.name for each in found] == ([name] if name else [f"l.{number}" for number in numbers])


def test_a_few_lines_are_left_alone() -> None:
    assert [each.count for each in folded([(f"l.{i}", 1) for i in range(folds.MAX_UNFOLDED)], folds.MAX_UNFOLDED)] == [
        1
    ] * folds.MAX_UNFOLDED


def test_variants_of_a_counter_are_named_together() -> None:
    run = ["tf@a", "tf@b", "thop"]
    assert folds.join_variants(["tf@a", "tf@b", "thop"], run) == ["tf@*", "thop"]
    assert folds.join_variants(["tf@a"], run) == ["tf@a"]
    assert folds.shorten_variants(["tf@a", "tf@b", "thop"]) == ["tf@a", "@b", "thop"]


def grown(blocks: int, odd: int | None = None) -> Answer:
    """Blocks of two layers; the layers of the ``odd`` one are counted as 0."""
    result = samples.grown(2 * blocks, lambda i: f"layers.{i // 2}.{('attn', 'mlp')[i % 2]}")
    if odd is None:
        return result
    zero = {samples.FROZEN: {Cause.OP_NOT_COUNTED: samples.MM_DENSE}}
    layers = tuple(
        replace(row, counters={samples.FROZEN: 0}, causes=zero) if row.layer.startswith(f"layers.{odd}.") else row
        for row in result.layers
    )
    return replace(result, layers=layers)


@pytest.mark.parametrize("odd", [None, 7])
def test_the_folded_table_is_the_table_of_every_layer(odd: int | None) -> None:
    """Every row of the Markdown, opened by its name, is the row of that layer in the CSV; the total adds them up."""
    result = grown(32, odd)
    table = next(t for t in read(to_markdown(result)).tables if t.heading == "Layers")
    assert table.header == ["layer", "work (tf, torch)", samples.FROZEN]
    *rows, total = table.rows
    opened: dict[str, tuple[int, int]] = {}
    for name, work, counted in rows:
        name, _, count = name.partition(" × ")
        for layer in meant(name):
            opened[layer] = amount(work), amount(counted.partition("\n")[0])
        assert len(meant(name)) == int(count or 1)
    assert opened == {row.layer: (row.work["tf"], row.counters[samples.FROZEN]) for row in result.layers}
    assert [amount(cell) for cell in total[1:]] == [sum(column) for column in zip(*opened.values(), strict=True)]
    assert len(rows) == (2 if odd is None else 4)
    assert (f"layers.{odd}.mlp" in [row[0] for row in rows]) == (odd is not None)


def test_a_residual_keeps_its_reasons() -> None:
    """However many layers it has: a line for each reason, in the Markdown and in the terminal."""
    result = grown(12)
    rests = tuple(Residual(row.layer, 1, f"reason {'abcdefghijklmno'[i]}") for i, row in enumerate(result.layers[:15]))
    first = result.statements[0]
    left = replace(first, residuals=rests, residual=15, to_total=(first.to_total or 0) + 15, state=State.UNEXPLAINED)
    page = read(to_markdown(replace(result, statements=(left,)), left))
    table = next(t for t in page.tables if "of which" in t.header)
    assert [text for text in table.column("op") if text.startswith("reason")] == [rest.reason for rest in rests]
    found = [Part(rest.layer, rest.amount, reason=rest.reason) for rest in rests]
    assert [share.reason for share in list_shares(found, 8)] == [rest.reason for rest in rests]
    out = io.StringIO()
    Console(file=out, width=80).print(statement_table(left, (), 15, brief=True))
    assert [rest.reason for rest in rests if rest.reason not in " ".join(out.getvalue().split())] == []


def test_the_folded_statement_adds_up() -> None:
    result = grown(32)
    table = next(t for t in read(to_markdown(result)).tables if "of which" in t.header)
    shares = [cell for cell in table.column("of which") if cell]
    assert shares == [f"-{32 * samples.BIAS} (32 × -{samples.BIAS})"] * 2
    opening, *causes, end = [amount(cell) for cell in table.column("FLOP") if cell]
    assert opening + sum(causes) == end


def test_the_table_of_layers_lies_beside_a_folded_report_only() -> None:
    texts = reports.render(grown(32), ("md",))
    assert set(texts) == {"md", "layers.csv"}
    assert "[toy.layers.csv](toy.layers.csv)" in str(texts["md"])
    assert set(reports.render(grown(4), ("md",))) == {"md"}
    assert set(reports.render(grown(32), ("csv",))) == {"csv"}


def test_a_row_that_shows_anything_else_stays_apart() -> None:
    row = LayerRow("l.0", {"tf": 4}, {"c": 2}, {"c": {Cause.OP_NOT_COUNTED: 2}}, {})
    others = [
        replace(row, work={"tf": 5}),
        replace(row, counters={"c": 3}),
        replace(row, causes={"c": {Cause.OUTSIDE_CONVENTION: 2}}),
        replace(row, residuals={"c": 1}),
    ]
    every = [replace(each, layer=f"l.{i}") for i, each in enumerate([*[row] * 12, *others])]
    assert [each.count for each in folds.fold_rows(every)] == [12, 1, 1, 1, 1]


def test_blocks_whose_layers_all_differ_are_told_by_kind() -> None:
    """Each expert has other tokens, so no two blocks show the same; attention is the same in each block."""
    tokens = {f"layers.{block}.experts.{expert}.up": 10 * block + expert for block in range(4) for expert in range(3)}
    work = {f"layers.{block}.attention": 7 for block in range(4)} | tokens | {"head": 5}
    alike = folds.fold_lines(list(work), lambda name: name, work.__getitem__)
    named = {name: len(lines) for name, lines in folds.name_lines(alike, few=4)}
    assert named == {"layers.0..3.attention × 4": 4, "layers.*.experts.*.up, 12 layers": 12, "head": 1}
