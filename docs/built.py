"""Pages, tables and pictures that are made of committed data and are not committed themselves: ``docs/site.py`` shows them.

Two of these pages are committed as well, for who reads them where nothing is built: without links to what is not kept there.
``PYTHONPATH=. python docs/built.py`` writes those two, after `make gallery` or `make scorecard`, which write them whole.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from docs.links import linked
from reconcile.products.gallery import report as gallery
from reconcile.products.gallery.run import read_gallery
from reconcile.products.mfu import claims, peaks_report, table_report
from reconcile.products.mfu.table_verdicts import verdicts
from reconcile.products.scorecard import cells, page, picture
from reconcile.products.scorecard import report as scorecard
from reconcile.report.document.markdown import to_markdown
from tests.zoo import every_formula

ROOT = Path(__file__).resolve().parents[1]
REPORTS = Path("reports")
MFU, SCORECARD = REPORTS / "mfu", REPORTS / "scorecard"
COMMITTED = (REPORTS / "README.md", SCORECARD / "README.md")
"""Pages that are committed as well."""
PAGES = {
    REPORTS / "formulas.csv": REPORTS / "formulas.md",
    MFU / "claims.csv": MFU / "README.md",
    Path("reconcile/products/mfu/trainers.toml"): MFU / "trainers.md",
}
"""Committed tables that other pages link, and the page of each."""
WHOLE = "`make site` shows this page whole, with its picture and with the files that it names without a link."


def built() -> dict[Path, str | bytes]:
    """The content of each file, by its path in the repository. The pictures take matplotlib and some seconds."""
    rows, board = read_gallery(), scorecard.Board(cells.read_cards())
    found = verdicts(claims.read_claims(ROOT / MFU / "claims.csv"))
    return {
        REPORTS / "README.md": to_markdown(gallery.describe_gallery(rows, {})),
        REPORTS / f"{gallery.PICTURE}.svg": gallery.to_svg(rows),
        REPORTS / "formulas.md": every_formula.page(every_formula.read()),
        MFU / "README.md": to_markdown(
            table_report.describe_table(found, "reconcile mfu --table claims.csv --out mfu")
        ),
        MFU / "mfu.csv": table_report.to_csv(found),
        MFU / "trainers.md": to_markdown(peaks_report.describe_trainers()),
        SCORECARD / f"{scorecard.PAGE}.md": to_markdown(scorecard.describe_scorecard(board)),
        SCORECARD / f"{scorecard.STEM}.csv": scorecard.to_csv(board),
        SCORECARD / f"{scorecard.STEM}.html": page.to_html(board),
        SCORECARD / f"{scorecard.STEM}.svg": picture.to_svg(board),
        **{
            SCORECARD / f"{family}.md": to_markdown(scorecard.describe_family(board, family)) for family in board.layers
        },
    }


def committed(path: Path, text: str) -> str:
    """The committed text of a page: what leads to no file that git keeps is no link, and a picture that is not kept is gone."""
    kept = kept_files()
    pictures = re.compile(r"^!\[[^\]]*\]\(([^()\s]+)\)\n\n", re.MULTILINE)
    text = pictures.sub(lambda found: found[0] if path.parent / found[1] in kept else "", text)
    return f"{linked(text, path, kept)}\n{WHOLE}\n"


def kept_files() -> set[Path]:
    """The files that git keeps, relative to the repository; all of them in a copy without it."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return {path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()}
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(map(Path, done.stdout.splitlines()))


def write(files: Mapping[Path, str | bytes], folder: Path) -> None:
    """Write the files below the folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())


if __name__ == "__main__":
    whole = {path: text for path, text in built().items() if path in COMMITTED}
    write({path: committed(path, str(text)) for path, text in whole.items()}, ROOT)
