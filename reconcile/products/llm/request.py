"""From a language model to the comparison of its formulas: ``read_request`` makes a request, ``make_comparison`` runs it.

``read_functions`` reads the user's own formulas; the others read the configuration, its sizes and its adapters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.conventions import MATMUL, NAMED, Conventions
from ...core.errors import NotInResult, UsageError, brief, short
from ...core.records import Trace
from .comparison import Comparison, compare_formulas, facts_of

if TYPE_CHECKING:
    from ...adapters.counters.formulas.configured.config_source import Lora
    from ...engine.settle import Collected
    from ...launch.request import RunRequest
    from ...launch.workers.supervisor import Event
    from .functions.explain import Functions

    Take = Callable[[RunRequest, Callable[[Event], None]], Collected]
    """Runs a request, and tells of each event."""

CONFIG = "config.json"
SEQ = 2048
"""Tokens of a sequence, by default."""


def formula_framework() -> str:
    """The name of the framework whose language models the published formulas are compared with."""
    from ...core.registry import known_counters

    return next(counter.framework for counter in known_counters().values() if counter.quoted)


def make_comparison(
    request: RunRequest, name: str, take: Take, tell: Callable[[Event], None], functions: Functions | None = None
) -> Comparison:
    """Run a request (``read_request``) and compare the formulas with it, and ``functions`` (``read_functions``) after them.

    Raises NotInResult if what ran is not known, and UsageError if no formula has a number.
    """
    from ...engine.settle import settle
    from ...work import load

    load()
    collected = take(request, tell)
    result = settle(collected, Conventions(MATMUL, NAMED))
    (trace,) = result.traces
    if MATMUL.name not in trace.totals:
        raise NotInResult(f"{name} has no number: {trace.reason}")
    facts = facts_of(collected)
    if facts is None:
        raise UsageError(f"no formula has a number for {name}: {result.ledgers[0].reason}.")
    compared = compare_formulas(result, facts, name)
    if functions is None:
        return compared
    from .functions.explain import explain_functions

    (own,) = (found for found in collected.traces if isinstance(found, Trace))
    quotes = explain_functions(functions, own)
    unexplained = any(quote.step is None or quote.residual for quote in quotes)
    return replace(compared, quotes=(*quotes, *compared.quotes), exit_code=compared.exit_code or int(unexplained))


def read_functions(
    model: Any, given: Sequence[Any], *, batch: int | None, seq: int | None, pass_: str, per: str, others: Sequence[Any]
) -> Functions | None:
    """The user's functions to explain, ``package.module:function``, ``file.py:function`` or one at hand; None for none.

    ``per`` is "step" or "token", what they return FLOPs of; ``others`` are the further options of the step.

    Raises UsageError for a function that cannot be imported, and for a model or a step that functions are not explained of.
    """
    from ...adapters.counters.formulas.configured.config_source import Sizes, settings_of
    from ...adapters.counters.formulas.configured.factories import factory
    from ...core.registry import known_counters
    from ...launch.in_process import collect_live
    from ...launch.request import run_request
    from .functions.explain import Functions, make_transformers_config
    from .functions.function import load_function

    source = find_source(model)
    if not given:
        return None
    if source is None or any(others):
        raise UsageError(
            "--formula explains a function of a configuration's sizes: give a config.json, with --seq and --batch alone."
        )
    wrong = [each for each in given if not isinstance(each, str) and not callable(each)]
    if wrong:
        raise UsageError(f"a formula is a function, or the text package.module:function, not {short(repr(wrong[0]))}.")
    texts = [each if isinstance(each, str) else f":{getattr(each, '__name__', type(each).__name__)}" for each in given]
    last = [text.rpartition(":")[2] for text in texts]
    named = {name if last.count(name) == 1 else text: each for name, text, each in zip(last, texts, given, strict=True)}
    if len(named) < len(given):
        raise UsageError("two functions have one name: rename one of them.")
    one = next(name for name, counter in known_counters().items() if counter.quoted)
    request = run_request(counters=(one,), pass_=pass_)

    def trace(settings: Mapping[str, Any], batch: int, seq: int) -> Trace:
        made = factory(settings, Sizes(batch, seq))
        (taken,) = collect_live({formula_framework(): made}, None, request, lambda _event: None).traces
        if not isinstance(taken, Trace):
            raise UsageError(f"the model cannot be traced at other sizes: {taken.reason}.")
        return taken

    return Functions(
        functions={name: load_function(each) if isinstance(each, str) else each for name, each in named.items()},
        settings=settings_of(source),
        batch=batch or 1,
        seq=seq or SEQ,
        training=pass_ != "forward",
        per_token=per == "token",
        take=trace,
        make_config=make_transformers_config,
    )


def read_request(
    model: Any,
    *,
    batch: int | None = None,
    seq: int | None = None,
    lengths: str | Sequence[int] = (),
    lora: str = "",
    images: int | None = None,
    image_size: str | Sequence[int] = (),
    pass_: str = "training",
    inputs: Any = None,
    paths: tuple[str, ...] = (),
    there: Take | None = None,
    fold: bool = True,
) -> tuple[RunRequest, str, Take]:
    """The request, the model's name, and how to run it: a configuration or a model at hand in this process, others in a worker;
    with ``there``, all in the workers of another environment.

    ``model`` is a config.json or its folder, its settings, ``module:function``, a pair, or a model at hand. ``batch`` and ``seq``
    or ``lengths`` size a configuration, ``lora`` freezes it and adds adapters, and ``images`` of ``image_size`` pixels (height
    and width) stand in each of its sequences; ``inputs`` are a model's own, and a worker imports from ``paths``, too.

    Raises UsageError for sizes of a model that has inputs of its own, for inputs of one that is sized, and for a model that
    cannot be used.
    """
    from ...adapters.counters.formulas.configured.config_source import Sizes, settings_of
    from ...adapters.counters.formulas.configured.factories import factory, make_model
    from ...core.framework import relative
    from ...launch import importable_models, runner
    from ...launch.request import run_request

    options: dict[str, Any] = {"counters": ("formula:all",), "pass_": pass_}
    configuration = find_source(model)
    if configuration is not None:
        if inputs is not None:
            raise UsageError("a configuration is called with token ids: give --batch and --seq in place of --input.")
        if seq and lengths:
            raise UsageError("the lengths of the documents are those of the sequence: leave --seq or --lengths out.")
        if lora and pass_ != "training":
            raise UsageError("adapters are trained: leave --lora or --pass out.")
        documents = read_lengths(lengths or ())
        sizes = Sizes(batch or 1, sum(documents) or seq or 0, documents, images or 0, read_image_size(image_size or ()))
        wanted = read_lora(lora)
        if there is None:
            made = factory(configuration, sizes, wanted)
            name, take = _in_process(made, None)
            return run_request(**options), name, partial(_run_equal_layers_once, made, take) if fold else take
        arguments = {
            "settings": settings_of(configuration),
            "sizes": astuple(sizes),
            "lora": wanted and astuple(wanted),
        }
        maker = f"{relative(make_model.__module__)}:{make_model.__name__}"  # as a worker names it
        request = replace(run_request(**options), factories={formula_framework(): maker}, arguments=arguments)
        return request, name_model(configuration), there
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
        which = formula_framework() if ":" in model else "model"
        if shapes and which == "model":
            raise UsageError(f"{model} has inputs of its own: leave --input out.")
        request = run_request(**options, inputs=shapes, **{which: model})
        return replace(request, paths=paths or request.paths), model, there or runner.collect
    return run_request(**options), *_in_process(model, inputs)


def read_sizes(given: Any, sep: str = ",") -> tuple[int, ...] | None:
    """Whole numbers above 0: a text with ``sep`` between them, a sequence, or one alone; None for anything else."""
    if isinstance(given, str):
        parts = given.split(sep)
        given = [int(n) for n in parts if n.isascii() and n.isdecimal() and len(n) < 10]
        given = given if len(given) == len(parts) else None
    sizes = tuple(given) if isinstance(given, Sequence) else (given,)
    return sizes if all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in sizes) else None


def read_lengths(given: Any) -> tuple[int, ...]:
    """The lengths of documents, of one if a number is given. Raises UsageError for anything but whole numbers above 0."""
    lengths = read_sizes(given)
    if lengths is None:
        raise UsageError(f"the lengths of documents are numbers of tokens, such as 2048,2048, not {short(given)}.")
    return lengths


def read_image_size(given: Any) -> tuple[int, ...]:
    """The height and width of an image; one number of a text is both. Raises UsageError for anything else."""
    sides = read_sizes(given, "x")
    sides = sides * 2 if sides and isinstance(given, str) and len(sides) == 1 else sides
    if sides is None or len(sides) not in (0, 2):
        raise UsageError(
            f"the size of an image is its height and width in pixels, such as 448x672, not {short(given)}."
        )
    return sides


def name_model(model: Any) -> str:
    """The name of the model that a configuration describes."""
    from ...adapters.counters.formulas.configured.config_source import name_of

    source = find_source(model)
    return name_of(source) if source is not None else str(model)


def find_source(model: Any) -> Path | Mapping[str, Any] | None:
    """A config.json, or the settings of one; None for a model."""
    if isinstance(model, Mapping):
        return model
    if callable(getattr(model, "to_diff_dict", None)):  # a configuration of transformers
        return dict(model.to_dict())
    if not isinstance(model, (str, Path)):
        return None
    path, within = Path(model), Path(model, CONFIG)
    if within.is_file() or (isinstance(model, Path) and path.is_dir()):
        return within
    return path if isinstance(model, Path) or path.suffix == ".json" else None


def _in_process(model: Any, inputs: Any) -> tuple[str, Take]:
    """The name of a model at hand, and the function that runs a request for it in this process."""
    from ...launch.in_process import collect_live

    name = getattr(model, "__name__", None) or type(model).__name__
    return name, lambda asked, tell: collect_live({formula_framework(): model}, inputs, asked, tell)


def _run_equal_layers_once(
    made: Callable[[], Any], take: Take, asked: RunRequest, tell: Callable[[Event], None]
) -> Collected:
    """What ``take`` gives for a model of meta if one of its equal layers runs for all; with each layer if that cannot be done."""
    from ...adapters.counters.formulas.configured.equal_layers import EqualLayers

    equal = EqualLayers(made()[0])
    with suppress(UsageError):  # a layer uses its number, and the model fails
        collected = take(asked, tell)
        (trace,) = collected.traces
        if isinstance(trace, Trace) and bool(equal.groups) == bool(equal.like) and equal.is_uniform:
            return replace(collected, traces=(equal.expand(trace),))
    equal.unfold()
    return take(asked, tell)


def read_lora(text: str) -> Lora | None:
    """What ``--lora`` asks for: a rank, or ``16:q_proj,v_proj`` with modules. Raises UsageError for anything else."""
    from ...adapters.counters.formulas.configured.config_source import Lora

    rank, colon, names = text.partition(":")
    targets = tuple(names.split(",")) if colon else ()
    if not text:
        return None
    if not (rank.isascii() and rank.isdecimal() and len(rank) < 7 and int(rank) and all(targets)):
        raise UsageError(f"--lora takes a rank, such as 16 or 16:q_proj,v_proj, not {brief(text)}.")
    return Lora(int(rank), targets)
