"""How every template of the reports is read: a name that is missing is an error, and a tag's line leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2


def environment(
    finalize: Callable[[Any], Any], *, autoescape: bool, package: str = "reconcile.report", folder: str = "templates"
) -> jinja2.Environment:
    """Templates of a folder in the package; ``finalize`` sees every value before it is put in."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
        autoescape=autoescape,
    )
