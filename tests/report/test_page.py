"""The HTML page without a browser: self-contained, escaped, the same every time, and data that adds up."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from typing import Any

import pytest

from reconcile.core.escaping import escape_line
from reconcile.engine.answer import Answer
from reconcile.engine.verdict import verdict
from reconcile.report.page import SCRIPTS, to_html
from reconcile.report.page.data import MAX_EXACT_INTEGER, describe_tensors, json_integer, page_data
from tests.browser.results import COMMAND, REPORTS, gru_demo, large
from tests.report import samples
from tests.report.tables import amount
from tests.zoo.choice import REPORTED

each = pytest.mark.parametrize("sample", samples.SAMPLES)


class Document(HTMLParser):
    """Elements with their attributes and the text directly in them, in document order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.open: list[list[str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        texts: list[str] = []
        self.elements.append((tag, dict(attrs), texts))
        if tag not in ("meta", "link", "input"):
            self.open.append(texts)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1].append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attrs, "".join(texts)) for name, attrs, texts in self.elements if name == tag]


def books(html: str) -> dict[str, Any]:
    (found,) = [text for attrs, text in Document(html).all("script") if attrs.get("id") == "books"]
    data: dict[str, Any] = json.loads(found)
    return data


@each
def test_nothing_in_it_points_anywhere(sample: Callable[[], Answer]) -> None:
    html = to_html(sample(), command="reconcile run --model toy")
    for _, attrs, _ in Document(html).elements:
        assert not {"src", "srcset", "action", "data", "background", "style"} & set(attrs)
        assert [name for name in attrs if name.startswith("on")] == []
        assert (attrs.get("href") or "#").startswith(("#", "data:,"))
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html.replace("// ", ""))


def test_the_policy_allows_this_script_and_this_style_alone() -> None:
    page = Document(to_html(samples.clean()))
    (policy,) = [a["content"] or "" for a, _ in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (text,) = [text for attrs, text in page.all(tag) if attrs.get("type") != "application/json"]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"


def test_every_script_of_the_folder_is_in_it() -> None:
    folder = resources.files("reconcile.report.page")
    assert sorted(f.name for f in folder.iterdir() if f.name.endswith(".js")) == sorted(f"{n}.js" for n in SCRIPTS)


NAMES = (
    samples.NASTY,
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "a\ud800b",
    "\u2028",
    "&lt;",
    "'\"",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_text(name: str) -> None:
    result = replace(
        samples.renamed(samples.unexplained(), "loop", name), model=name, notes=(name,), description=name, params={name: name}
    )  # fmt: skip
    html = to_html(result, command=name)
    html.encode("utf-8")
    page = Document(html)
    assert [attrs.get("type") for attrs, _ in page.all("script")] == ["application/json", None]
    plain = Document(to_html(samples.unexplained(), command="x"))
    assert {tag for tag, _, _ in page.elements} == {tag for tag, _, _ in plain.elements}
    assert page.all("bdi")[0][1] == escape_line(name)
    data = books(html)
    assert escape_line(name) in [data["strings"][place] for place in data["layers"]]


def test_it_is_the_same_every_time() -> None:
    result = samples.full()
    turned = replace(result, environment=dict(reversed(list(result.environment.items()))))
    assert to_html(result) == to_html(turned)
    assert to_html(gru_demo(), None, COMMAND) == to_html(gru_demo(), None, COMMAND)


def test_the_committed_page_follows_from_the_committed_records() -> None:
    page, made = (REPORTS / "gru_demo.html").read_text(), to_html(gru_demo(), None, COMMAND)
    # Elsewhere `make demo` has written the page with the versions that this Python has.
    held = page if REPORTED else made
    assert held == made, f"reports/gru_demo.html is stale: run `{COMMAND}`"


def test_evidence_is_held_once() -> None:
    """With every convention in the file, the same evidence stands behind several lines."""
    one, all_ = (page_data(views, None) for views in ((gru_demo(),), (gru_demo(), *gru_demo().others)))
    used = [id for v in all_["views"] for b in v["bridges"] for ids in b["evidence"] for id in ids]
    assert len(used) > 2 * len(all_["evidence"]) > 0
    assert len(json.dumps(all_)) < 2 * len(json.dumps(one))


def integers(values: list[Any]) -> list[int]:
    return [int(value) for value in values]


def add_up(result: Answer, view: dict[str, Any], data: dict[str, Any]) -> int:
    """Each bridge leads from the counter's entries to the work that ran, layer by layer; how many do."""
    done = 0
    for ledger, counter, bridge in zip(result.ledgers, data["counters"], view["bridges"], strict=True):
        if bridge is None:
            continue
        assert int(bridge["from"]) == int(counter["total"]) == ledger.normalised_total
        lines = [*zip(bridge["layer"], integers(bridge["amount"]), strict=True)]
        lines += [(layer, int(flops)) for layer, flops, _ in bridge["residuals"]]
        assert int(bridge["from"]) + sum(flops for _, flops in lines) == int(bridge["to"])
        place = [trace["framework"] for trace in data["traces"]].index(counter["framework"])
        by_layer = dict.fromkeys(range(len(data["layers"])), 0)
        scale = 2 if counter["unit"] == "MAC" else 1
        for layer, value in zip(counter["entries"]["layer"], integers(counter["entries"]["value"]), strict=True):
            by_layer[layer] += scale * value
        for layer, flops in lines:
            by_layer[layer] += flops
        assert list(by_layer.values()) == integers(view["work"][place])
        start, end = data["traces"][place]["ops"]
        work = sum(
            w * int(n) for op in data["ops"]["work"][start:end] for w, n in zip(view["weights"], op, strict=True)
        )
        assert work == int(bridge["to"])
        done += 1
    return done


@pytest.mark.parametrize("make", [samples.clean, samples.unexplained, samples.full, gru_demo, lambda: large(400)])
def test_the_data_foots(make: Callable[[], Answer]) -> None:
    result = make()
    data = books(to_html(result))
    assert [v["convention"] for v in data["views"]] == [v.convention.name for v in (result, *result.others)]
    for view in data["views"]:
        assert add_up(result, view, data) == sum(x.total is not None for x in result.ledgers)


@each
def test_the_counters_table_foots(sample: Callable[[], Answer]) -> None:
    for body in re.findall(r"<tbody>(.*?)</tbody>", to_html(sample()), re.S):
        for row in re.findall(r"<tr>(.*?)</tr>", body, re.S):
            cells = dict(re.findall(r'data-label="([^"]*)">(?:<span>)?([^<]*)', row))
            if cells.get("to the work"):
                unit = {"MAC": 2, "FLOP": 1}[re.findall(r"<small>(\w+)", row)[0]]
                assert amount(cells["as reported"].strip()) * unit == amount(cells["normalised FLOP"])
                total = amount(cells["normalised FLOP"]) + amount(cells["to the work"])
                assert total in [t.totals[sample().convention.name] for t in sample().traces if t.complete]


@each
def test_what_the_others_say_is_said_here(sample: Callable[[], Answer]) -> None:
    from reconcile.report import view

    result = sample()
    html = re.sub(r"\s+", " ", to_html(result))
    text = " ".join("".join(texts) for _, _, texts in Document(html).elements)
    assert view.summary(result) in text
    said = verdict(result)
    for sentence in (
        *(f.sentence for f in said.figures),
        *said.cautions,
        said.difference,
        *(w.sentence for w in said.withheld),
    ):
        assert sentence in text
    shown = view.describe_answer(result)
    assert [found for found in (*shown.unknown, *shown.missing, *shown.broken) if found not in text] == []
    assert len(shown.broken) == sum(len(ledger.mismatches) for ledger in result.ledgers)
    for ledger in result.ledgers:
        rules = f"its rules are in reconcile.adapters.counters.{ledger.counter}.rules"
        assert sum(rules in found for found in shown.broken) == len(ledger.mismatches), ledger.counter


def test_it_opens_with_the_statement_that_was_asked_for() -> None:
    result = samples.clean()
    assert books(to_html(result))["ends"] == [samples.FROZEN, "thop"]
    assert books(to_html(result, result.statement("fvcore", samples.TORCH)))["ends"] == ["fvcore", samples.TORCH]
    assert books(to_html(samples.empty()))["ends"] is None


@pytest.mark.parametrize("value", [0, 1, -1, MAX_EXACT_INTEGER, -MAX_EXACT_INTEGER, MAX_EXACT_INTEGER + 1, -(2**70)])
def test_integers_are_exact(value: int) -> None:
    read = json.loads(json.dumps(json_integer(value)))
    assert int(read) == value
    assert isinstance(read, int) == (float(value) == value and abs(value) <= MAX_EXACT_INTEGER)


def test_shapes_as_text() -> None:
    from reconcile.core.records import Tensor

    found = [Tensor((1, 96), "float32"), Tensor((None, 3), "float32"), Tensor(None, "int64"), Tensor((), "int64")]
    assert describe_tensors(found) == "float32 (1, 96) (?, 3) int64 ? ()"
