"""The picture of an audit: where a dot lies, what it opens, and what it says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from reconcile.core.records import MAC
from reconcile.products.audit import report
from reconcile.products.audit.claims import Claim
from reconcile.products.audit.scatter_plot import picture
from reconcile.products.audit.verdict import State, Verdict
from reconcile.products.decode.readings import WORK, Candidate

HOSTILE = '<b a="1">&'


def row(number: int, figure: str, macs: int, state: State = State.OPEN, model: str = "net", lost: int = 0) -> Verdict:
    best = Candidate(macs, WORK, MAC, "macs") if state is State.EXPLAINED else None
    return Verdict(Claim(number, model, "", figure), state, best, macs=macs, lost=lost)


def drawn(*verdicts: Verdict) -> ElementTree.Element:
    return ElementTree.fromstring(picture(verdicts))


def lines(svg: ElementTree.Element) -> list[float]:
    """The heights of the lines of MACs and of FLOPs."""
    return [float(line.attrib["y1"]) for line in svg.findall("line") if "class" not in line.attrib]


def test_a_dot_lies_on_the_line_that_it_counts() -> None:
    """Twice as much to the right, ten times as much, and the figures on the lines of MACs and FLOPs."""
    svg = drawn(
        *(row(i, text, macs) for i, (text, macs) in enumerate((("1G", 10**9), ("20G", 10**10), ("100G", 10**11)), 1))
    )
    dots = {link.attrib["href"]: link[0].attrib for link in svg.findall("a")}
    macs, flops = lines(svg)
    assert flops < macs
    assert [float(dots[f"#row-{i}"]["cy"]) for i in (1, 2, 3)] == [macs, flops, macs]
    x = [float(dots[f"#row-{i}"]["cx"]) for i in (1, 2, 3)]
    assert abs((x[1] - x[0]) - (x[2] - x[1])) <= 0.2


def test_lost_attention_is_a_short_line_below_the_macs() -> None:
    svg = drawn(row(1, "1.5G", 2 * 10**9, State.EXPLAINED, lost=1_500_000_000))
    (dot,) = (link[0].attrib for link in svg.findall("a"))
    (short,) = (line.attrib for line in svg.findall("line") if line.attrib.get("class") == "lost")
    assert short["y1"] == short["y2"] == dot["cy"]
    assert float(short["y1"]) > max(lines(svg)[:1])


def test_a_dot_opens_its_row_and_has_the_colour_of_its_verdict() -> None:
    verdicts = [
        row(7, "1G", 10**9, State.EXPLAINED),
        row(9, "3G", 10**9, model=HOSTILE),
        row(11, "1G", 0, State.NOT_RUN),
    ]
    svg = drawn(*verdicts)
    assert [(link.attrib["href"], link.attrib["class"]) for link in svg.findall("a")] == [
        ("#row-7", "explained"),
        ("#row-9", "open"),
    ]
    assert svg.findall("a")[1][0][0].text == f"{HOSTILE}: 3G, 3 × the MACs that ran, not explained"
    text = report.to_html(verdicts, (0, 1))
    assert re.findall(r'<tr id="(row-\d+)"', text) == ["row-7", "row-9", "row-11"]


def test_what_is_far_off_lies_at_the_edge() -> None:
    svg = drawn(row(1, "1", 10**12), row(2, "1e20", 10**12), row(3, "0", 10**12))
    heights = [float(link[0].attrib["cy"]) for link in svg.findall("a")]
    height = float(svg.attrib["viewBox"].split()[3])
    assert len(heights) == 2
    assert [y for y in heights if not 0 < y < height] == []
    assert picture([row(1, "1G", 0, State.NOT_RUN)]) == ""
