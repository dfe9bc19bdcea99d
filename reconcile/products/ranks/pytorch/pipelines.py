"""Pipeline parallelism without peers: stages learn the shapes of each other's activations from files.

Before its first step, a stage asks the one before it for the shapes that it will send (``PipelineStage._recv_meta``), and runs
once to learn its own: that belongs to no later step, and is not recorded.  A stage waits for a neighbour that runs beside it.
If the neighbour does not run, ``Waits`` ends the rank's run, and it runs again once the neighbour's file is there (turns.py).
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ....adapters.shared.refusal import FactoryError
from ....core.protocol import RUNNING

PAUSE = 0.005
PIPELINES_NEED_ANOTHER_RELEASE = (
    "stages of a pipeline exchange their shapes by functions of PyTorch 2.13, which PyTorch %s lacks: use 2.13, or start the "
    "processes with torchrun and reconcile watch"
)
SHAPES_LEARNT_BEFORE = (
    "before its first step each stage of the pipeline runs once to learn its shapes, where the program does not state them: "
    "that is not counted"
)
"""Note of such a step."""


class Waits(BaseException):
    """The stage of another rank has to run first, and this is its ``rank``."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self.rank = rank


class Pipelines:
    """What stages do in a run: ``recorder`` pauses while they prepare, ``prepared`` says whether one did, and ``stages`` are
    those of this rank. ``exchange`` is a folder in which they leave the shapes that they send."""

    def __init__(self) -> None:
        self.exchange = ""
        self.recorder: Any = None
        self.prepared = False
        self.stages: list[Any] = []


def _refuse_schedule(*_args: Any, **_kwargs: Any) -> None:
    raise FactoryError(PIPELINES_NEED_ANOTHER_RELEASE % torch.__version__)


def replace_exchanges(replace: Callable[[Any, str, Callable[..., Any]], None], asking: Callable[[], Any]) -> None:
    """Replace what stages send each other before their first step."""
    try:
        from torch.distributed.pipelining import stage as stages
    except ImportError:
        return
    base = getattr(stages, "PipelineStage", None)
    if base is None:
        return
    if not hasattr(base, "_recv_meta"):
        replace(base, "__init__", _refuse_schedule)
        return

    def paths(stage: Any, from_: int, to: int) -> Iterator[str]:
        """The file of its own line of ranks, and one for lines of which this rank did not run: they send the same."""
        line = "-".join(map(str, torch.distributed.get_process_group_ranks(stage.group)))
        for name in (line, "any"):
            yield os.path.join(asking().pipelines.exchange, f"{name}.{from_}.{to}")

    def send_meta(_held: Any, self: Any, meta: Any, dst_stage: int) -> None:
        for place in paths(self, self.stage_index, dst_stage):
            with open(place + ".part", "wb") as file:
                pickle.dump(meta, file)
            os.replace(place + ".part", place)

    def receive_meta(_held: Any, self: Any, src_stage: int) -> Any:
        outputs = self._stage_meta.outputs
        if src_stage > self.stage_index and not any(isinstance(each, stages._DTensorMeta) for each in outputs):
            # Gradients have the shapes of what they are taken of. How ranks share them, the next stage alone knows.
            return stages._StageBackwardMeta(backward_metas=stages._derive_grad_metas(outputs))
        line = torch.distributed.get_process_group_ranks(self.group)
        first = line[self.stage_index_to_group_rank[src_stage]]
        mark = os.path.join(asking().pipelines.exchange, RUNNING % first)
        while True:
            runs = os.path.exists(mark)  # asked first: what it left is there when it has ended
            for place in paths(self, src_stage, self.stage_index):
                if os.path.exists(place):
                    with open(place, "rb") as file:
                        return pickle.load(file)  # written by this tool, a rank before
            if not runs:
                raise Waits(first)
            time.sleep(PAUSE)

    def vote_alone(_held: Any, self: Any, has_backward: bool, *_args: Any, **_kwargs: Any) -> Any:
        dynamic = stages.InferenceMode.needs_dynamic(self._user_meta, has_backward)
        self._rank_vote = torch.tensor([0 if dynamic else 1], dtype=torch.int32, device="cpu")
        return self._rank_vote

    def prepare_unrecorded(held: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        told = asking().pipelines
        recorder, told.prepared = told.recorder, True
        if recorder is None:
            return held(self, *args, **kwargs)
        paused, recorder.paused = recorder.paused, True
        try:
            return held(self, *args, **kwargs)
        finally:
            recorder.paused = paused

    def init_stage(held: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        held(self, *args, **kwargs)
        asking().pipelines.stages.append(self)

    replace(base, "__init__", init_stage)
    for name in ("_forward_metadata_inference", "_backward_metadata_inference"):
        replace(base, name, prepare_unrecorded)
    replace(base, "_send_meta", send_meta)
    replace(base, "_recv_meta", receive_meta)
    replace(base, "_warmup_forward_vote", vote_alone)
    replace(base, "_warmup_backward_result", lambda _held, self, *_args, **_kwargs: self._rank_vote)
