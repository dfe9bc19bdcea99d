"""What of torch.nn and torch.nn.functional a model may use, each behind a parameter, so that its gradient is asked for.

name -> (what makes the layer, shapes of its inputs). ``tests/layers/torch_cases.py`` has more.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.layers import torch_cases
from tests.layers.torch_cases import Fn


class Behind(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, *given):
        return self.layer(*[x * self.scale if x.is_floating_point() else x for x in given])


def ids(x, *shape):
    return torch.zeros(shape, dtype=torch.long, device=x.device)


def mask(x):
    return torch.ones(x.shape, dtype=torch.bool, device=x.device)


class Unpooled(nn.Module):
    def forward(self, x):
        y, places = F.max_pool2d(x, 2, return_indices=True)
        return F.max_unpool2d(y, places, 2)


def spatial(axes):
    return ((2, 3, *[8] * axes),)


PAIR = ((2, 3), (2, 3))
LOSSES = "L1Loss MSELoss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss SoftMarginLoss"


def loss(name):
    def function(x, y):
        x = x.sigmoid() if name == "BCELoss" else x
        return getattr(nn, name)()(x, y.detach().sigmoid())

    return lambda: Fn(function)


LAYERS = {
    **{name: (lambda name=name: getattr(nn, name)(), ((2, 3, 4, 4),)) for name in ("RReLU", "Softmax2d")},
    **{name: (lambda name=name: getattr(nn, name)(0.5), ((2, 3, 4, 4),)) for name in ("Dropout", "Dropout2d")},
    **{name: (loss(name), PAIR) for name in LOSSES.split()},
    **{
        f"{name}{a}d": (lambda name=name, a=a, given=given: getattr(nn, f"{name}{a}d")(*given), spatial(a))
        for a in (1, 2, 3)
        for name, given in {
            "Conv": (3, 3, 3), "ConvTranspose": (3, 3, 3), "BatchNorm": (3,), "LPPool": (3, 2), "MaxPool": (3,),
            "AvgPool": (3,), "AdaptiveMaxPool": (3,), "AdaptiveAvgPool": (3,), "ReflectionPad": (1,),
            "ReplicationPad": (1,), "ZeroPad": (1,), "CircularPad": (1,),
        }.items()
    },
    "prelu of channels": (lambda: nn.PReLU(3), ((2, 3, 4),)),
    "threshold": (lambda: nn.Threshold(0.1, 0.2), ((2, 3),)),
    "softmin": (lambda: nn.Softmin(-1), ((2, 3),)),
    "bilinear": (lambda: nn.Bilinear(3, 4, 5), ((2, 3), (2, 4))),
    "fold": (lambda: nn.Fold((4, 5), 2), ((1, 12, 12),)),
    "unfold": (lambda: nn.Unfold(2), ((1, 3, 4, 5),)),
    "cosine similarity": (nn.CosineSimilarity, PAIR),
    "pairwise distance": (nn.PairwiseDistance, PAIR),
    "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), spatial(2)),
    "fractional pool": (lambda: nn.FractionalMaxPool2d(2, output_size=3), spatial(2)),
    "unpool": (Unpooled, spatial(2)),
    "pixel unshuffle": (lambda: nn.PixelUnshuffle(2), ((2, 4, 4, 4),)),
    "channel shuffle": (lambda: nn.ChannelShuffle(2), ((2, 4, 4, 4),)),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 2)), ((2, 3, 5),)),
    "spectral norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)), ((2, 3),)),
    "transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), ((2, 5, 8), (2, 4, 8))),
    "cross entropy": (lambda: Fn(lambda x: F.cross_entropy(x, ids(x, 2))), ((2, 3),)),
    "smoothed cross entropy": (lambda: Fn(lambda x: F.cross_entropy(x, ids(x, 2), label_smoothing=0.1)), ((2, 3),)),
    "cross entropy of an image": (lambda: Fn(lambda x: F.cross_entropy(x, ids(x, 2, 4, 4))), ((2, 3, 4, 4),)),
    "triplet": (lambda: Fn(lambda x, y: F.triplet_margin_loss(x, y, y * 2)), PAIR),
    **{
        f"interpolate {mode}": (lambda mode=mode: Fn(lambda x: F.interpolate(x, scale_factor=2, mode=mode)), (shape,))
        for mode, shape in {
            "nearest": (1, 2, 4), "nearest-exact": (1, 2, 4, 4), "linear": (1, 2, 4), "bilinear": (1, 2, 4, 4),
            "bicubic": (1, 2, 4, 4), "trilinear": (1, 2, 4, 4, 4), "area": (1, 2, 4, 4),
        }.items()
    },
    "affine grid": (lambda: Fn(lambda t: F.affine_grid(t, (1, 1, 3, 3), align_corners=False)), ((1, 2, 3),)),
    "grid sample": (lambda: Fn(lambda x, g: F.grid_sample(x, g, align_corners=False)), ((1, 2, 4, 4), (1, 3, 3, 2))),
    "distances": (lambda: Fn(torch.cdist), PAIR),
}  # fmt: skip
"""Layers and losses."""

SNIPPETS = {
    "cumsum": lambda x: x.cumsum(-1),
    "cumprod": lambda x: x.cumprod(-1),
    "index": lambda x: x[:, ids(x, 2)],
    "gather": lambda x: x.gather(1, ids(x, 2, 2)),
    "scatter": lambda x: (x * 0).scatter(1, ids(x, 2, 2), x[:, :2]),
    "scatter_add": lambda x: (x * 2).scatter_add(1, ids(x, 2, 2), x[:, :2]),
    "index_add": lambda x: x.index_add(0, ids(x, 2), x * 2),
    "index_select": lambda x: x.index_select(1, ids(x, 2)),
    "index_put": lambda x: (x * 1).index_put((ids(x, 1),), x[0]),
    "masked_fill": lambda x: x.masked_fill(mask(x), 0.0),
    "masked_scatter": lambda x: x.masked_scatter(mask(x), x * 2),
    "where": lambda x: torch.where(mask(x), x, x * 2),
    **{f"norm {p}": lambda x, p=p: x.norm(p=p, dim=-1) for p in (1, 2, 3, float("inf"))},
    "max": lambda x: x.max(),
    "max of rows": lambda x: x.max(-1).values,
    "min of rows": lambda x: x.min(-1).values,
    "amax": lambda x: x.amax(-1),
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(-1),
    "var_mean": lambda x: sum(torch.var_mean(x, -1)),
    "mean": lambda x: x.mean(-1),
    "prod": lambda x: x.prod(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "sort": lambda x: x.sort(-1).values,
    "topk": lambda x: x.topk(2).values,
    "unfold": lambda x: x.unfold(1, 2, 1),
    "repeat": lambda x: x.repeat(2, 2),
    "roll": lambda x: x.roll(1, 0),
    "tril": lambda x: x.tril(),
    "cat": lambda x: torch.cat([x, x]),
    "pow": lambda x: x**2.5 + x**2 + 2**x,
    "roots": lambda x: torch.sqrt(x) + torch.rsqrt(x) + torch.log(x) + torch.exp(x),
    "trigonometric": lambda x: torch.sin(x) + torch.tan(x) + torch.atan(x) + torch.erf(x),
    "clamp": lambda x: x.clamp(-1, 1) + torch.minimum(x, x * 2) + x.abs(),
    "addcdiv": lambda x: torch.addcdiv(x, x, x + 1) + torch.addcmul(x, x, x, value=2),
    "lerp": lambda x: torch.lerp(x, x * 2, 0.3),
    "logit": lambda x: torch.logit(x, 1e-3),
    "gumbel": lambda x: F.gumbel_softmax(x),
    "cross": lambda x: torch.linalg.cross(x[:, :3], x[:, 1:4]),
    "products": lambda x: torch.outer(x[0], x[1]) + torch.kron(x, x).sum() + torch.tensordot(x, x, ([0], [0])),
    "matrix and vector": lambda x: x @ x[0] + torch.addmv(x[:, 0], x, x[1]),
    "eigenvalues": lambda x: torch.linalg.eigvalsh(x[:, :2]),
    "fourier": lambda x: torch.fft.rfft(x).abs(),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "median": lambda x: x.median(-1).values,
}
"""Functions of a (2, 5) tensor."""

UNKNOWN = {
    "eigenvalues": "aten._linalg_eigh",
    "fourier": "aten._fft_r2c",
    "logcumsumexp": "aten.logcumsumexp",
}
"""Ops whose forward pass has no formula either: the trace is incomplete and names them."""


def cases():
    """name -> (what makes the module, shapes of its inputs)."""
    found = {name: (lambda make=make: Behind(make()), shapes) for name, (make, shapes) in LAYERS.items()}
    for name, function in SNIPPETS.items():
        found[name] = (lambda function=function: Behind(Fn(function)), ((2, 5),))
    for name, (make, shape, *dtype) in ((n, (m, *s[0])) for n, (m, *s) in torch_cases.CASES.items()):
        if not dtype and name not in ("cond", "cumsum"):  # one needs values, the other ends in integers
            found[f"layers: {name}"] = (lambda make=make: Behind(make()), (shape,))
    return found
