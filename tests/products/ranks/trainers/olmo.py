"""OLMo-core 3.0.0's own Transformer, shared by its own functions: each makes the step of one rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from olmo_core.distributed.parallel import DataParallelType, build_world_mesh, get_pp_mesh
from olmo_core.distributed.parallel.pipeline_parallel import PipelineScheduleType, PipelineSplitStyle
from olmo_core.nn.feed_forward import FeedForwardConfig
from olmo_core.nn.transformer import TransformerActivationCheckpointingMode, TransformerConfig
from olmo_core.train.train_module.transformer import config as shares
from olmo_core.train.train_module.transformer.common import parallelize_model
from torch import distributed
from torch.distributed.pipelining import schedules
from torch.nn import functional

BATCH, SEQ, DIM, HIDDEN, VOCAB, LAYERS = 2, 512, 64, 128, 128, 4
CPU = torch.device("cpu")
Step = Callable[[], None]


def config() -> Any:
    """That of the test of OLMo-core#680: test_pp_num_flops_per_token."""
    widths = {"d_model": DIM, "vocab_size": VOCAB, "n_layers": LAYERS, "n_heads": 2}
    return TransformerConfig.llama_like(**widths, feed_forward=FeedForwardConfig(hidden_size=HIDDEN, bias=False))


def ids() -> torch.Tensor:
    return torch.randint(0, VOCAB, (BATCH, SEQ))


def loss(logits: Any, labels: torch.Tensor) -> torch.Tensor:
    logits = logits.full_tensor() if hasattr(logits, "full_tensor") else logits
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def plain() -> Step:
    net, x = config().build(init_device="cpu"), ids()
    return lambda: loss(net(x), x).backward()


def shared(name: str = "fsdp", tp: int = 0, **given: Any) -> Step:
    given["dp_config"] = data(name)
    given["tp_config"] = shares.TransformerTensorParallelConfig(degree=tp) if tp else None
    mesh = build_world_mesh(dp=given["dp_config"], tp=given["tp_config"], device_type="cpu")
    sizes = {"max_sequence_length": SEQ, "rank_microbatch_size": BATCH * SEQ}
    net = parallelize_model(config().build(init_device="meta"), world_mesh=mesh, device=CPU, **sizes, **given)
    x = ids()
    return lambda: loss(net(x), x).backward()


def data(name: str) -> Any:
    return shares.TransformerDataParallelConfig(name=DataParallelType(name))


def ddp() -> Step:
    return shared("ddp")


def fsdp() -> Step:
    return shared()


def tp() -> Step:
    return shared(tp=distributed.get_world_size())


def tp_fsdp() -> Step:
    return shared(tp=2)


def again() -> Step:
    full = TransformerActivationCheckpointingMode.full
    return shared(ac_config=shares.TransformerActivationCheckpointingConfig(mode=full))


def pipeline(name: str, degree: int) -> Step:
    """Its stages and its parts, under PyTorch's schedule."""
    schedule_type, style = PipelineScheduleType.single_1F1B, PipelineSplitStyle.loop
    pp = shares.TransformerPipelineParallelConfig(degree=degree, schedule=schedule_type, style=style)
    mesh = build_world_mesh(dp=data(name), pp=pp, device_type="cpu")
    stages, parts = pp.split_model(config().build(init_device="meta"), pp_mesh=get_pp_mesh(mesh), device=CPU)
    sizes = {"max_sequence_length": SEQ, "rank_microbatch_size": SEQ}
    parallelize_model(parts, world_mesh=mesh, device=CPU, **sizes, dp_config=data(name), pp_enabled=True)
    schedule, x = schedules.Schedule1F1B(stages[0], n_microbatches=BATCH, loss_fn=loss), ids()
    given = [x] if stages[0].is_first else []
    target = {"target": x} if stages[0].is_last else {}
    return lambda: schedule.step(*given, **target)


def pp() -> Step:
    return pipeline("ddp", distributed.get_world_size())


def pp_fsdp() -> Step:
    return pipeline("fsdp", 2)
