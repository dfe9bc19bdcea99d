"""The models of docs/olmoearth.md."""

import os
import sys
import types
from collections import defaultdict
from unittest.mock import patch

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

SITE = next(folder for folder in sys.path if os.path.isdir(os.path.join(folder, "olmoearth_pretrain")))


def bare(package, **names):
    """A package of which modules can be imported without its __init__, which asks for all that training needs."""
    module = sys.modules[package] = types.ModuleType(package)
    module.__dict__.update(names, __path__=[os.path.join(SITE, *package.split("."))])


class Registry:
    """terratorch's registry of backbones."""

    def register(self, function):
        return function

    def build(self, name, pretrained, **settings):
        from terratorch.models.backbones.terramind.model import terramind_register

        return getattr(terramind_register, name)(**settings)


for name in ("olmoearth_pretrain.evals.models", "olmoearth_pretrain.train", "terratorch", "terratorch.models"):
    bare(name)
bare("terratorch.models.backbones")
names = ("BACKBONE_REGISTRY", "TERRATORCH_BACKBONE_REGISTRY", "TERRATORCH_FULL_MODEL_REGISTRY")
bare("terratorch.registry", **dict.fromkeys(names, Registry()))
bare("olmo_core.utils", get_default_device=lambda: torch.device("cpu"))

aten = torch.ops.aten
PRODUCTS = (aten.mm, aten.addmm, aten.bmm, aten.convolution, aten._scaled_dot_product_flash_attention_for_cpu)


class Shapes(TorchDispatchMode):
    """Products give zeros of their shape, without arithmetic. The rest is computed: masks decide what is multiplied."""

    def __torch_dispatch__(self, op, _, args=(), kwargs=None):
        if op.overloadpacket not in PRODUCTS:
            return op(*args, **(kwargs or {}))
        made = op(*tree_map_only(torch.Tensor, lambda x: x.to("meta"), args), **(kwargs or {}))
        return tree_map_only(torch.Tensor, lambda x: torch.zeros_like(x, device="cpu"), made)


TASKS = (  # construct_eval_samples: months, height and width in pixels, number of tasks
    *((1, 120, 1), (1, 32, 1), (1, 64, 2), (12, 1, 2), (6, 1, 1)),
    *((1, 256, 2), (12, 64, 1), (1, 80, 1), (12, 4, 1), (12, 32, 1)),
)


class Figure(nn.Module):
    """A model, called with the samples of the 13 tasks."""

    def __init__(self, model, *settings):
        super().__init__()
        self.model, self.settings = model, settings

    def forward(self, *samples):
        with Shapes():
            for (_, side, times), sample in zip(TASKS, samples, strict=True):
                for _ in range(times):
                    self.model(sample, *(setting(side) for setting in self.settings))


def figure(model, *settings):
    from olmoearth_pretrain.datatypes import MaskedOlmoEarthSample

    samples = [
        MaskedOlmoEarthSample(
            timestamps=torch.ones(1, months, 3, dtype=torch.int64),
            sentinel2_l2a=torch.ones(1, side, side, months, 12),
            sentinel2_l2a_mask=torch.zeros(1, side, side, months, 12, dtype=torch.int64),
        )
        for months, side, _ in TASKS
    ]
    return Figure(model, *settings), tuple(samples)


SIZES = {"large": (1024, 16, 24), "base": (768, 12, 12), "tiny": (192, 3, 12), "nano": (128, 8, 4)}


def sized(size):
    return dict(zip(("embedding_size", "num_heads", "depth"), SIZES[size], strict=True), mlp_ratio=4)


def olmoearth(size, one_group=False, hidden=None):
    """Three groups of bands are three tokens a patch; one group is one."""
    from olmoearth_pretrain.data.constants import Modality
    from olmoearth_pretrain.nn.flexi_vit import Encoder
    from olmoearth_pretrain.nn.tokenization import ModalityTokenization, TokenizationConfig

    bands = {"sentinel2_l2a": ModalityTokenization(band_groups=[Modality.SENTINEL2_L2A.band_order])}
    model = Encoder(
        **sized(size),
        min_patch_size=1,
        max_patch_size=8,
        drop_path=0.1,
        max_sequence_length=24,
        supported_modalities=[Modality.SENTINEL2_L2A],
        tokenization_config=TokenizationConfig(overrides=bands) if one_group else None,
        patch_embed_hidden_sizes=[hidden] if hidden else None,
    )
    return figure(model, lambda side: min(side, 4))


def galileo(size):
    from olmoearth_pretrain.evals.models.galileo.single_file_galileo import Encoder, GalileoWrapper

    made = Encoder(**sized(size))
    with patch.object(Encoder, "load_from_folder", lambda *_, **__: made):
        return figure(GalileoWrapper(None, use_pretrained_normalizer=False))


def terramind(size):
    from olmoearth_pretrain.evals.models.terramind.terramind import Terramind

    return figure(Terramind(size))


def satlas():
    from olmoearth_pretrain.evals.models.satlas.satlas import Satlas

    weights = {"base": {"sentinel2_l2a": "none"}}
    with patch.object(torch, "load", lambda *_, **__: None), patch.object(Satlas, "modality_size_to_weights", weights):
        return figure(Satlas("."))


def croma(size):
    from olmoearth_pretrain.evals.models.croma.croma import Croma

    empty = patch.object(torch, "load", lambda *_, **__: defaultdict(dict))
    with empty, patch.object(nn.Module, "load_state_dict", lambda *_, **__: None):
        return figure(Croma(size, "."))


def prithvi(width, depth, side):
    from olmoearth_pretrain.data.constants import Modality
    from olmoearth_pretrain.evals.models.prithviv2.prithviv2 import SENTINEL2_L2A_BAND_NAMES, PrithviMAE, PrithviV2

    model = PrithviV2.__new__(PrithviV2)
    nn.Module.__init__(model)
    sizes = {"embed_dim": width, "depth": depth, "num_heads": 16}
    model.model = PrithviMAE(224, [1, side, side], num_frames=1, in_chans=6, **sizes)
    model.image_resolution, model.patch_size, model.use_pretrained_normalizer = 224, side, True
    model.helios_s2_to_prithvi = [Modality.SENTINEL2_L2A.band_order.index(name) for name in SENTINEL2_L2A_BAND_NAMES]
    return figure(model)
