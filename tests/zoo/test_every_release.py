"""The committed page of releases is made of its rows."""

from __future__ import annotations

from tests.zoo import every_release as made
from tests.zoo.csv_rows import read
from tests.zoo.every_release import Moved, Release
from tests.zoo.releases_page import page

RELEASES: list[Release] = read(made.RELEASES, Release)
CHANGES: list[Moved] = read(made.CHANGES, Moved)


def test_the_page_is_made_of_the_rows() -> None:
    assert made.PAGE.read_text() == page(RELEASES, CHANGES), "stale: run `make releases` and commit what changed"
