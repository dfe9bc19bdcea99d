"""The form of a cell: every run's cell has it, and pages can be made of every cell that has it, whatever its values."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.engine.answer import Answer
from reconcile.products.sweep import form
from reconcile.products.sweep.engine import Finished
from reconcile.products.sweep.outcome import outcome_of, refused_outcome
from reconcile.products.sweep.page import costs, describe_sweep, to_csv, verdict
from reconcile.report import reports
from reconcile.report.document.markdown import to_markdown
from tests.products.sweep.fakes import BETWEEN, LOST, counter, outcome
from tests.report import samples

JUNK: list[Any] = [
    None, True, -1, 0, 2, 1.0, 10**300, 10**301, -(10**300), float("inf"), "", "tf", "equal", "\x1b[2J", "\ud800", [], [[]], {},
    {"": ""}, {"tf": "no"},
]  # fmt: skip


def kept(found: dict[str, Any]) -> dict[str, Any]:
    return {"key": "k", "outcome": found, "cost": {"wall_s": 1.5, "peak_bytes": 1 << 30}, "reports": ["md"]}


@pytest.mark.parametrize(
    "made", [samples.full, samples.clean, samples.unexplained, samples.everything, samples.incomplete]
)
def test_what_a_run_gives_is_of_this_form(made: Callable[[], Answer]) -> None:
    found = kept(json.loads(json.dumps(outcome_of("x", made(), {"tf": "no"}))))
    form.check_kept(found, "x")
    form.check_answer({**{k: found[k] for k in ("outcome", "cost")}, "texts": {"md": ""}, "interrupted": ""}, "x")
    with pytest.raises(form.Malformed, match="is that of another model"):
        form.check_kept(found, "y")


def test_the_table_beside_many_layers_is_a_report() -> None:
    texts = reports.render(samples.grown(11), reports.FORMATS)
    assert sorted(texts) == sorted(form.REPORTS)
    found = kept(outcome_of("x", samples.clean(), {}))
    form.check_kept({**found, "reports": sorted(texts)}, "x")
    form.check_answer({**{k: found[k] for k in ("outcome", "cost")}, "texts": texts, "interrupted": ""}, "x")


def test_what_could_not_be_run_is_of_this_form() -> None:
    form.check_kept(kept({**refused_outcome("x", {"tf": "no", "torch": "no"}), "exit_code": 2}), "x")
    form.check_kept(kept(outcome_of("x", None, {"": "no"})), "x")


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, value in items:
        yield from places(value, (*at, name))


def put(data: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    made = copy.deepcopy(data)
    inner = made
    for place in at[:-1]:
        inner = inner[place]
    inner[at[-1]] = value
    return made


def refusal(data: Any) -> str:
    try:
        form.check_kept(data, "a")
    except form.Malformed as error:
        return str(error)
    return ""


def test_junk_anywhere_is_refused_or_becomes_a_page() -> None:
    """Every value of a cell replaced by every piece of junk: none ends in anything but a page or a refusal."""
    whole = kept(outcome("a", counter("fvcore", 4), counter("thop", 5) | LOST, between=[BETWEEN], refused={"tf": "no"}))
    form.check_kept(whole, "a")
    taken = 0
    for at in places(whole):
        for junk in JUNK:
            data = put(whole, at, junk)
            if why := refusal(data):
                assert why.isprintable()
                continue
            taken += 1
            one = Finished(data["outcome"], data["cost"])
            assert "\x1b" not in to_markdown(describe_sweep([one], ""))
            assert verdict(one)
            assert to_csv([one]).count("\n") == 1 + sum(len(one.outcome[x]) for x in ("traces", "counters", "refused"))
            assert costs([one])
    assert taken


WHOLE = kept(outcome("a", counter("fvcore", 4), counter("thop", 10)))
VALUES = st.sampled_from([*JUNK, 10**4000, "0"]) | st.integers() | st.text(max_size=5)
DEPTHS = st.sampled_from([0, 0, 0, 1, 70, 900, 9000])  # Hypothesis itself raises the limit of the recursion
TOP = [at for at in places(WHOLE) if 0 < len(at) <= 2]
PLACES = (
    st.just(("outcome", "exit_code"))
    | st.sampled_from(TOP)
    | st.sampled_from([at for at in places(WHOLE) if len(at) > 2])
)
CHANGES = st.lists(st.tuples(PLACES, st.booleans(), VALUES, DEPTHS), min_size=1, max_size=2)
CUTS = st.just(-1) | st.just(-1) | st.integers(0, len(json.dumps(WHOLE)))


def damaged(changes: list[tuple[tuple[Any, ...], bool, Any, int]], cut: int, byte: str) -> str:
    """The text of a cell: values replaced (by deeply nested ones, too) or left out, a letter changed, the end missing."""
    data = copy.deepcopy(WHOLE)
    for at, left_out, value, depth in changes:
        inner = data
        try:
            for place in at[:-1]:
                inner = inner[place]
            if left_out:
                del inner[at[-1]]
            else:
                for _ in range(depth):
                    value = [value]
                inner[at[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
    text = _loosely(data)
    return text if cut < 0 else text[:cut] + byte + text[cut + 1 :] if byte else text[:cut]


def _loosely(data: Any) -> str:
    """As json.dumps, at any depth and for numbers of any length."""
    if isinstance(data, int) and not isinstance(data, bool) and abs(data) > 10**1000:
        return "9" * 5000
    if isinstance(data, list) and len(data) == 1:
        depth = 0
        while isinstance(data, list) and len(data) == 1:
            data, depth = data[0], depth + 1
        return "[" * depth + _loosely(data) + "]" * depth
    if isinstance(data, list):
        return f"[{', '.join(map(_loosely, data))}]"
    if isinstance(data, dict):
        return f"{{{', '.join(f'{json.dumps(k)}: {_loosely(v)}' for k, v in data.items())}}}"
    return json.dumps(data)


def sentence_and_data(text: str) -> tuple[str, Any]:
    """Why a sweep runs the cell again, '' if it need not, and what it reads of it."""
    try:
        data = form.parse_json(text)
    except form.Malformed as error:
        return str(error), None
    return refusal(data), data


@settings(max_examples=60, deadline=None)
@given(CHANGES, CUTS, st.sampled_from(["", "[", "{", "9", "-", '"', "\\", "e", ",", "\0"]))
def test_a_damaged_text_is_refused_or_becomes_a_page(
    changes: list[tuple[tuple[Any, ...], bool, Any, int]], cut: int, byte: str
) -> None:
    why, data = sentence_and_data(damaged(changes, cut, byte))
    if why:
        assert why.isprintable()
        return
    finished = Finished(data["outcome"], data["cost"], kept=True)
    assert finished.exit_code in (0, 1, 2, 3, 4)
    pages = (to_markdown(describe_sweep([finished], "")), to_csv([finished]), costs([finished]), verdict(finished))
    assert [page for page in pages if not page] == []


def test_a_number_that_does_not_foot_is_refused() -> None:
    """4 reported of 10, 6 of a cause: one more or less of any of these, and the books do not add up."""
    whole = kept(outcome("a", counter("fvcore", 4)))
    form.check_kept(whole, "a")
    for name in ("reported", "normalised", "work", "residual"):
        value = whole["outcome"]["counters"][0][name]
        with pytest.raises(form.Malformed, match="does not add up for fvcore"):
            form.check_kept(put(whole, ("outcome", "counters", 0, name), value + 1), "a")
    with pytest.raises(form.Malformed, match="does not add up for fvcore"):
        form.check_kept(put(whole, ("outcome", "counters", 0, "causes", "op-not-counted"), 7), "a")


READING = {"value": 5, "rank": 1, "unit": "MAC", "what": "w", "how": "", "note": "", "family": ""}


def test_readings_of_an_audit_are_of_this_form() -> None:
    form.check_kept(kept({**outcome("x"), "readings": [READING]}), "x")
    for name, value in (("value", -1), ("value", 2.0), ("rank", None), ("unit", "GB"), ("what", 1)):
        with pytest.raises(form.Malformed, match=rf"is damaged at outcome\.readings\.0\.{name}"):
            form.check_kept(kept({**outcome("x"), "readings": [{**READING, name: value}]}), "x")
    with pytest.raises(form.Malformed, match="is damaged"):
        form.check_kept(kept({**outcome("x"), "readings": [{**READING, "more": 1}]}), "x")
