"""Torch layers and snippets, one case each: (factory, (shape,) or (shape, dtype))."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Fn(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *a):
        return self.f(*a)


class MHA(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.m = nn.MultiheadAttention(8, 2, batch_first=True)
        self.w = w

    def forward(self, x):
        return self.m(x, x, x, need_weights=self.w)[0]


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        linear = nn.Linear(5, 5)
        self.a = nn.Sequential(linear)
        self.b = nn.Sequential(linear)

    def forward(self, x):
        return self.b(self.a(x))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5)

    def forward(self, x):
        return self.linear(self.linear(x)[:1])


class SubLin(nn.Linear):
    pass


class First(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, x):
        return self.m(x)[0]


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.GRU(4, 3)

    def forward(self, x):
        return self.m(nn.utils.rnn.pack_padded_sequence(x, [5, 3, 1]))[0].data


ACTIVATIONS = (
    "ReLU ReLU6 LeakyReLU GELU SiLU Sigmoid Tanh ELU SELU CELU Softplus Softsign Hardswish Hardsigmoid "
    "Hardtanh Mish PReLU LogSigmoid Tanhshrink Softshrink Hardshrink Identity Dropout"
)
CASES = {
    "conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), ((2, 4, 9, 7),)),
    "conv_nobias": (lambda: nn.Conv2d(4, 6, 3, bias=False, dilation=2), ((2, 4, 9, 7),)),
    "conv_same": (lambda: nn.Conv2d(4, 6, 3, padding="same"), ((2, 4, 9, 7),)),
    "conv_same_even": (lambda: nn.Conv2d(4, 6, 4, padding="same"), ((2, 4, 9, 7),)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3), ((2, 4, 9),)),
    "conv3d": (lambda: nn.Conv3d(4, 6, 3), ((2, 4, 5, 6, 7),)),
    "depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4), ((2, 4, 9, 7),)),
    "unbatched": (lambda: nn.Conv2d(4, 6, 3), ((4, 9, 7),)),
    "convT": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), ((2, 4, 5, 5),)),
    "convT_g": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), ((2, 4, 5, 5),)),
    "lin": (lambda: nn.Linear(5, 3), ((2, 5),)),
    "lin3": (lambda: nn.Linear(5, 3), ((2, 4, 5),)),
    "lin3nb": (lambda: nn.Linear(5, 3, bias=False), ((2, 4, 5),)),
    "lin1": (lambda: nn.Linear(5, 3), ((5,),)),
    "sublin": (lambda: nn.Sequential(SubLin(5, 3)), ((2, 5),)),
    "bn": (lambda: nn.BatchNorm2d(4), ((2, 4, 5, 5),)),
    "bn_na": (lambda: nn.BatchNorm2d(4, affine=False), ((2, 4, 5, 5),)),
    "bn1": (lambda: nn.BatchNorm1d(4), ((2, 4),)),
    "ln": (lambda: nn.LayerNorm(5), ((2, 3, 5),)),
    "ln_na": (lambda: nn.LayerNorm(5, elementwise_affine=False), ((2, 3, 5),)),
    "ln_nb": (lambda: nn.LayerNorm(5, bias=False), ((2, 3, 5),)),
    "ln_size": (lambda: Fn(lambda x: F.layer_norm(x, x.shape[-1:])), ((2, 3, 5),)),
    "gn": (lambda: nn.GroupNorm(2, 4), ((2, 4, 5, 5),)),
    "in": (lambda: nn.InstanceNorm2d(4), ((2, 4, 5, 5),)),
    "in_a": (lambda: nn.InstanceNorm2d(4, affine=True), ((2, 4, 5, 5),)),
    "rms": (lambda: nn.RMSNorm(5), ((2, 3, 5),)),
    "lrn": (lambda: nn.LocalResponseNorm(2), ((2, 4, 5, 5),)),
    **{a: (lambda a=a: getattr(nn, a)(), ((2, 5),)) for a in ACTIVATIONS.split()},
    "gelu_tanh": (lambda: nn.GELU("tanh"), ((2, 5),)),
    "softmax": (lambda: nn.Softmax(-1), ((2, 5),)),
    "softmax1": (lambda: nn.Softmax(1), ((2, 5, 3),)),
    "logsoftmax": (lambda: nn.LogSoftmax(-1), ((2, 5),)),
    "glu": (lambda: nn.GLU(), ((2, 6),)),
    "maxpool": (lambda: nn.MaxPool2d(3, 2, 1), ((2, 4, 9, 9),)),
    "maxpool1": (lambda: nn.MaxPool1d(3), ((2, 4, 9),)),
    "maxpool3": (lambda: nn.MaxPool3d(2), ((2, 4, 6, 6, 6),)),
    "avgpool": (lambda: nn.AvgPool2d(3, 2, 1), ((2, 4, 9, 9),)),
    "avgpool1": (lambda: nn.AvgPool1d(3), ((2, 4, 9),)),
    "avgpool3": (lambda: nn.AvgPool3d(2), ((2, 4, 6, 6, 6),)),
    "aap": (lambda: nn.AdaptiveAvgPool2d((3, 2)), ((2, 4, 9, 7),)),
    "aap1": (lambda: nn.AdaptiveAvgPool2d(1), ((2, 4, 9, 7),)),
    "aap1d": (lambda: nn.AdaptiveAvgPool1d(3), ((2, 4, 7),)),
    "amp": (lambda: nn.AdaptiveMaxPool2d(2), ((2, 4, 9, 7),)),
    "lppool": (lambda: nn.LPPool2d(2, 3), ((2, 4, 9, 7),)),
    "up": (lambda: nn.Upsample(scale_factor=2), ((2, 4, 5, 5),)),
    "upbi": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), ((2, 4, 5, 5),)),
    "upcu": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), ((2, 4, 5, 5),)),
    "uplin": (lambda: nn.Upsample(scale_factor=2, mode="linear"), ((2, 4, 5),)),
    "uptri": (lambda: nn.Upsample(scale_factor=2, mode="trilinear"), ((2, 4, 3, 3, 3),)),
    "pixshuf": (lambda: nn.PixelShuffle(2), ((2, 4, 5, 5),)),
    "zeropad": (lambda: nn.ZeroPad2d(1), ((2, 4, 5, 5),)),
    "reflpad": (lambda: nn.ReflectionPad2d(1), ((2, 4, 5, 5),)),
    "gru": (lambda: First(nn.GRU(4, 3, 2, bidirectional=True)), ((5, 2, 4),)),
    "gru_nb": (lambda: First(nn.GRU(4, 3, bias=False)), ((5, 2, 4),)),
    "gru_unb": (lambda: First(nn.GRU(4, 3)), ((5, 4),)),
    "lstm": (lambda: First(nn.LSTM(4, 3, 2, batch_first=True)), ((2, 5, 4),)),
    "lstmproj": (lambda: First(nn.LSTM(4, 3, proj_size=2)), ((5, 2, 4),)),
    "rnn": (lambda: First(nn.RNN(4, 3)), ((5, 2, 4),)),
    "rnnrelu": (lambda: First(nn.RNN(4, 3, nonlinearity="relu")), ((5, 2, 4),)),
    "packed": (lambda: Packed(), ((5, 3, 4),)),
    "grucell": (lambda: nn.GRUCell(4, 3), ((2, 4),)),
    "lstmcell": (lambda: First(nn.LSTMCell(4, 3)), ((2, 4),)),
    "rnncell": (lambda: nn.RNNCell(4, 3), ((2, 4),)),
    "emb": (lambda: nn.Embedding(10, 4), ((2, 3), "int64")),
    "embbag": (lambda: nn.EmbeddingBag(10, 4), ((2, 3), "int64")),
    "mha_w": (lambda: MHA(True), ((2, 5, 8),)),
    "mha": (lambda: MHA(False), ((2, 5, 8),)),
    "tel": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), ((2, 5, 8),)),
    "telN": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True), 2),
        ((2, 5, 8),),
    ),
    "shared": (Shared, ((2, 5),)),
    "twice": (Twice, ((2, 5),)),
    "matmul": (lambda: Fn(lambda x: x @ x.transpose(-1, -2)), ((2, 5, 3),)),
    "matmul_b": (lambda: Fn(lambda x: x[0] @ x.transpose(-1, -2)), ((2, 5, 3),)),
    "einsum": (lambda: Fn(lambda x: torch.einsum("bij,bkj->bik", x, x)), ((2, 5, 3),)),
    "einsum2": (lambda: Fn(lambda x: torch.einsum("bij,bjk,bkl->bil", x, x, x)), ((2, 3, 3),)),
    "einsum_one": (lambda: Fn(lambda x: torch.einsum("bid,bjd->bij", x[..., :1], x[..., :1])), ((2, 3, 3),)),
    "einsum_all": (lambda: Fn(lambda x: torch.einsum("bi,bj,bk->ijk", x, x, x)), ((4, 3),)),
    "sdpa": (lambda: Fn(lambda x: F.scaled_dot_product_attention(x, x, x)), ((2, 2, 5, 4),)),
    "sdpac": (lambda: Fn(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)), ((2, 2, 5, 4),)),
    "sdpam": (
        lambda: Fn(lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.zeros(5, 5, device=x.device))),
        ((2, 2, 5, 4),),
    ),
    "elem": (lambda: Fn(lambda x: ((x + 1) * x - x / 2).exp().sum(-1).mean()), ((2, 5),)),
    "elem2": (lambda: Fn(lambda x: (x**2 + x**0.5 + x**3).abs().sqrt().rsqrt().clamp(0, 1)), ((2, 5),)),
    "elem3": (
        lambda: Fn(lambda x: torch.where(x > 0, x, -x).max(-1).values + x.var(-1) + x.std(-1) + x.norm(dim=-1)),
        ((2, 5),),
    ),
    "addcmul": (lambda: Fn(lambda x: torch.addcmul(x, x, x) + torch.lerp(x, x, 0.5) + torch.addmm(x, x, x)), ((5, 5),)),
    "baddbmm": (lambda: Fn(lambda x: torch.baddbmm(x, x, x)), ((2, 5, 5),)),
    "mv": (lambda: Fn(lambda x: x @ x[0]), ((5, 5),)),
    "dot": (lambda: Fn(lambda x: torch.dot(x, x) + torch.outer(x, x).sum()), ((5,),)),
    "cumsum": (lambda: Fn(lambda x: x.cumsum(-1).argmax(-1)), ((2, 5),)),
    "sort": (lambda: Fn(lambda x: x.topk(2).values + x.sort()[0][:, :2]), ((2, 5),)),
    "bilinear": (lambda: Fn(lambda x: x), ((2, 5),)),
    "cos": (lambda: Fn(lambda x: F.cosine_similarity(x, x + 1)), ((2, 5),)),
    "normalize": (lambda: Fn(lambda x: F.normalize(x)), ((2, 5),)),
    "cond": (lambda: Fn(lambda x: x @ x.T if x.sum() > 1e9 else x + x), ((5, 5),)),
}
