"""PyTorch model files that are unusual and mean no harm.

``python -m tests.products.files.pytorch.honest FOLDER`` makes and loads them.
Printed is a line of JSON: what each one's work is, in multiply-adds, or the sentence that refuses it.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from tests.products.files.loading import flops, load


class Point(NamedTuple):
    """What a scripted function gives back."""

    x: torch.Tensor
    y: torch.Tensor


class Named(nn.Module):
    """Modules and parameters whose names are no identifiers, tied weights, a dictionary of results."""

    def __init__(self) -> None:
        super().__init__()
        self.add_module("größe-1 a", nn.Linear(8, 8))
        self.heads = nn.ModuleDict({"3x3": nn.Linear(8, 4), "klass": nn.Linear(8, 4, bias=False)})
        self.heads["klass"].weight = self.heads["3x3"].weight
        self.register_parameter("ölung", nn.Parameter(torch.ones(8)))

    def forward(self, inputs: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        y = getattr(self, "größe-1 a")(inputs) * self.ölung
        return {"loss/total": (self.heads["3x3"](y) - target).abs().sum(), "out": self.heads["klass"](y)}


class Open(nn.Module):
    """Open sizes with arithmetic in them, text that an operator reads."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> torch.Tensor:
        half = x.shape[0] // 2 + 1
        y = torch.einsum("bi, oi -> bo", x[:half], self.a.weight)
        y = torch.where(mask.sum() > 0, y * 2, y + 1)
        with torch.no_grad():
            y = torch.div(y, 2.0, rounding_mode="floor")
        return torch.cat([y, y], 1).reshape(y.shape[0], -1)


class Layers(nn.Module):
    """Layers one after the other, with numbers for names, normed and recurrent; a list of 40 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU6(inplace=True), nn.Flatten())
        self.gru = nn.GRU(4, 5, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(10, eps=1e-12)
        self.many = nn.ParameterList([nn.Parameter(torch.ones(())) for _ in range(40)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.gru(self.net(x).reshape(x.shape[0], 27, 4))
        for weight in self.many:
            y = y * weight
        return self.norm(nn.functional.gelu(y))


class Control(nn.Module):
    """What TorchScript's language has: loops, branches, lists, dictionaries, texts, tuples, options, a method more."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 0.5
        self.a = nn.Linear(8, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Identity()])
        self.table = {"a": 1, 'it\'s "b"\n': 2}

    @torch.jit.export
    def more(self, x: torch.Tensor, start: int = 0) -> Point:
        return Point(x=x + start, y=x * self.scale)

    def forward(self, x: torch.Tensor, most: int | None = None, weights: list[float] | None = None) -> torch.Tensor:
        if most is None:
            most = 2
        assert x.dim() == 2, f"of {x.dim()} dimensions"
        found: list[torch.Tensor] = []
        kept: dict[str, torch.Tensor] = {}
        for i in range(most):
            x = self.a(x)
            found.append(x)
            kept[f"step {i}"] = x
        for layer in self.layers:
            x = layer(x)
        if weights is not None and len(weights) > 1:
            x = x * weights[0]
        if float(x.sum()) == float("inf") or x.dtype != torch.float32:
            raise ValueError("too large")
        point = self.more(torch.stack(found).mean(0), self.table["a"])
        with torch.no_grad():
            x = torch.dropout(x, 0.1, self.training).to(dtype=torch.float64, device=x.device).float()
        return (point.x + point.y)[:, :4].contiguous() if "step 0" in kept else x


def zipped_again(source: Path, path: Path) -> Path:
    """The same members, packed by Python."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return path


def make(folder: Path) -> dict[str, str]:
    """Write the files; what each is called with."""
    x, image = torch.ones(6, 8), torch.ones(2, 3, 5, 11)
    half = torch.export.Dim("half", min=2, max=32)
    save, export = torch.export.save, torch.export.export
    save(export(Named().eval(), (x, torch.ones(6, 4))), folder / "named.pt2", extra_files={"a note.txt": "kept"})
    shapes = {"x": {0: 2 * half}, "mask": None}
    save(export(Open().eval(), (x,), {"mask": torch.ones(3)}, dynamic_shapes=shapes), folder / "open.pt2")
    save(export(Layers().eval(), (image,)), folder / "layers.pt2")
    torch.jit.script(Control().eval()).save(str(folder / "control.pt"), _extra_files={"a note.txt": "kept"})
    torch.jit.trace(Layers().eval(), image).save(str(folder / "traced.pt"))
    torch.jit.script(Layers().eval()).save(str(folder / "layers.pt"))
    torch.jit.script(Layers().eval())._save_for_lite_interpreter(str(folder / "lite.pt"))
    zipped_again(folder / "layers.pt2", folder / "again.pt2")
    return {
        "named.pt2": "", "open.pt2": "|x=6,8 mask=3", "layers.pt2": "", "again.pt2": "", "control.pt": "|6,8",
        "traced.pt": "|2,3,5,11", "layers.pt": "|2,3,5,11", "lite.pt": "|2,3,5,11",
    }  # fmt: skip


def main(folder: str) -> None:
    """Make everything, and load it."""
    found = {}
    for name, given in make(Path(folder)).items():
        made = load("torch", name + given)
        found[name] = made if isinstance(made, str) else flops(made) // 2
    print("FOUND", json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
