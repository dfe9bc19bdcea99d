import torch
from torch import nn


class AAttn(nn.Module):
    """Area attention: 1x1 convolutions around two products of activations with each other, in each area by itself."""

    def __init__(self, width, heads, area):
        super().__init__()
        self.area, self.heads, self.size = area, heads, width // heads
        self.qkv = nn.Conv2d(width, 3 * width, 1, bias=False)
        self.pe = nn.Conv2d(width, width, 7, padding=3, groups=width, bias=False)
        self.proj = nn.Conv2d(width, width, 1, bias=False)

    def forward(self, x):
        batch, width, rows, columns = x.shape
        tokens = self.qkv(x).flatten(2).transpose(1, 2).reshape(batch * self.area, -1, 3 * width)
        heads = tokens.view(batch * self.area, -1, self.heads, 3 * self.size).permute(0, 2, 3, 1)
        q, k, v = heads.split(self.size, 2)
        scores = (q.transpose(-2, -1) @ k * self.size**-0.5).softmax(-1)
        out = v @ scores.transpose(-2, -1)

        def picture(part):
            return part.permute(0, 3, 1, 2).reshape(batch, rows, columns, width).permute(0, 3, 1, 2)

        return self.proj(picture(out) + self.pe(picture(v)))


class Attentions(nn.Module):
    """The attention of yolo12n at 640: four layers on 40 x 40 places in four areas, four on 20 x 20 in one."""

    def __init__(self):
        super().__init__()
        self.fine = nn.Sequential(*(AAttn(64, 2, 4) for _ in range(4)))
        self.coarse = nn.Sequential(*(AAttn(128, 4, 1) for _ in range(4)))

    def forward(self, fine, coarse):
        return self.fine(fine), self.coarse(coarse)


def make():
    return Attentions(), (torch.ones(1, 64, 40, 40), torch.ones(1, 128, 20, 20))
