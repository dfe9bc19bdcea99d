"""The FLOP formulas of three trainers, each as its own unmodified file dispatches on a configuration: five lines around each.

The files are not here: put them into the folder that the variable TRAINERS names, from these repositories of GitHub.

| file | source |
|:--|:--|
| automodel.py | NVIDIA-NeMo/Automodel 36044ad3, nemo_automodel/components/utils/flops_utils.py |
| verl.py | volcengine/verl b178a3cd, verl/utils/flops_counter.py |
| veomni.py | ByteDance-Seed/VeOmni d9774494, veomni/utils/count_flops.py |
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from pathlib import Path
from types import ModuleType
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


def automodel(config: Any, batch: int, seq: int) -> Any:
    """FLOPs of a step by Automodel."""
    return _automodel.get_flops_formula_for_hf_config(config)(config, batch, seq)


def verl(config: Any, batch: int, seq: int) -> Any:
    """FLOPs of a step by verl, which returns TFLOP/s of a step of one second."""
    of_type = _verl.ESTIMATE_FUNC.get(config.model_type, _verl._estimate_unknown_flops)
    return of_type(config, batch * seq, [seq] * batch, 1) * 1e12


def veomni(config: Any, batch: int, seq: int) -> Any:
    """FLOPs of a step by VeOmni, which returns TFLOP/s of a step of one second."""
    return _veomni.VeomniFlopsCounter(config).estimate_flops([seq] * batch, 1)[0] * 1e12
