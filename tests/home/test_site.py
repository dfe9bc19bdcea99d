"""The site's sources: every page is there, no link leads nowhere, and nothing would be fetched from elsewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from docs import built, site
from docs.links import LINK, linked, outside_code
from reconcile.products.mfu.claims import read_claims
from reconcile.products.scorecard.cells import read_cards

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.text,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the site shows the files that git keeps"),
]


@pytest.fixture(scope="module", params=["few", pytest.param("all", marks=pytest.mark.slow)])
def laid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the site, with what is made of few rows of the committed data, or of all."""
    pytest.importorskip("matplotlib")  # some pages have plots
    folder = tmp_path_factory.mktemp("site") / "laid"
    rows, cards = read_claims(built.ROOT / built.MFU / "claims.csv"), read_cards()
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "few":
            patch.setattr(built.claims, "read_claims", lambda _path: rows[:20])
            patch.setattr(built.cells, "read_cards", lambda: {k: v for k, v in cards.items() if v.counter == "thop"})
            patch.setattr(built.gallery, "to_svg", lambda _rows: "<svg/>")
            patch.setattr(built.picture, "to_svg", lambda _board: "<svg/>")
        site.lay_out(folder)
    return folder


def test_it_has_the_documentation_and_the_results(laid: Path) -> None:
    named = re.findall(r": ([\w./]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(named) > 15
    assert [name for name in named if not (laid / name).is_file()] == []
    docs = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert {path.name for path in (laid / "docs").glob("*.md")} == docs


def test_no_link_leads_nowhere(laid: Path) -> None:
    lost = []
    count = 0
    for page in laid.rglob("*.md"):
        parts = []
        outside_code(page.read_text(), lambda part, parts=parts: parts.append(part) or part)
        for _, _, where in LINK.findall("".join(parts)):
            target = where.partition("#")[0]
            if target and not re.match(r"[a-z]+:", target):
                count += 1
                if not os.path.isfile(page.parent / target):
                    lost.append((page.name, where))
    assert count > 500
    assert lost == []


def test_a_link_to_the_sources_becomes_its_text() -> None:
    text = "[a](../x.py), [b](other.md#c), ![c](d.svg), [e](https://f.g), [h](folder/) and `[i](j.py)`\n```\n[k](l.py)\n```\n"
    there = {Path("docs/other.md"), Path("docs/folder/README.md")}
    assert linked(text, Path("docs/page.md"), there) == (
        "a, [b](other.md#c), c, [e](https://f.g), [h](folder/README.md) and `[i](j.py)`\n```\n[k](l.py)\n```\n"
    )


def test_a_link_to_a_table_leads_to_its_page_from_all_others() -> None:
    table, page = Path("reports/a.csv"), Path("reports/a.md")
    text = "[a](../reports/a.csv)"
    assert linked(text, Path("docs/page.md"), {table, page}, {table: page}) == "[a](../reports/a.md)"
    assert linked("[a](a.csv)", page, {table, page}, {table: page}) == "[a](a.csv)"


def test_what_a_browser_would_fetch_is_found(tmp_path: Path) -> None:
    page = '<a href="https://a.b">x</a><img src="c.png"><script src="{}d.e/f.js"></script><link rel=icon href=//g.h/i>'
    (tmp_path / "x.html").write_text(page.format("https://"))
    assert len(site.fetched(tmp_path)) == 2
    (tmp_path / "x.html").write_text(page.format("").replace("//g", "g"))
    assert site.fetched(tmp_path) == []
