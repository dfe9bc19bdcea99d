"""What a table's figures count in total, and the two pages that show it."""

from __future__ import annotations

import html as text_of_html
import re

from reconcile.core.causes import Cause
from reconcile.core.records import FLOP, MAC
from reconcile.products.audit import report, summary
from reconcile.products.audit.claims import Claim
from reconcile.products.audit.command import group_by_reason
from reconcile.products.audit.verdict import State, Verdict
from reconcile.products.decode.readings import PART, WORK, Candidate
from reconcile.report.document.markdown import to_markdown
from tests.report.test_page import Document

LOST = f"{Cause.ATTENTION_LEFT_OUT.value}: 700 products of 12 layers are not in it: a, b, c, ..."
HOSTILE = "<script>alert(1)</script>|`=cmd`"


def explained(
    row: int, model: str, figure: str, unit: str, what: str, note: str = "", claim: str = "GMACs", numbers: int = 1
) -> Verdict:
    value = round(float(figure) * 1e9)
    best = Candidate(value, PART if note else WORK, unit, what, "", note)
    said = Claim(row, model, "1,3,224,224", figure, claim)
    return Verdict(said, State.EXPLAINED, best, numbers + 1, numbers, 0.01, value)


def closed(row: int, model: str, figure: str, state: State = State.OPEN, macs: int = 9) -> Verdict:
    return Verdict(Claim(row, model, "1,3,224,224", figure, "GMACs"), state, macs=macs, reason="nobody knows")


VERDICTS = [
    explained(1, "vit", "17.58", MAC, "all"),
    explained(2, "vit", "16.87", MAC, "without attention", LOST),
    explained(3, "vit", "17.58", MAC, "all"),
    explained(4, "net", "4.1", MAC, "all", claim="GFLOPs", numbers=2),
    explained(5, "net", "8.2", FLOP, "twice", claim="GFLOPs"),
    closed(6, "odd", "3.3"),
    closed(7, "odd", "3.4"),
    closed(8, "gone", "1.0", State.NOT_RUN, 0),
    closed(9, HOSTILE, HOSTILE, State.NOT_READ, 0),
]


def test_every_explained_figure_is_in_one_unit() -> None:
    assert len(summary.select_explained(VERDICTS)) == 5
    assert dict(summary.kinds(VERDICTS)) == {
        "count MACs": 4,
        "count FLOPs": 1,
        "are called GFLOPs and count MACs": 1,
        "leave something out: attention-left-out": 1,
    }


def test_readings_are_counted_once_each() -> None:
    assert summary.readings(VERDICTS) == [("all", 3, 2), ("twice", 1, 1), ("without attention", 1, 1)]


def test_the_terminal_has_a_line_for_each_row() -> None:
    rows = report.tabulate_rows(VERDICTS).rows
    counts = ["MACs", "MACs", "MACs", "MACs", "FLOPs", "neither", "neither", "not run", "not read"]
    assert [row[2] for row in rows] == counts
    assert [row[3].endswith(end) for row, end in zip(rows[4:6], ("twice", "nobody knows"), strict=True)] == [True, True]


def test_rows_that_are_wrong_for_one_reason_are_named_together() -> None:
    assert group_by_reason({1: "no timm", 2: "no such model", 4: "no timm"}) == [
        ("no timm", [1, 4]),
        ("no such model", [2]),
    ]


def test_a_model_with_several_figures_says_what_each_is() -> None:
    """The same figure twice is one; those that are furthest apart come first."""
    assert report.tabulate_models(summary.group_by_model(VERDICTS)).rows == (
        ("net 1,3,224,224", "4.1, 8.2", "all; twice"),
        ("vit 1,3,224,224", "16.87, 17.58", "without attention; all"),
        ("odd 1,3,224,224", "3.3, 3.4", "not explained; not explained"),
    )


def test_the_page_lists_every_row_of_a_short_table_alone() -> None:
    text = to_markdown(report.describe_audit(VERDICTS, (3, 1000), "reconcile audit x.csv"))
    assert "9 figures: 5 explained; 0 explained if cut off; 2 not explained; 1 not run; 1 not read." in text
    assert "3 models have several figures for one input; of 2, all figures are explained." in text
    assert "| vit 1,3,224,224 | 16.87, 17.58 | without attention; all |" in text
    assert len(re.findall(r"^\| (vit|net) \| 1,3,224,224 ", text, re.MULTILINE)) == 5
    many = [closed(row, "odd", "3.3") for row in range(report.MAX_LISTED_ROWS + 1)]
    assert "Every row:" not in to_markdown(report.describe_audit(many, (0, 1000)))
    assert "`audit.csv`" in to_markdown(report.describe_audit(many, (0, 1000)))


def test_the_html_page_has_every_row_and_no_tag_of_a_table() -> None:
    text = report.to_html(VERDICTS, (3, 1000), f"reconcile audit {HOSTILE}")
    found = Document(text)
    assert len(found.all("script")) == 1
    assert text_of_html.escape(HOSTILE).replace("&#x27;", "'") in text.replace("&#39;", "'")
    cells = ["".join(texts) for tag, _, texts in found.elements if tag in ("td", "th")][-9 * len(VERDICTS) :]
    rows = [cells[at : at + 9] for at in range(0, len(cells), 9)]
    assert [row[0] for row in rows] == [v.claim.model for v in VERDICTS]
    assert [row[2] for row in rows] == [v.claim.printed for v in VERDICTS]
    assert rows[0][5] == "all"
    assert "without attention" in [text for _, text in found.all("summary")]
    assert LOST in [text for _, text in found.all("p")]
    assert rows[5][5] == "nobody knows"
