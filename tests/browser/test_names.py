"""Untrusted names are shown as written and have no other effect, wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconcile.core.escaping import escape_line
from reconcile.engine.answer import Answer
from tests.browser.page import ESCAPE, NARROW, Page
from tests.report import samples

Show = Callable[..., Page]
NAMES = {
    "script": "<script>alert(1)</script>",
    "end of script": "</script><script>alert(1)</script><!--",
    "image": "<img src=x onerror=alert(1)>",
    "quotes": "\"' onmouseover=alert(1) x='",
    "javascript": "javascript:alert(1)",
    "template": "{{ 7 * 7 }} ${alert(1)} `x` &lt;b&gt; &#x3c;",
    "long": "x" * 300,
    "long words": "a.very.deep.path." * 20,
    "right to left": "שכבה ראשונה",
    "override": "\u202egnp.exe",
    "emoji": "🧪👩\u200d🔬🇺🇳",
    "controls": "a\x1b[31m\x00\n\tb\u2028c",
    "lone surrogate": "a\ud800b",
    "nothing": "",
    "proto": "__proto__",
}


def everywhere(name: str) -> Answer:
    """The name as a layer's, an op's, a path's, a reason's, a parameter's, a note's and the model's."""
    result = samples.renamed(samples.unexplained(), "loop", name)
    statements = tuple(
        replace(
            s,
            adjustments=tuple(replace(a, op=name, evidence=tuple(_named(e, name) for e in a.evidence)) for a in s.adjustments),
            residuals=tuple(replace(r, reason=name) for r in s.residuals),
        )
        for s in result.statements
    )  # fmt: skip
    traces = tuple(
        replace(t, rows=tuple(replace(r, path=name, op=name) for r in t.rows), notes=(name,)) for t in result.traces
    )
    return replace(
        result,
        model=name,
        traces=traces,
        statements=statements,
        params={name or "x": name},
        notes=(name,),
        description=name,
        environment={"reconcile": name},
    )


def _named(evidence: samples.Evidence, name: str) -> samples.Evidence:
    seen = tuple(op._replace(op=name, attrs={name: name}) for op in evidence.seen)
    return replace(evidence, rule=name, source=name, formula=name, seen=seen)


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_is_shown_as_written_and_does_nothing_else(show: Show, kind: str) -> None:
    name = NAMES[kind]
    page = show(everywhere(name), command=f"reconcile run --model {name!r}")
    page.pick(from_="thop", to=samples.FROZEN)
    layers = {part["name"] for step in page.waterfall() for part in step["parts"]}
    assert (escape_line(name) or "(no layer)") in layers
    page.filter()
    assert (escape_line(name) or "(no layer)") in {row[0] for row in page.rows("#table")}
    assert page.run("return document.querySelector('h1 bdi').textContent") == escape_line(name)
    for opener in ("#waterfall .line button", "#tree .body > .vrow", "#table .body > .vrow"):
        page.run("document.querySelector(arguments[0]).click()", opener)
        if page.run("return document.getElementById('detail').open"):
            page.press(ESCAPE)
    assert page.run("return document.scripts.length") == 2
    assert (
        page.run("return document.querySelectorAll('img, iframe, object, embed, [onmouseover], [onerror]').length") == 0
    )
    assert page.run("return [...document.links].filter(a => !a.getAttribute('href').startsWith('#')).length") == 0
    page.press(ESCAPE)  # raises where an alert is open


@pytest.mark.parametrize("kind", ["long", "long words", "right to left", "emoji"])
def test_no_name_makes_a_phone_scroll_sideways(show: Show, kind: str) -> None:
    page = show(everywhere(NAMES[kind]))
    page.resize(*NARROW, phone=True)
    page.waterfall()
    assert page.width() <= NARROW[0]
    page.run("document.querySelector('#waterfall .line button').click()")
    assert page.width() <= NARROW[0]
    assert page.run("const d = document.getElementById('detail'); return d.scrollWidth <= d.clientWidth")


def test_two_names_that_look_alike_stay_two(show: Show) -> None:
    written, escape = "a\u202eb", "a\\u202eb"
    assert escape_line(written) == escape_line(escape)
    result = samples.renamed(samples.renamed(samples.clean(), "loop", written), "dense", escape)
    page = show(result)
    assert len(page.rows("#tree")) == 2
