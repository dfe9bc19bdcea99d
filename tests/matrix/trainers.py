"""The FLOP formulas of four trainers, each as its own unmodified file dispatches on a configuration: a few lines around each.

The files are not here: put them into the folder that the variable TRAINERS names, from these repositories of GitHub.

| file | source |
|:--|:--|
| automodel.py | NVIDIA-NeMo/Automodel 36044ad3, nemo_automodel/components/utils/flops_utils.py |
| verl.py | the package verl 0.9.1, verl/utils/flops_counter.py |
| veomni.py | ByteDance-Seed/VeOmni d9774494, veomni/utils/count_flops.py |
| bridge.py | NVIDIA-NeMo/Megatron-Bridge 067f987d, src/megatron/bridge/training/utils/flop_utils.py |
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

FOLDER = Path(os.environ["TRAINERS"])


def load(name: str, file: str, **needed: dict[str, Any]) -> ModuleType:
    """The module of a file, with what it imports from other modules of its package."""
    for other, members in needed.items():
        module = ModuleType(other.replace("_DOT_", "."))
        module.__dict__.update(members, __path__=[])
        sys.modules[module.__name__] = module
    spec = importlib.util.spec_from_file_location(name, FOLDER / file)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


_automodel = load("automodel_flops", "automodel.py")
_verl = load(
    "verl.utils.flops_counter",
    "verl.py",
    verl={},
    verl_DOT_utils={},
    verl_DOT_utils_DOT_device={"get_torch_device": None},
)
_veomni = load(
    "veomni.utils.count_flops", "veomni.py", veomni={}, veomni_DOT_lora={},
    veomni_DOT_lora_DOT_config={"LORA_MODULES_BY_MODEL_TYPE": {}, "VeOmniLoraConfig": object},
    veomni_DOT_utils={}, veomni_DOT_utils_DOT_device={"get_device_name": str},
    veomni_DOT_utils_DOT_logging={"get_logger": logging.getLogger},
)  # fmt: skip
_bridge = load(
    "bridge_flops", "bridge.py", megatron={}, megatron_DOT_core={}, megatron_DOT_core_DOT_models={},
    megatron_DOT_core_DOT_models_DOT_gpt={}, megatron_DOT_core_DOT_models_DOT_hybrid={},
    megatron_DOT_core_DOT_models_DOT_gpt_DOT_experimental_attention_variant_module_specs={
        "is_gated_delta_net_variant": lambda variant: variant == "gdn"},
    megatron_DOT_core_DOT_models_DOT_hybrid_DOT_hybrid_layer_allocation={
        "Symbols": object, "get_hybrid_layer_counts": None, "parse_hybrid_pattern": None},
    megatron_DOT_core_DOT_utils={"get_attr_wrapped_model": None},
    megatron_DOT_bridge={}, megatron_DOT_bridge_DOT_data={}, megatron_DOT_bridge_DOT_data_DOT_packing={},
    megatron_DOT_bridge_DOT_data_DOT_packing_DOT_algorithms={"calculate_avg_seqlen": None},
    megatron_DOT_bridge_DOT_peft={}, megatron_DOT_bridge_DOT_peft_DOT_lora={"LoRA": type("LoRA", (), {})},
    megatron_DOT_bridge_DOT_training={}, megatron_DOT_bridge_DOT_training_DOT_config={"ConfigContainer": object},
    megatron_DOT_bridge_DOT_utils={},
    megatron_DOT_bridge_DOT_utils_DOT_vocab_utils={
        "calculate_padded_vocab_size": lambda size, *_, **__: size},  # the recipes of these cells pad none
)  # fmt: skip


def automodel(config: Any, batch: int, seq: int) -> Any:
    """FLOPs of a step by Automodel."""
    return _automodel.get_flops_formula_for_hf_config(config)(config, batch, seq)


def verl(config: Any, batch: int, seq: int) -> Any:
    """FLOPs of a step by verl, which returns TFLOP/s of a step of one second."""
    kind = {"qwen3_next": "qwen3_5_moe"}.get(config.model_type, config.model_type)  # its layers, under another name
    of_type = _verl.ESTIMATE_FUNC.get(kind, _verl._estimate_unknown_flops)
    return of_type(config, batch * seq, [seq] * batch, 1) * 1e12


def veomni(config: Any, batch: int, seq: int) -> Any:
    """FLOPs of a step by VeOmni, which returns TFLOP/s of a step of one second."""
    return _veomni.VeomniFlopsCounter(config).estimate_flops([seq] * batch, 1)[0] * 1e12


def bridge(config: Any, batch: int, seq: int) -> Any:
    """FLOPs of a step by Megatron-Bridge, whose providers give a configuration's sizes the names of Megatron."""
    sizes = config.to_dict()
    layers, experts = (
        config.num_hidden_layers,
        sizes.get("n_routed_experts") or sizes.get("num_experts") or sizes.get("num_local_experts"),
    )
    dense = sizes.get("first_k_dense_replace", 0)
    shared = sizes.get("shared_expert_intermediate_size") or sizes.get("n_shared_experts", 0) * sizes.get(
        "moe_intermediate_size", 0
    )
    window = sizes.get("sliding_window") if config.model_type == "gpt_oss" else None
    model = SimpleNamespace(
        seq_length=seq,
        hidden_size=config.hidden_size,
        num_layers=layers,
        ffn_hidden_size=config.intermediate_size,
        num_attention_heads=config.num_attention_heads,
        num_query_groups=config.num_key_value_heads,
        kv_channels=sizes.get("head_dim") or config.hidden_size // config.num_attention_heads,
        vocab_size=config.vocab_size,
        make_vocab_size_divisible_by=1,
        tensor_model_parallel_size=1,
        gated_linear_unit=True,
        num_moe_experts=experts,
        moe_ffn_hidden_size=sizes.get("moe_intermediate_size") or config.intermediate_size,
        moe_router_topk=sizes.get("num_experts_per_tok"),
        moe_layer_freq=[0] * dense + [1] * (layers - dense),
        moe_shared_expert_intermediate_size=shared or None,
        mtp_num_layers=sizes.get("num_nextn_predict_layers") or None,
        multi_latent_attention="kv_lora_rank" in sizes,
        window_size=window and (window - 1, 0),
        window_attn_skip_freq=2,
    )
    model.__dict__.update(
        q_lora_rank=sizes.get("q_lora_rank"),
        kv_lora_rank=sizes.get("kv_lora_rank"),
        qk_head_dim=sizes.get("qk_nope_head_dim"),
        qk_pos_emb_head_dim=sizes.get("qk_rope_head_dim"),
        v_head_dim=sizes.get("v_head_dim"),
    )
    if config.model_type == "qwen3_next":
        model.__dict__.update(
            {key: sizes[key] for key in sizes if key.startswith("linear_")},
            attention_output_gate=True,
            experimental_attention_variant="gdn",
            linear_attention_freq=sizes.get("full_attention_interval", 4),
        )
    return _bridge.num_floating_point_operations(SimpleNamespace(model=model), batch)
