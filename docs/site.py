"""Makes the site of the documentation and the reports: PYTHONPATH=. python docs/site.py [FOLDER].

Everything that the pages link to is laid out in ``build/site`` as it lies in the repository, with what is made of committed data
(``docs/built.py``), and mkdocs builds it to FOLDER (``build/html``): searchable, and nothing is asked of a network when you read
it. Programs beside a page are files there; a link to a file of the sources is its text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docs.built import PAGES, built, write
from docs.links import linked

ROOT = Path(__file__).resolve().parents[1]
LAID, BUILT = ROOT / "build" / "site", ROOT / "build" / "html"
TOOLS = ("mkdocs==1.6.1", "mkdocs-material==9.8.1")
TOP = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
FOLDERS = ("docs", "reports")
SHOWN = (".md", ".py", ".svg", ".png", ".html", ".css", ".csv", ".js", ".json", ".ipynb", ".toml")
OUTSIDE = re.compile(
    r"<(?:script|link|img|iframe|source|object)\b[^>]*?\b(?:src|href|data)=[\"']?(?:https?:)?//[^\s>]*"
)
"""A part of a page that a browser would fetch from elsewhere. A link is no part of the page that has it."""


def files() -> list[Path]:
    """What the site shows: the files that git keeps, relative to the repository."""
    kept = subprocess.run(["git", "ls-files", *TOP, *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(name) for name in kept.stdout.splitlines() if name.endswith(SHOWN)]


def lay_out(folder: Path) -> None:
    """Write the sources of the site to the folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    shown = {**{path: (ROOT / path).read_bytes() for path in files()}, **built()}
    pages = {
        path: str(content, "utf-8") if isinstance(content, bytes) else content
        for path, content in shown.items()
        if path.suffix == ".md"
    }
    write({**shown, **{path: linked(text, path, shown, PAGES) for path, text in pages.items()}}, folder)


def build(folder: Path) -> None:
    """Build the laid out sources, without a network once uv has the tools. Raises CalledProcessError for a link that leads
    nowhere, and whatever else mkdocs warns of."""
    uv = str(Path(sys.executable).with_name("uv"))
    tool = [uv, "tool", "run", "--from", TOOLS[0], "--with", TOOLS[1], "mkdocs"]
    subprocess.run([*tool, "--version"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    words = ["build", "--strict", "--quiet", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(folder)]
    offline = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "UV_OFFLINE": "1"}
    subprocess.run([*alone(), *tool, *words], cwd=ROOT, check=True, env=offline)


def alone() -> list[str]:
    """The words that run a command without a network, where this system lets its users do so."""
    words = ["unshare", "--user", "--map-root-user", "--net"]
    try:
        done = subprocess.run([*words, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return [] if done.returncode else words


def fetched(folder: Path) -> list[str]:
    """Every part of a page that a browser would fetch from elsewhere, with its page."""
    pages = sorted(folder.rglob("*.html"))
    return [
        f"{page.relative_to(folder)}: {part}" for page in pages for part in OUTSIDE.findall(page.read_text("utf-8"))
    ]


def main() -> int:
    """Lay out, build and check. Returns the exit status."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else BUILT
    lay_out(LAID)
    build(folder)
    for part in (found := fetched(folder)):
        print(f"a page of the site would fetch a part of it: {part}", file=sys.stderr)
    print(f"{len(list(folder.rglob('*.html')))} pages in {folder}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
