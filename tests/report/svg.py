"""Reading a picture's file: where its bars are, and what it says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def boxes(svg: str, prefix: str) -> dict[str, tuple[float, float]]:
    """Left and right of every bar whose id begins so, as they stand in the file."""
    found = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        name = group.get("id", "")
        if name.startswith(prefix):
            (path,) = group.iter(f"{SVG}path")
            xs = [float(x) for x in re.findall(r"[ML] (-?[\d.]+)", path.get("d", ""))]
            found[name] = (min(xs), max(xs))
    return found


def said(svg: str) -> list[str]:
    """The texts of a picture in their order; letters are outlines, and each text stands as a comment beside them."""
    return re.findall(r"<!-- (.*?) -->", svg)


def lengths(svg: str) -> list[float]:
    """Lengths of all bars as parts of the longest: what a picture shows, whatever the font's metrics."""
    sizes = [
        right - left for prefix in ("bar-", "value-", "work-", "cell-") for left, right in boxes(svg, prefix).values()
    ]
    return [round(size / max(sizes), 2) for size in sizes]
