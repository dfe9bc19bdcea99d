"""``--format tex``: a LaTeX table of the work that ran with a row per layer, for a thesis or a paper."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.escaping import escape_latex, escape_line
from ..core.number_format import number, percent
from ..core.results import TraceResult
from ..engine.answer import Answer
from ..engine.breakdown import work_by_layer

HEAD = "layer & parameters & MACs & GFLOPs & share"
UNKNOWN = "--"


def to_latex(result: Answer) -> str:
    """A table per framework: parameters, multiply-adds, FLOPs by the run's convention and their share. What is not known is a
    dash: the work of an op without a formula, the parameters of a function, of a graph in a file."""
    return "\n".join(line for trace in result.traces if trace.rows for line in _table(result, trace))


def _table(result: Answer, trace: TraceResult) -> Iterator[str]:
    works = work_by_layer(trace)
    flops = {row.layer: row.work.get(trace.framework) for row in result.layers}
    total = trace.totals.get(result.convention.name)
    yield f"% {escape_line(result.model)}: {trace.name}, {result.pass_}, convention {result.convention.name}"
    yield from (r"\begin{tabular}{lrrrr}", r"\hline", rf"{HEAD} \\", r"\hline")
    for layer in dict.fromkeys([*flops, *trace.parameters]):
        work, known = works.get(layer), flops.get(layer, 0)
        if layer in trace.parameters or known != 0:
            macs = UNKNOWN if known is None else number(work.mac if work else 0)
            yield _line(
                layer or "(model)", trace.parameters.get(layer, 0) if trace.parameters else None, macs, known, total
            )
    macs = UNKNOWN if total is None else number(sum(work.mac for work in works.values()))
    yield r"\hline"
    yield _line("total", sum(trace.parameters.values()) if trace.parameters else None, macs, total, total)
    yield from (r"\hline", r"\end{tabular}", "")


def _line(name: str, parameters: int | None, macs: str, flops: int | None, total: int | None) -> str:
    share = UNKNOWN if flops is None or not total else percent(flops, total)
    cells = (
        escape_latex(name),
        UNKNOWN if parameters is None else number(parameters),
        macs,
        UNKNOWN if flops is None else f"{flops / 1e9:.4g}",
        escape_latex(share),
    )
    return rf"{' & '.join(cells)} \\"
