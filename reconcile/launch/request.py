"""Builds and validates a ``RunRequest`` from the options of a run (launch/options.py): ``run_request``.

It is the only function that makes one; commands, ``reconcile.run``, the pytest plugin and products call it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import UsageError, check_names, unknown
from ..core.protocol import ModelFile
from ..core.registry import counters_named, frameworks, title
from ..model_zoo.pair import Input
from .options import CACHED, OPTIMIZER, OPTIONS, by_parameter
from .options import PASSES as PASSES
from .options import RunRequest as RunRequest
from .user_models import read_models


@dataclass(frozen=True, slots=True)
class Point:
    """One size of a model among several: the overrides of a pair's parameters, or the inputs of a user's own model, which
    ``fused`` takes in the form that its own code makes of it for inference."""

    overrides: Mapping[str, str]
    inputs: tuple[Input, ...] = ()
    fused: bool = False


def models_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The models among the given options: framework -> the option's value, in the order of the frameworks."""
    return {name: given[name] for name in frameworks() if given.get(name) is not None}


def read_optimizer(pass_: str, optimizer: Any, models: Iterable[str] = ()) -> str:
    """The optimiser of a training step, '' for a call of the model: its name in lower case; of an optimizer object, its class.

    Raises UsageError for a name that no framework has, or that one of these ``models``' does not have.
    """
    check_names("pass", (pass_,), (*PASSES, *CACHED))
    name = optimizer.lower() if isinstance(optimizer, str) else type(optimizer).__name__.lower()
    if isinstance(optimizer, str):
        lists = {each: frameworks()[each].optimizers for each in models} or {
            r.name: r.optimizers for r in frameworks().values()
        }
        known = sorted({each for names in lists.values() for each in names})
        if name not in known:
            raise unknown("optimizer", optimizer, known or (OPTIMIZER,))
        lacking = next((each for each in models if lists[each] and name not in lists[each]), "")
        if lacking:
            raise UsageError(
                f"{frameworks()[lacking].title} has no optimizer {name}: it has {', '.join(lists[lacking])}."
            )
    if optimizer is not None and pass_ != "training":
        raise UsageError("an optimizer applies only to a training step: add --pass training.")
    return (OPTIMIZER if optimizer is None else name) if pass_ == "training" else ""


def context(pass_: str, tokens: int | None) -> int | None:
    """The tokens in the cache before the call, 0 of a prefill, None without one. Raises UsageError if the pass has others."""
    if tokens is not None and pass_ != "decode":
        raise UsageError("a context applies only to a decoding step: add --pass decode.")
    if tokens is None and pass_ == "decode":
        raise UsageError("a decoding step needs the number of tokens in its cache: add --context 128, say.")
    return 0 if pass_ == "prefill" else tokens


def run_request(**options: Any) -> RunRequest:
    """Make the request of a run from its options. They have their parameter names; None is an option that was not given.

    Raises UsageError for a value that cannot be read, and TypeError for an option that a request does not have.
    """
    known = by_parameter()
    stray = [name for name in options if name not in known or not known[name].field]
    if stray:
        raise TypeError(f"a request has no option {', '.join(stray)}")
    given: dict[str, Any] = {  # of an option that can be repeated, a single text or path is the only one
        name: (value,) if known[name].repeated and isinstance(value, (str, Path)) else value
        for name, value in options.items()
        if value is not None and value != known[name].default and value not in ((), [], {})
    }
    values = {known[name].field: read(value) for name, value in given.items() if (read := known[name].read)}
    models = models_of(given)
    files: Mapping[str, ModelFile] = {}
    factories: Mapping[str, str] = {}
    if models or any(known[name].field == "files" for name in given):
        files, factories = read_models(models, given)
    _of_device(given.get("device", ""), models)
    owners = [i.name.partition(":")[0] for i in values.get("inputs", ()) if ":" in i.name]
    without = next((owner for owner in owners if owner not in models), "")
    if without and models:
        raise UsageError(f"--input {without}: is for a {title(without)} model, and none is given: leave it out.")
    optimizer = read_optimizer(given.get("pass_", PASSES[0]), given.get("optimizer"), models)
    if "counters" in values:
        values["counters"] = counters_named(values["counters"], models)
    values["context"] = context(given.get("pass_", PASSES[0]), values.get("context"))
    return RunRequest(**values, factories=factories, files=files, training=optimizer)


def _of_device(device: str, models: Iterable[str]) -> None:
    """Raises UsageError for a device where no framework of these models takes one. A framework says itself which it has."""
    models = tuple(models)
    if (
        device not in ("", OPTIONS["device"].default)
        and models
        and not any(frameworks()[name].placed for name in models)
    ):
        able = " or ".join(record.title for record in frameworks().values() if record.placed)
        raise UsageError(f"--device is for a model in {able}, and none is given: leave it out.")
