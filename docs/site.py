"""Makes the site of the documentation and the reports: python docs/site.py [FOLDER].

Everything that the pages link to is laid out in ``build/site`` as it lies in the repository, and mkdocs builds it to FOLDER
(``build/html``): searchable, and nothing is asked of a network when you read it. A link to a file of the sources is its text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAID, BUILT = ROOT / "build" / "site", ROOT / "build" / "html"
TOOLS = ("mkdocs==1.6.1", "mkdocs-material==9.8.1")
TOP = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
FOLDERS = ("docs", "reports")
SHOWN = (".md", ".svg", ".png", ".html", ".css", ".csv", ".js", ".json", ".ipynb", ".toml")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
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
    there = files()
    for path in there:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            (folder / path).write_text(linked(path, set(there)), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / path, folder / path)


def linked(path: Path, there: set[Path]) -> str:
    """The text of a page with the text in place of each link that leads nowhere in the site."""

    def kept(found: re.Match[str]) -> str:
        image, text, where = found.groups()
        target = where.partition("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        reached = Path(os.path.normpath(path.parent / target))
        if reached in there:
            return found[0]
        readme = reached / "README.md"
        if readme in there:
            return f"{image}[{text}]({os.path.relpath(readme, path.parent)})"
        return str(text)

    return outside_code((ROOT / path).read_text(encoding="utf-8"), lambda part: LINK.sub(kept, part))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with what is neither a fenced block nor a span of code changed."""
    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


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
