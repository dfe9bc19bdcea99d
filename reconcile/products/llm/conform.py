"""Holds functions of one's own to what runs of many configurations at several lengths, for ``reconcile formula conform``.

A configuration is a config.json, or a type of model that transformers knows: the default of its class, with few layers. Each is
traced in a process of its own, once for all functions.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing import connection
from time import monotonic
from typing import Any

from ...adapters.counters.formulas.config_fields import FIELDS
from ...adapters.counters.formulas.configured.config_source import settings_of
from ...core.errors import UsageError, describe_error
from ...core.records import Trace
from ...worker.process_guard import end_with
from .functions.cells import Cell, fill_cell
from .functions.explain import Functions, TakeTrace, refuse_functions
from .request import find_source, formula_framework, name_model

LAYERS = 4
"""The layers of a configuration that is a class's default: so many, or as many as have one of each kind."""
Configurations = Mapping[str, Mapping[str, Any]]
"""The settings of each configuration, by its name."""


def list_configurations(named: Sequence[str], longest: int) -> dict[str, Mapping[str, Any]]:
    """The configurations of these names, each a config.json, its folder, or a type of model; all types that generate text
    without any. A type has positions for the ``longest`` sequence. Raises UsageError."""
    try:
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as TYPES
    except ImportError as error:
        raise UsageError(
            f"configurations are those of transformers, which cannot be imported here ({error}): install the extra llm, as in "
            "pip install 'flop-reconcile[torch,llm]'."
        ) from error
    found: dict[str, Mapping[str, Any]] = {}
    for name in named or TYPES:
        source = find_source(name)
        if source is not None:
            if name_model(name) in found:
                raise UsageError(f"two configurations are called {name_model(name)}: rename one of the files.")
            found[name_model(name)] = settings_of(source)
            continue
        try:
            found[name] = make_default(name, longest)
        except Exception as error:  # whatever a class raises
            if named:
                raise UsageError(
                    f"--config {name} is no file, and no type of transformers: {describe_error(error)}."
                ) from error
    return found


def make_default(model_type: str, longest: int) -> dict[str, Any]:
    """The settings of a class's default with few layers, one of each kind among them, and positions for ``longest`` tokens."""
    from transformers import AutoConfig

    config = AutoConfig.for_model(model_type)
    text = config.get_text_config()
    kinds = list(getattr(text, "layer_types", None) or [])
    most = next((n for n in range(LAYERS, len(kinds)) if set(kinds[:n]) == set(kinds)), LAYERS)
    stated = {name: getattr(text, name, None) for letter in ("L", "positions") for name in FIELDS[letter]}
    sizes = {
        name: min(value, most) if name in FIELDS["L"] else max(value, longest)
        for name, value in stated.items()
        if isinstance(value, int)
    }
    try:
        AutoConfig.for_model(model_type, **(sizes if text is config else {"text_config": sizes}))
    except Exception:  # its lists of layers do not follow their number
        lists = {name: value for name, value in text.to_dict().items() if isinstance(value, list)}
        sizes |= {name: value[:most] for name, value in lists.items() if len(value) == text.num_hidden_layers}
    return {"model_type": model_type, **(sizes if text is config else {"text_config": sizes})}


def choose_known(every: Configurations, asked: Functions, most: int) -> tuple[dict[str, Mapping[str, Any]], list[Cell]]:
    """At most so many configurations for which some function has a number, evenly spread; and those for which none has."""
    known, refused = list[str](), list[Cell]()
    for name, settings in every.items():
        at = replace(asked, settings=settings)
        quotes = refuse_functions(at)
        if len(quotes) < len(asked.functions):
            known.append(name)
        else:
            refused.append(Cell(name, at.batch, at.seq, at.training, None, quotes, quotes[0].reason))
    number = min(most, len(known)) or len(known)
    return {(name := known[i * len(known) // number]): every[name] for i in range(number)}, refused


def fill_cells(
    chosen: Configurations, asked: Functions, lengths: Sequence[int], limit: float, tell: Callable[[str], None]
) -> Iterator[Cell]:
    """The cells of each configuration at each length, in their order; a configuration may take ``limit`` seconds."""
    tasks = {name: _make_task(name, replace(asked, settings=settings), lengths) for name, settings in chosen.items()}
    found: dict[str, list[Cell]] = {}
    for name, cells, reason in run_forked(tasks, os.cpu_count() or 1, limit):
        lost = [Cell(name, asked.batch, seq, asked.training, None, (), reason) for seq in lengths]
        found[name] = cells or lost
        tell(f"{name}: {found[name][-1].reason or 'traced'}")
    for name in chosen:
        yield from found[name]


def _make_task(name: str, asked: Functions, lengths: Sequence[int]) -> Callable[[], list[Cell]]:
    def fill() -> list[Cell]:
        take = remember(asked.take)
        return [fill_cell(name, replace(asked, seq=seq, take=take)) for seq in lengths]

    return fill


def remember(take: TakeTrace) -> TakeTrace:
    """The same traces, each taken once: those at other sizes are mostly the same at all lengths."""
    known: dict[str, Trace] = {}

    def take_once(settings: Mapping[str, Any], batch: int, seq: int) -> Trace:
        key = json.dumps([settings, batch, seq], sort_keys=True, default=str)
        if key not in known:
            known[key] = take(settings, batch, seq)
        return known[key]

    return take_once


def find_versions() -> str:
    """The versions that are installed here: ``transformers 5.1.0, torch 2.13.0``."""
    from importlib import metadata

    return ", ".join(f"{name} {metadata.version(name)}" for name in ("transformers", formula_framework()))


def run_forked(tasks: Mapping[str, Callable[[], Any]], jobs: int, limit: float) -> Iterator[tuple[str, Any, str]]:
    """Each name with what its task returned, or with None and why it returned nothing, in the order in which they end.

    A process begins with all that is imported here, and what it imports or allocates goes with it.
    """
    fork, waiting = multiprocessing.get_context("fork"), list(tasks.items())
    running: dict[connection.Connection, tuple[str, Any, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, task = waiting.pop(0)
                ours, theirs = fork.Pipe(duplex=False)
                process = fork.Process(target=_send, args=(task, theirs, os.getpid()), daemon=True)
                process.start()
                theirs.close()
                running[ours] = (name, process, monotonic() + limit)
            soonest = min(latest for _, _, latest in running.values())
            ready = connection.wait(list(running), max(soonest - monotonic(), 0))
            for end in list(running):
                name, process, latest = running[end]
                if end in ready or monotonic() >= latest:
                    found = (None, "its process ended" if end in ready else f"it took more than {limit:g} seconds")
                    with contextlib.suppress(EOFError):
                        found = end.recv() if end in ready else found
                    del running[end]
                    _end_process(process, end)
                    yield name, *found
    finally:
        for end, (_, process, _) in running.items():
            _end_process(process, end)


def _end_process(process: Any, end: connection.Connection) -> None:
    process.kill()
    process.join()
    end.close()


def _send(task: Callable[[], Any], theirs: connection.Connection, starter: int) -> None:
    """Run a task in its process, which ends with the one that started it, and send what it returns."""
    end_with(starter)
    try:
        theirs.send((task(), ""))
    except Exception as error:
        theirs.send((None, f"it raised {describe_error(error)}"))
