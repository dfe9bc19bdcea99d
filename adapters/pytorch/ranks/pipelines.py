"""Stages of a pipeline on a process group that sends nothing: they learn each other's shapes from files.

Before its first step, a stage asks the one before it for the shapes that it will send (``PipelineStage._recv_meta``), and runs
once to learn its own: that belongs to no later step, and is not recorded.  A stage whose neighbour has not run yet waits:
``Waits`` ends the rank's run, and it runs again once the neighbour's file is there.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import torch


PREPARED = (
    "before its first step each stage of the pipeline runs once to learn its shapes, where the program does not state them: "
    "that is not counted"
)
"""Note of such a step."""


class Waits(BaseException):
    """The stage of another rank has to run first."""


class Pipelines:
    """What stages do in a run: ``recorder`` pauses while they prepare, and ``prepared`` says whether one did."""

    def __init__(self) -> None:
        self.recorder: Any = None
        self.prepared = False


def put(replace: Callable[[Any, str, Callable[[Any], Any]], None], exchange: str) -> Pipelines:
    """Replace what stages send each other before their first step."""
    told = Pipelines()
    try:
        from torch.distributed.pipelining import stage as stages
    except ImportError:
        return told
    base = getattr(stages, "PipelineStage", None)
    if base is None or not hasattr(base, "_recv_meta"):
        return told

    def path(stage: Any, from_: int, to: int) -> str:
        ranks = torch.distributed.get_process_group_ranks(stage.group)
        line = "-".join(map(str, ranks))
        return os.path.join(exchange, f"{line}.{from_}.{to}")

    def send(_held: Any) -> Any:
        def sent(self: Any, meta: Any, dst_stage: int) -> None:
            for place in (path(self, self.stage_index, dst_stage), _any(exchange, self.stage_index, dst_stage)):
                with open(place + ".part", "wb") as file:
                    pickle.dump(meta, file)
                os.replace(place + ".part", place)

        return sent

    def recv(_held: Any) -> Any:
        def received(self: Any, src_stage: int) -> Any:
            if src_stage > self.stage_index:  # gradients have the shapes of what they are taken of
                return stages._StageBackwardMeta(backward_metas=stages._derive_grad_metas(self._stage_meta.outputs))
            for place in (path(self, src_stage, self.stage_index), _any(exchange, src_stage, self.stage_index)):
                if os.path.exists(place):
                    with open(place, "rb") as file:
                        return pickle.load(file)  # written by this tool, a rank before
            raise Waits

        return received

    def own_vote(_held: Any) -> Any:
        def voted(self: Any, has_backward: bool, *_args: Any, **_kwargs: Any) -> Any:
            dynamic = stages.InferenceMode.needs_dynamic(self._user_meta, has_backward)
            self._rank_vote = torch.tensor([0 if dynamic else 1], dtype=torch.int32, device=self.device)
            return self._rank_vote

        return voted

    def unrecorded(held: Any) -> Any:
        def prepared(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorder, told.prepared = told.recorder, True
            if recorder is None:
                return held(self, *args, **kwargs)
            paused, recorder.paused = recorder.paused, True
            try:
                return held(self, *args, **kwargs)
            finally:
                recorder.paused = paused

        return prepared

    for name in ("_forward_metadata_inference", "_backward_metadata_inference"):
        replace(base, name, unrecorded)
    replace(base, "_send_meta", send)
    replace(base, "_recv_meta", recv)
    replace(base, "_warmup_forward_vote", own_vote)
    replace(base, "_warmup_backward_result", lambda _held: lambda self, *_args, **_kwargs: self._rank_vote)
    return told


def _any(exchange: str, from_: int, to: int) -> str:
    """The file for a rank beside those whose pipeline ran: its neighbours in another line of ranks send the same."""
    return os.path.join(exchange, f"any.{from_}.{to}")
