"""The Jinja environment of all report templates: an undefined name is an error, and a line that is only a tag leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2


def environment(
    finalize: Callable[[Any], Any], *, autoescape: bool, package: str = "reconcile.report", folder: str = "templates"
) -> jinja2.Environment:
    """A Jinja environment for the templates in a folder of the package; ``finalize`` gets every value before it is inserted."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
        autoescape=autoescape,
    )
