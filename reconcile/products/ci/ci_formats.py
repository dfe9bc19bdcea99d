"""The result of ``reconcile check`` for services that keep numbers, or results of tests, over time.

There is one number, or one test, for the work that runs, in FLOPs under the convention, and for each counter. A total that
is unknown is left out. Sources: bencher.dev, reference, Bencher Metric Format; the README of github-action-benchmark,
customSmallerIsBetter; JUnit's testsuite as Jenkins and GitLab read it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from xml.etree import ElementTree

from ...core.conventions import Convention, Conventions
from ...core.escaping import escape_line, escape_lines
from ...core.records import Ledger, Trace
from ...drift.changes import Drift
from ...drift.check import Checked
from ...drift.report import details, verdict
from ...engine.booking import flops_per_unit
from ...engine.traces import trace_name, trace_result
from ...work import load

Format = Callable[[str, Checked | None, Convention, Sequence[str], str], tuple[str, Sequence[str]]]
"""What Product.check_formats names."""


def _of_outcome(write: Callable[[Checked, Convention], str]) -> Format:
    """A format of the outcome alone: it prints nothing where there is no baseline, and no line for a log."""

    def format_check(
        _model: str, done: Checked | None, convention: Convention, _remarks: Sequence[str], _remedy: str
    ) -> tuple[str, Sequence[str]]:
        return ("" if done is None else write(done, convention)), ()

    return functools.wraps(write)(format_check)


@_of_outcome
def format_bencher(done: Checked, convention: Convention) -> str:
    """Bencher Metric Format: a benchmark for the model, a measure for each total."""
    totals = _totals(done, convention).items()
    measures = {re.sub(r"[^a-z0-9]+", "-", name.lower()): {"value": total} for name, total in totals}
    return json.dumps({done.collected.meta["name"]: measures}, indent=2)


@_of_outcome
def format_github_action_benchmark(done: Checked, convention: Convention) -> str:
    """The totals as JSON for github-action-benchmark, ``tool: customSmallerIsBetter``."""
    model, totals = done.collected.meta["name"], _totals(done, convention).items()
    return json.dumps(
        [{"name": f"{model}: {name}", "unit": "FLOP", "value": total} for name, total in totals], indent=2
    )


def format_junit(
    model: str, done: Checked | None, convention: Convention, _remarks: Sequence[str], remedy: str
) -> tuple[str, Sequence[str]]:
    """A test for each total; one that moved fails with what moved, and one that could not run is an error, as is a baseline
    that is not there."""
    moved: dict[str, Drift] = {}
    failed = {"baseline": f"there is no baseline yet: take one with {remedy}"} if done is None else {}
    if done is not None and done.drift is not None and not done.written:
        nothing = replace(done.drift, counters=(), traces=(), failed=(), notes=())
        moved |= {t.name: replace(nothing, traces=(t,)) for t in done.drift.traces if t.has_moved}
        moved |= {c.counter: replace(nothing, counters=(c,)) for c in done.drift.counters if c.has_moved}
    if done is not None:
        missing = (*done.failed, *(done.drift.failed if done.drift else ()))
        failed |= {each.name: each.reason for each in missing}
    totals = _totals(done, convention) if done is not None else {}
    suite = ElementTree.Element("testsuite", name="reconcile check")
    for name in dict.fromkeys((*totals, *moved, *failed)):
        case = ElementTree.SubElement(suite, "testcase", classname=escape_line(model), name=escape_line(name))
        if name in moved:
            failure = ElementTree.SubElement(case, "failure", message=verdict(moved[name], "the baseline"))
            failure.text = escape_lines("\n".join(details(moved[name])))
        elif name in failed:
            ElementTree.SubElement(case, "error", message=escape_line(failed[name]))
    counts = {"tests": len(suite), "failures": len(suite.findall("*/failure")), "errors": len(suite.findall("*/error"))}
    for key, count in counts.items():
        suite.set(key, str(count))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode"), ()


def _totals(done: Checked, convention: Convention) -> dict[str, int]:
    """FLOPs of the work that ran and of each counter, by name, where they are known."""
    load()
    found, asked = done.collected, Conventions(convention, {convention.name: convention})
    traces = {t.framework: trace_result(t, found.declared_layers, asked) for t in found.traces if isinstance(t, Trace)}
    totals = {trace_name(name): t.totals[convention.name] for name, t in traces.items() if t.complete}
    return totals | {x.counter: x.total * flops_per_unit(x.unit) for x in found.ledgers if isinstance(x, Ledger)}
