"""Functions of the pytest fixture ``flops`` (pytest_plugin.py): count a model object, sum FLOPs by layer, report changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..core.conventions import Convention, Conventions
from ..core.errors import UsageError, check_names, unknown
from ..core.framework import adapter_of
from ..core.option import PYTEST
from ..core.records import Trace
from ..core.registry import frameworks
from ..drift.check import Checked
from ..drift.report import details, verdict
from ..engine.reconcile import Missing
from ..engine.settle import Collected
from ..engine.traces import layer_work, trace_result
from ..launch.in_process import collect_live
from ..launch.keywords import in_keywords, keywords_of
from ..launch.options import keywords_taken_by
from ..launch.ownership import check_owner, list_imported, owner_of
from ..launch.request import RunRequest, run_request
from ..launch.runner import Collect
from ..launch.workers.supervisor import Event
from ..work import load


def pop_options(params: dict[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Take out of a pair's ``params`` and return those that are options of the fixture and no argument of its ``function``."""
    spelled = keywords_of(function)
    return {name: params.pop(name) for name in keywords_taken_by(PYTEST) if name in params and name not in spelled}


def request_for_model(
    model: object, inputs: object, name: str, framework: str, params: Mapping[str, object], asked: Mapping[str, Any]
) -> tuple[RunRequest, Collect]:
    """The request for a model at hand, and what counts it in this process. Raises UsageError."""
    if params:
        raise UsageError(f"{', '.join(params)}: a model at hand has no parameters; give them to its class.")
    framework = _find_framework(model, framework)
    at_hand = None if isinstance(asked["optimizer"], str) else asked["optimizer"]

    def take(request: RunRequest, progress: Callable[[Event], None]) -> Collected:
        return collect_live({framework: model}, inputs, request, progress, at_hand)

    return replace(run_request(**asked), factories={framework: name}), take


def _find_framework(model: object, name: str) -> str:
    """The framework of that ``name``, otherwise the imported one to which a model at hand belongs.

    Raises UsageError for a model of another framework, for one of none, and for one that several could call.
    """
    if name:
        check_names("framework", (name,), frameworks())
        check_owner(frameworks()[name], model)
        return name
    owner = owner_of(model)
    candidates = list_imported() if owner is None else [owner]
    made = [record for record in candidates if adapter_of(record).is_made(model)]
    found = made or [record for record in candidates if adapter_of(record).is_model(model)]
    if not found:
        what = type(model).__name__ + (f" of {owner.title}" if owner is not None else "")
        raise UsageError(
            f"flops was given {what}, which is no model of a framework that is imported here: give a "
            "torch.nn.Module or a Keras model with its inputs, or the name of a pair."
        )
    if len(found) > 1:
        titles = " and ".join(record.title for record in found)
        names = " or ".join(f'framework="{record.name}"' for record in found)
        raise UsageError(f"flops was given {type(model).__name__}, which {titles} could call: add {names}.")
    return found[0].name


def describe_for_test(error: Exception, function: Callable[..., Any]) -> str:
    """The sentence of an error, with command-line options spelled as the keyword arguments of this function of the fixture."""
    return in_keywords(str(error), keywords_of(function))


def describe_accepted(done: Checked) -> Iterator[str]:
    """The lines on a new baseline: its versions, what changed since the last one, and where that is kept."""
    yield f"{done.path.parent.name}/{done.path.name}: " + (
        ", ".join(f"{name} {version}" for name, version in done.versions.items())
    )
    if done.drift is not None:
        yield verdict(done.drift, "it was")
        yield from details(done.drift)
    if done.kept:
        yield f"kept: {done.kept.name}"


def complete_traces(found: Collected, framework: str) -> list[Trace]:
    """The traces of this framework, of all if it is ''. Raises UsageError if one is missing, or the framework unknown."""
    names = list(found.meta["frameworks"])
    if framework and framework not in names:
        raise unknown("framework of this pair", framework, names)
    traces = []
    for trace in found.traces:
        if framework in ("", trace.framework):
            if isinstance(trace, Missing):
                raise UsageError(f"the work that runs in {trace.framework} is not known: {trace.reason.rstrip('.')}.")
            traces.append(trace)
    return traces


def flops_by_layer(trace: Trace, found: Collected, convention: Convention) -> tuple[int, list[str]]:
    """The FLOPs of a trace, and a line per layer, the largest first. Raises UsageError if the work of an op is unknown."""
    load()
    result = trace_result(trace, found.declared_layers, Conventions(convention, {convention.name: convention}))
    if not result.complete:
        raise UsageError(f"the work that runs in {trace.framework} is not known: {result.reason}")
    layers = sorted(layer_work(trace, found.declared_layers, convention).items(), key=lambda item: -(item[1] or 0))
    return result.totals[convention.name], [f"  {layer}: {flops:,}" for layer, flops in layers if flops]
