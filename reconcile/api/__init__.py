"""``reconcile.run``, the Python interface: counters on model objects in this process, or on named models in worker processes.

>>> import torch, reconcile
>>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
>>> found = reconcile.run(torch=net, inputs=torch.ones(1, 3, 32, 32))
>>> print(found)
Reconciled: 3 counters, 1 exact, 2 off and explained to the last unit.
>>> found.table.loc["0", ["work (torch)", "thop", "fvcore", "flop_counter"]].tolist()
[388800, 388800, 388800, 388800]
>>> print(found.statement[["line", "layer", "FLOP"]].to_string(index=False))
              line layer   FLOP
              thop       446400
outside-convention     1 -57600
          residual            0
       trace@torch       388800
>>> found.verdict.figures[0].flops, found.verdict.exact
(388800, ('flop_counter',))

``docs/api.md`` has an example of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.option import PYTHON
from ..engine.answer import Answer
from ..launch.keywords import keywords_of, speaks_python
from ..launch.options import keywords_taken_by
from .results import Run

if TYPE_CHECKING:
    from ..launch.request import RunRequest
    from ..launch.workers.supervisor import Event


KEYWORDS = keywords_taken_by(PYTHON)
"""The options that ``run`` takes, whether its signature spells them or not."""


@speaks_python(*KEYWORDS)
def run(
    *,
    torch: Any = None,
    tf: Any = None,
    inputs: Any = None,
    model: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    convention: str = "matmul",
    convention_files: Sequence[str | Path] = (),
    counters: Sequence[str] = (),
    formulas: Sequence[str | Path] = (),
    device: str = "cpu",
    isolated: bool | None = None,
    timeout: float | None = None,
    python: str | Path | None = None,
    progress: Callable[[Event], None] | None = None,
    mapping: str | Path | None = None,
    pass_: str = "forward",
    optimizer: Any = None,
    context: int | None = None,
    **others: Any,
) -> Run:
    """Reconcile the counters of a PyTorch model, of a TensorFlow model, or of both. The result is the one of ``reconcile run``.

    ``torch`` and ``tf`` are models, or functions of no arguments that return a model or ``(model, inputs)``; ``others`` are
    those of other frameworks, by the names of their options, such as ``onnx="net.onnx"``, and other options. ``inputs`` is
    what a model is called with: a tensor, a tuple of positional ones, a dict of named ones, with whatever stands inside
    them; or shapes as the command line takes them, such as ``"1,3,224,224"``. The models stay as they are. ``mapping`` is a
    file that says which layers of the two belong together, where their names and work do not. In place of models, ``model``
    names a pair, such as ``"gru_demo"``, with ``overrides`` of its parameters, such as ``{"units": 96}``; it runs in worker
    processes.

    ``pass_="training"`` counts a training step with ``optimizer``: ``"sgd"`` unless given, any
    name of torch.optim, Keras or Optax, or an optimizer at hand such as ``torch.optim.AdamW(net.parameters())``; forward in train
    mode, the mean of squares of the outputs as the loss, gradients, update. ``.phases`` has it layer by layer. A compiled Keras
    model in TensorFlow runs its own ``train_step`` unless ``optimizer`` is given.

    ``pass_="prefill"`` counts a PyTorch language model's call that fills its cache with the prompt, and ``pass_="decode"`` with
    ``context=N`` one more token of each sequence, on a cache that holds N tokens.

    ``isolated=True`` runs in worker processes, one per framework, and this process imports neither. It takes functions and
    classes of modules, or their names (``"net:make"``), or model files (``"net.pt2"``); names are always run so. ``timeout``
    (seconds per counter, 600 unless given) and ``python`` (the interpreter of an environment of yours) are for these. A
    model at hand is never sent there: nothing is pickled.

    ``convention`` is what counts as a FLOP, ``convention_files`` (TOML) add some; ``counters`` are those to run, all
    unless given; ``formulas`` are Python files with the work of ops that the tool does not know; ``device`` is where the
    counters run their model; ``progress`` is called with every Event (framework, task, phase), from other threads too.

    Raises UsageError, with one sentence, for what cannot be used.
    """
    from ..core.errors import UsageError, unknown
    from ..core.registry import frameworks
    from ..launch.choose import MODELS_PER_MAPPING, check_one_model
    from ..launch.request import models_of, run_request

    more = {name: others.pop(name) for name in KEYWORDS if name in others}
    stray = next((name for name in others if name not in frameworks()), None)
    if stray is not None:
        raise unknown("argument of reconcile.run", stray, {*frameworks(), *keywords_of(run, KEYWORDS)})
    given = models_of(dict(torch=torch, tf=tf, **others))
    set_ = {name: str(value) for name, value in (overrides or {}).items()}
    if model is not None or set_:
        check_one_model(model, given, set_, inputs)
    elif not given:
        raise UsageError("give a model: torch=..., tf=... or both.")
    if mapping is not None and sum(frameworks()[name].aligned for name in given) != MODELS_PER_MAPPING:
        raise UsageError("mapping= is for two models: give both torch= and tf=.")
    named = next(
        (name for name, each in given.items() if isinstance(each, str)), "model" if model is not None else None
    )
    apart = named is not None if isolated is None else isolated
    if not apart and named is not None:
        raise UsageError(
            f"{named}={given.get(named, model)!r} is a name, which is for a worker process: leave isolated=False out, or give "
            "the function itself."
        )
    if not apart and (timeout is not None or python is not None):
        raise UsageError("timeout= and python= are for worker processes: give isolated=True.")
    if apart and optimizer is not None and not isinstance(optimizer, str):
        raise UsageError("an optimizer at hand is for a model at hand: give its name, such as optimizer='adamw'.")
    options = {
        "convention": convention,
        "convention_files": convention_files,
        "counters": counters,
        "device": device,
        "timeout": timeout,
        "formulas": formulas,
        "mapping": mapping,
        "pass_": pass_,
        "optimizer": optimizer,
        "context": context,
        **more,
    }
    tell = progress or (lambda _event: None)
    if apart:
        return Run(_apart(given, inputs, {**options, "model": model, "overrides": set_}, python, tell))
    at_hand = None if isinstance(optimizer, str) else optimizer
    return Run(_here(run_request(**options), given, inputs, tell, at_hand))


def _apart(
    models: Mapping[str, Any],
    inputs: Any,
    options: Mapping[str, Any],
    python: str | Path | None,
    tell: Callable[[Event], None],
) -> Answer:
    from .. import workflow
    from ..launch import importable_models
    from ..launch.environments.definitions import at
    from ..launch.environments.runs import collect_in
    from ..launch.request import run_request

    request = run_request(**importable_models.name_models(models), inputs=importable_models.shapes(inputs), **options)
    take = collect_in(at(str(python))) if python else None
    return workflow.run(replace(request, paths=importable_models.paths(), every_convention=True), tell, take)


def _here(
    request: RunRequest, models: Mapping[str, Any], inputs: Any, tell: Callable[[Event], None], optimizer: Any = None
) -> Answer:
    from .. import workflow
    from ..launch import choose
    from ..launch.in_process import collect_live

    choose.check_cached(request, models)
    request = replace(request, every_convention=True)
    return workflow.run(request, tell, lambda r, t: collect_live(models, inputs, r, t, optimizer))
