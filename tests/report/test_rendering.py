"""The templates' environment."""

from __future__ import annotations

import jinja2
import pytest

from reconcile.report.rendering import environment


def test_a_name_that_a_template_is_not_given_is_an_error() -> None:
    template = environment(str, autoescape=False).from_string("{{ total }}")
    assert template.render(total=3) == "3"
    with pytest.raises(jinja2.UndefinedError, match="total"):
        template.render(totals=3)
