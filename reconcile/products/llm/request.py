"""From a language model to the comparison of its formulas: ``read_request``, and ``make_comparison``, which runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.conventions import MATMUL, NAMED, Conventions
from ...core.errors import NotInResult, UsageError, short
from .comparison import Comparison, compare_formulas, facts_of
from .config import framework, read_configuration

if TYPE_CHECKING:
    from ...engine.settle import Collected
    from ...launch.request import RunRequest
    from ...launch.workers.supervisor import Event

CONFIG = "config.json"


def make_comparison(
    request: RunRequest,
    name: str,
    take: Callable[[RunRequest, Callable[[Event], None]], Collected],
    tell: Callable[[Event], None],
) -> Comparison:
    """Run a request (``read_request``) and compare the formulas with it.

    Raises NotInResult if what ran is not known, and UsageError if no formula has a number.
    """
    from ...engine.settle import settle

    collected = take(request, tell)
    result = settle(collected, Conventions(MATMUL, NAMED))
    (trace,) = result.traces
    if MATMUL.name not in trace.totals:
        raise NotInResult(f"{name} has no number: {trace.reason}")
    facts = facts_of(collected)
    if facts is None:
        raise UsageError(f"no formula has a number for {name}: {result.ledgers[0].reason}.")
    return compare_formulas(result, facts, name)


def read_request(
    model: Any,
    *,
    batch: int | None = None,
    seq: int | None = None,
    lengths: Sequence[int] = (),
    lora: str = "",
    images: int | None = None,
    image_size: Sequence[int] = (),
    pass_: str = "training",
    inputs: Any = None,
    paths: tuple[str, ...] = (),
) -> tuple[RunRequest, str, Callable[[RunRequest, Callable[[Event], None]], Collected]]:
    """The request, the model's name, and how to run it: a configuration or a model at hand in this process, others in a worker.

    ``model`` is a config.json or its folder, its settings, ``module:function``, a pair, or a model at hand. ``batch`` and ``seq``
    or ``lengths`` size a configuration, ``lora`` freezes it and adds adapters, and ``images`` of ``image_size`` pixels (height
    and width) stand in each of its sequences; ``inputs`` are a model's own, and a worker imports from ``paths``, too.

    Raises UsageError for sizes of a model that has inputs of its own, for inputs of one that is sized, and for a model that
    cannot be used.
    """
    from ...launch import importable_models, runner
    from ...launch.request import run_request
    from ...work import load

    load()
    options: dict[str, Any] = {"counters": ("formula:all",), "pass_": pass_}
    configuration = _configuration(model)
    if configuration is not None:
        if inputs is not None:
            raise UsageError("a configuration is called with token ids: give batch= and seq= in place of inputs=.")
        if seq and lengths:
            raise UsageError("the lengths of the documents are those of the sequence: leave --seq or --lengths out.")
        if lora and pass_ != "training":
            raise UsageError("adapters are trained: leave --lora or --pass out.")
        documents = lengths_of(lengths)
        tokens = sum(documents) or seq or 0
        return read_configuration(
            configuration, batch or 1, tokens, pass_, documents, lora, images or 0, pixels_of(image_size)
        )
    told = model if isinstance(model, str) else "a model"
    if batch or seq or lengths or images or image_size:
        given = "--lengths" if lengths else "--images and --image-size" if images or image_size else "--seq and --batch"
        raise UsageError(f"{told} has inputs of its own: leave {given} out; they size a configuration.")
    if lora:
        raise UsageError(
            f"{told} is counted as it is: leave --lora out; let its function return a model with adapters."
        )
    if isinstance(model, str):
        shapes = importable_models.shapes(inputs) if inputs is not None else ()
        which = framework() if ":" in model else "model"
        request = run_request(**options, inputs=shapes, **{which: model})
        return replace(request, paths=paths or request.paths), model, runner.collect
    return run_request(**options), *_here(model, inputs)


def lengths_of(given: Any) -> tuple[int, ...]:
    """The lengths of documents, of one if a number is given. Raises UsageError for anything but whole numbers above 0."""
    lengths = tuple(given) if isinstance(given, Sequence) else (given,)
    for length in lengths:
        if isinstance(length, bool) or not isinstance(length, int) or length < 1:
            raise UsageError(f"the length of a document is a number of tokens, such as 2048, not {short(length)}.")
    return lengths


def pixels_of(given: Any) -> tuple[int, ...]:
    """The height and width of an image. Raises UsageError for anything but two whole numbers above 0."""
    sides = tuple(given) if isinstance(given, Sequence) else (given,)
    if sides and (len(sides) != 2 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in sides)):
        raise UsageError(
            f"the size of an image is its height and width in pixels, such as 448 and 672, not {short(given)}."
        )
    return sides


def _configuration(model: Any) -> Path | Mapping[str, Any] | None:
    """A config.json, or the settings of one; None for a model."""
    if isinstance(model, Mapping):
        return model
    if callable(getattr(model, "to_diff_dict", None)):  # a configuration of transformers
        return dict(model.to_dict())
    if not isinstance(model, (str, Path)):
        return None
    within = Path(model, CONFIG)
    if str(model).endswith(".json"):
        return Path(model)
    return within if within.is_file() or isinstance(model, Path) else None


def _here(model: Any, inputs: Any) -> tuple[str, Callable[[RunRequest, Callable[[Event], None]], Collected]]:
    """The name of a model at hand, and how to run it here."""
    from ...launch.in_process import collect_live

    def take(r: RunRequest, tell: Callable[[Event], None]) -> Collected:
        return collect_live({framework(): model}, inputs, r, tell)

    return getattr(model, "__name__", None) or type(model).__name__, take
