"""torchtitan 0.3.0's own models of its debug configurations, shared by its own functions: each makes the step of one rank.

Their layers are two, and attention is that of torch.nn.functional: flex_attention, which they choose, is compiled first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed
from torchtitan.distributed import ParallelDims
from torchtitan.distributed import utils as titan
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.distributed.context_parallel import prepare_context_parallel_input
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.deepseek_v3.config_registry import deepseek_v3_debugmodel
from torchtitan.models.llama3.config_registry import llama3_debugmodel_ce_loss

BATCH, SEQ, VOCAB, LAYERS = 4, 64, 2048, 2
CPU = torch.device("cpu")
Step = Callable[[], None]


def llama(**degrees: int) -> Any:
    return small(llama3_debugmodel_ce_loss(), degrees)


def deepseek(balanced: bool = True, **degrees: int) -> Any:
    """If ``balanced``, its experts get equal numbers of tokens, by torchtitan's own switch, which does not run with tp."""
    made = deepseek_v3_debugmodel()
    made.loss, made.debug.moe_force_load_balance = made.loss.loss_fn, balanced
    return small(made, degrees)


def small(made: Any, degrees: dict[str, int]) -> Any:
    training, parallelism, layers = made.training, made.parallelism, made.model_spec.model.layers
    training.seq_len, training.local_batch_size, training.mixed_precision_param = SEQ, BATCH, "float32"
    parallelism.spmd_backend, parallelism.pipeline_parallel_schedule = "partial_dtensor", "1F1B"
    parallelism.data_parallel_shard_degree, made.activation_checkpoint = 1, None
    for name, degree in degrees.items():
        setattr(parallelism, f"{name}_degree", degree)
    del layers[LAYERS:]
    for layer in layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    return made


def shared(made: Any) -> Step:
    """What torchtitan's trainer does: it builds a model on meta, shares it, and gives its parts values."""
    spec, dims = made.model_spec, ParallelDims.from_config(made.parallelism, distributed.get_world_size())
    titan.set_spmd_backend(made.parallelism.spmd_backend)
    spec.model.update_from_config(config=made)
    dims.build_mesh()
    with torch.device("meta"):
        net = spec.model.build()
    given = {
        "parallel_dims": dims,
        "training": made.training,
        "parallelism": made.parallelism,
        "compile_config": made.compile,
        "ac_config": made.activation_checkpoint,
        "dump_folder": "",
    }
    loss_fn, schedule, first, last = made.loss.build(compile_config=made.compile), None, True, True
    if dims.pp_enabled:
        stages = {"device": CPU, "model_config": spec.model, "parallelize_fn": spec.parallelize_fn, "loss_fn": loss_fn}
        schedule, parts, first, last = spec.pipelining_fn(net, **given, **stages)
    else:
        parts = [spec.parallelize_fn(net, **given)]
    for part in parts:
        part.to_empty(device="cpu")
        with torch.no_grad():
            part.init_weights(buffer_device=None)
        part.train()
    x, tokens = torch.randint(0, VOCAB, (BATCH, SEQ)), torch.tensor(BATCH * SEQ)

    def step() -> None:
        inputs, labels, named = x, x, {}
        if dims.cp_enabled:
            places = {"positions": torch.arange(SEQ).expand(BATCH, SEQ)}
            balancer = made.parallelism.context_parallel_load_balancer
            inputs, labels, named = prepare_context_parallel_input(
                x, x, places, dims.get_mesh("cp"), CPU, balancer, None
            )
        if schedule is None:
            loss_fn(parts[0](inputs, **named), labels, tokens)[0].backward()
        else:
            target = {"target": x, "losses": []} if last else {}
            arguments = [x] if first else []
            schedule.step(*arguments, **target, loss_kwargs={"global_valid_tokens": tokens}, return_outputs=False)

    return step


def alone(made: Any) -> Step:
    """The same model on one device."""
    made.model_spec.model.update_from_config(config=made)
    net, loss_fn = made.model_spec.model.build(), made.loss.build(compile_config=made.compile)
    net.init_weights()
    x, tokens = torch.randint(0, VOCAB, (BATCH, SEQ)), torch.tensor(BATCH * SEQ)
    return lambda: loss_fn(net(x), x, tokens)[0].backward()


def checkpointed(kind: Any) -> Step:
    made = llama(tensor_parallel=world())
    made.activation_checkpoint = kind.Config()
    return shared(made)


def world() -> int:
    return distributed.get_world_size()


def plain() -> Step:
    return alone(llama())


def tp() -> Step:
    """Sequence parallelism, as torchtitan has it from the start."""
    return shared(llama(tensor_parallel=world()))


def fsdp() -> Step:
    return shared(llama(data_parallel_shard=world()))


def hsdp() -> Step:
    return shared(llama(data_parallel_replicate=2, data_parallel_shard=world() // 2))


def tp_fsdp() -> Step:
    return shared(llama(tensor_parallel=2, data_parallel_shard=world() // 2))


def again() -> Step:
    return checkpointed(FullAC)


def selective() -> Step:
    return checkpointed(SelectiveAC)


def pp() -> Step:
    return shared(llama(pipeline_parallel=world()))


def three_ways() -> Step:
    return shared(llama(pipeline_parallel=2, tensor_parallel=2, data_parallel_shard=world() // 4))


def cp() -> Step:
    return shared(llama(context_parallel=world()))


def experts() -> Step:
    return alone(deepseek())


def experts_tp() -> Step:
    return shared(deepseek(balanced=False, tensor_parallel=world()))


def ep() -> Step:
    return shared(deepseek(expert_parallel=world(), data_parallel_shard=world()))
