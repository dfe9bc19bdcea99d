"""``--format card`` (metadata for a model card), ``disclosure`` (a statement of training compute) and ``tex`` (a table for a
paper).

A card quotes the numbers of the verdict; a disclosure has a step's operations by phase and component. Where the verdict
withholds a number, both give its reason in place of amounts. docs/cards.md says where each goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from ...core.conventions import BUILT_IN
from ...core.errors import UsageError
from ...core.escaping import escape_latex, escape_line
from ...core.number_format import number, percent
from ...core.records import TRAINING
from ...core.results import TraceResult
from ...engine import citation
from ...engine.answer import Answer
from ...engine.breakdown import works_by
from ...engine.verdict import Verdict
from ...launch.request import RunRequest
from ...report.json_text import fields_of
from ...work import ZERO

SCHEMA = 1
OUTSIDE = (
    "every other step: multiply by the number of steps that were run, those of discarded and repeated runs included",
    "generating and filtering data, and every model that was trained or called for that",
    "evaluation, checkpoints and experiments that led to the model",
    "communication, data loading and all else that is no arithmetic of the model, its loss, its gradients or its optimizer",
    "how busy the hardware was: these operations are counted, not estimated from time and peak performance",
)
"""What a count of one training step does not include."""
WITHHELD = "framework reason remedy"
"""The fields of a reason in a report."""
HEAD = ("layer", "parameters", "MACs", "GFLOPs", "share")
UNKNOWN = "--"
"""What the table has in place of a number that is not known."""


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a ``card`` or a ``disclosure``."""
    text = resources.files(__package__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def card(result: Answer, command: str = "") -> dict[str, Any]:
    """The entry of a model card, as JSON data."""
    said = result.verdict
    return {
        "schema": SCHEMA,
        "model": citation.subject(result, [trace.framework for trace in result.traces]),
        "pass": result.pass_,
        "convention": result.convention.name,
        "counts": citation.convention_text(result.convention),
        "numbers": [
            {
                **fields_of(figure, "frameworks flops macs"),
                "input": figure.inputs,
                "batch": figure.batch,
                "counters": list(figure.counters),
                "notes": [*figure.notes, *([figure.caution] if figure.caution else [])],
            }
            for figure in said.figures
        ],
        "withheld": [fields_of(one, WITHHELD) for one in said.withheld],
        "versions": dict(result.environment),
        "command": command,
    }


def to_card(result: Answer, command: str = "") -> str:
    """The card's entry as YAML: the key ``flops``, to paste between the lines ``---`` of a model card."""
    return "\n".join(["flops:", *_lay_yaml(_escape_texts(card(result, command)), "  ")]) + "\n"


def _lay_yaml(data: Mapping[str, Any], indent: str) -> Iterator[str]:
    """A line for each key, and a list of tables item by item; values are JSON, which is YAML as well."""
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{indent}{key}:"
            for item in value:
                first, *others = _lay_yaml(item, f"{indent}    ")
                yield from (f"{indent}  - {first.lstrip()}", *others)
        else:
            yield f"{indent}{key}: {json.dumps(value, sort_keys=True)}"


def disclosure(result: Answer, command: str = "") -> dict[str, Any]:
    """The training operations of a step, as JSON data. Raises UsageError for a run that is no training step."""
    check(result.pass_)
    said = result.verdict
    steps = max((trace.steps for trace in result.traces), default=1)
    what, ran = (
        (f"{steps} training steps together", "these steps run") if steps > 1 else ("one training step", "one step runs")
    )
    return {
        "schema": SCHEMA,
        "model": citation.subject(result, [trace.framework for trace in result.traces]),
        "unit": f"floating-point operations of {what}",
        "formula": f"the sum, over all operations that {ran}, of what each does by the convention",
        "convention": result.convention.name,
        "counts": citation.convention_text(result.convention),
        "steps": [_step(result, trace, said) for trace in result.traces],
        "outside": list(OUTSIDE),
        "versions": dict(result.environment),
        "command": command,
    }


def to_disclosure(result: Answer, command: str = "") -> str:
    """The disclosure as JSON. Raises UsageError as ``disclosure`` does."""
    return json.dumps(_escape_texts(disclosure(result, command)), indent=2, ensure_ascii=False) + "\n"


def check_request(request: RunRequest) -> None:
    """Raise UsageError for a request whose run would have no disclosure."""
    check(TRAINING if request.training else "")


def check(pass_: str) -> None:
    """Raise UsageError for a pass that has no disclosure."""
    if pass_ != TRAINING:
        raise UsageError("--format disclosure states the operations of a training step: add --pass training.")


def _step(result: Answer, trace: TraceResult, said: Verdict) -> dict[str, Any]:
    """One framework's step. Where the verdict withholds its number, no amount is left."""
    why = next((one for one in said.withheld if one.framework in ("", trace.framework)), None)
    known = why is None
    sums = works_by("phase", trace) if known else {}
    total = sum(sums.values(), ZERO)
    return {
        "framework": trace.framework,
        "input": result.inputs.get(trace.framework, ""),
        "operations": result.convention.flops(total) if known else None,
        "by_phase": {phase: result.convention.flops(work) for phase, work in sums.items()},
        "terms": {
            name: {"count": count, "weight": result.convention.weight(name)}
            for name, count in total.items()
            if count and result.convention.weight(name)
        },
        "range": _range(trace) if known else None,
        "notes": list(trace.notes),
        "withheld": None if why is None else fields_of(why, WITHHELD),
    }


def _range(trace: TraceResult) -> dict[str, Any]:
    """The least and the most operations among the conventions under which the trace is complete; each is stated."""
    readings = {name: flops for name, flops in trace.totals.items() if name in BUILT_IN}
    return {"low": min(readings.values()), "high": max(readings.values()), "conventions": readings}


def _escape_texts(value: Any) -> Any:
    """The data with users' texts escaped, so that they show as written."""
    if isinstance(value, Mapping):
        return {escape_line(str(key)): _escape_texts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_escape_texts(item) for item in value]
    return escape_line(value) if isinstance(value, str) else value


def to_latex(result: Answer, _command: str = "") -> str:
    """A table per framework: parameters, multiply-adds, FLOPs by the run's convention and their share. The work of an op
    without a formula is a dash; parameters that are not known, as of a function or of a graph in a file, have no column."""
    return "\n".join(line for trace in result.traces if trace.rows for line in _latex_table(result, trace))


def _latex_table(result: Answer, trace: TraceResult) -> Iterator[str]:
    works = works_by("layer", trace)
    flops = {row.layer: row.work.get(trace.framework) for row in result.layers}
    total = trace.totals.get(result.convention.name)
    yield f"% {escape_line(result.model)}: {trace.name}, {result.pass_}, convention {result.convention.name}"
    head = [title for title in HEAD if title != "parameters" or trace.parameters]
    yield from (rf"\begin{{tabular}}{{l{'r' * len(head[1:])}}}", r"\hline", rf"{' & '.join(head)} \\", r"\hline")
    for layer in dict.fromkeys([*flops, *trace.parameters]):
        work, known = works.get(layer), flops.get(layer, 0)
        if layer in trace.parameters or known != 0:
            macs = UNKNOWN if known is None else number(work.mac if work else 0)
            yield _latex_row(
                layer or "(model)", trace.parameters.get(layer, 0) if trace.parameters else None, macs, known, total
            )
    macs = UNKNOWN if total is None else number(sum(work.mac for work in works.values()))
    yield r"\hline"
    yield _latex_row("total", sum(trace.parameters.values()) if trace.parameters else None, macs, total, total)
    yield from (r"\hline", r"\end{tabular}", "")


def _latex_row(name: str, parameters: int | None, macs: str, flops: int | None, total: int | None) -> str:
    share = UNKNOWN if flops is None or not total else percent(flops, total)
    cells = (
        escape_latex(name),
        *([] if parameters is None else [number(parameters)]),
        macs,
        UNKNOWN if flops is None else f"{flops / 1e9:.4g}",
        escape_latex(share),
    )
    return rf"{' & '.join(cells)} \\"
