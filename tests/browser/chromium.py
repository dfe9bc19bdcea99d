"""Debian's Chromium behind its driver, quiet and alone: a new profile, no traffic of its own, every event written down."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
MISSING = "no {} on PATH: run `.ci/chromium`, which installs Debian's chromium and chromium-driver"


def found(program: str) -> str:
    """Its path. Raises FileNotFoundError with what to do."""
    path = shutil.which(program)
    if path is None:
        raise FileNotFoundError(MISSING.format(program))
    return path


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """A browser with ``profile``, an empty folder, as its own."""
    options = ChromeOptions()
    options.binary_location = found("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    os.environ["no_proxy"] = "localhost,127.0.0.1"  # the driver is spoken to on this machine
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=ChromeService(found("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def requests(driver: Chrome) -> list[str]:
    """Addresses asked for since this was last asked, by the network's own events; not what the page's policy held back
    (the console complains of that)."""
    messages: list[dict[str, Any]] = [json.loads(e["message"])["message"] for e in driver.get_log("performance")]
    sent = {m["params"]["requestId"]: m for m in messages if m["method"] == "Network.requestWillBeSent"}
    for m in messages:
        if m["method"] == "Network.loadingFailed" and m["params"].get("blockedReason") == "csp":
            sent.pop(m["params"]["requestId"], None)
    return [m["params"]["request"]["url"] for m in sent.values()]


def complaints(driver: Chrome) -> list[str]:
    """What the console has said since this was last asked."""
    return [f"{e['level']}: {e['message']}" for e in driver.get_log("browser")]
