"""The pictures themselves: lengths re-added from the file, the same bytes twice, hostile names, warnings are errors."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from reconcile.engine.answer import Answer
from reconcile.report import view
from reconcile.report.pictures import charts as pictures
from reconcile.report.pictures import drawing
from reconcile.report.pictures.drawing import Bar, Column, Layers
from tests.report import samples
from tests.report.svg import SVG, boxes

NAMES = [samples.NASTY, "</svg><script>alert(1)</script>", "-->]]>", "$x^{$", "л" * 300, "\u5c64\U0001f600\u05d0", ""]


def drawn(bars: list[Bar]) -> str:
    text = drawing.save_figure(drawing.draw_waterfall(bars, "From a to b", "toy"), "svg")
    assert isinstance(text, str)
    return text


def chain(*amounts: int) -> list[Bar]:
    """A waterfall of these steps: the first is the opening total, the last the residual."""
    first, *steps = amounts
    bars = [Bar("tf.profiler@frozen", "", 0, first, "total")]
    for index, amount in enumerate(steps):
        kind = "residual" if index + 1 == len(steps) else "cause"
        bars.append(Bar(f"cause-{index}", "a layer", bars[-1].end, amount, kind))
    return [*bars, Bar("thop", "", 0, sum(amounts), "total")]


CHAINS = [
    chain(120, 256, 72, 0),
    chain(7_715_946_496, -37_000_000, 12_345, 0),
    chain(100, -160, 90, -5),
    chain(0, 0),
    chain(10**18, -(10**17), 0),
]


@pytest.mark.parametrize("bars", CHAINS)
def test_the_bars_in_the_file_lead_from_one_total_to_the_other(bars: list[Bar]) -> None:
    found = boxes(drawn(bars), "bar-")
    assert len(found) == len(bars)
    zero = found["bar-0"][0]
    largest = max(range(len(bars)), key=lambda i: abs(bars[i].amount))
    scale = (found[f"bar-{largest}"][1] - found[f"bar-{largest}"][0]) / max(1, abs(bars[largest].amount))
    at = 0.0
    for index, bar in enumerate(bars[:-1]):
        left, right = found[f"bar-{index}"]
        before, at = at, at + (right - left if bar.amount > 0 else left - right)
        assert left == pytest.approx(zero + min(before, at), abs=0.01)
        assert right - left == pytest.approx(abs(bar.amount) * scale, abs=0.01)
    assert zero + at == pytest.approx(found[f"bar-{len(bars) - 1}"][1 if bars[-1].amount >= 0 else 0], abs=0.02)


def test_steps_too_small_to_see_are_drawn_on_their_own_scale() -> None:
    small, large = chain(1_000_000, 30_000, -10_000, 0), chain(1_000_000, 60_000, -10_000, 0)
    steps = boxes(drawn(small), "step-")
    widths = {name: right - left for name, (left, right) in steps.items()}
    assert widths["step-1"] == pytest.approx(3 * widths["step-2"], rel=1e-3)
    assert widths["step-1"] > 100
    assert boxes(drawn(large), "step-") == {}


@pytest.mark.parametrize("sample", [samples.full, samples.incomplete, samples.empty])
def test_the_values_by_layer_in_the_file_add_up_to_the_totals(sample: object) -> None:
    result: Answer = sample()  # type: ignore[operator]
    files = pictures.draw(result, None, ("svg",))
    totals = [x.normalised_total for x in result.ledgers if x.normalised_total is not None]
    if not result.layers or not totals:
        assert "layers.svg" not in files
        return
    found = boxes(str(files["layers.svg"]), "value-")
    widths = [
        sum(right - left for name, (left, right) in found.items() if name.startswith(f"value-{i}-"))
        for i in range(len(totals))
    ]
    scale = max(widths) / max(totals)
    assert widths == pytest.approx([total * scale for total in totals], abs=0.02)


def test_the_same_bars_give_the_same_bytes_in_any_settings() -> None:
    result = replace(samples.unexplained(), layers=())
    first = pictures.draw(result, view.default_statement(result), ("svg", "png"))
    assert set(first) == {"waterfall.svg", "waterfall.png"}
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "none", "axes.grid": True, "lines.linewidth": 9}):
        assert pictures.draw(result, view.default_statement(result), ("svg", "png")) == first
    text = str(first["waterfall.svg"])
    assert "<text" not in text
    assert not re.search(r"\n([MLQCz\"]| *(</|<path|<use))", text), "a group of shapes has one line"
    assert not re.search(r"dc:date|matplotlib\.org|<dc:title>Matplotlib", text)


def test_hostile_names_are_drawn_and_do_nothing_else() -> None:
    bars = chain(*range(100, 100 + len(NAMES)))
    bars = [replace(bar, label=name, about=name) for bar, name in zip(bars, NAMES, strict=False)]
    chart = Layers(tuple(NAMES), (Column(NAMES[0], tuple(range(len(NAMES))), tuple(range(len(NAMES)))),))
    for name, figure in zip(
        NAMES,
        (drawing.draw_waterfall(bars, NAMES[0], NAMES[1]), drawing.draw_layers(chart, NAMES[2], NAMES[4])),
        strict=False,
    ):
        text = str(drawing.save_figure(figure, "svg"))
        tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(text).iter()}
        assert tags.isdisjoint({"script", "foreignObject", "image", "a"}), name
        assert not {"\u202e", "\x1b"} & set(text)
