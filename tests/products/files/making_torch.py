"""Makes PyTorch model files, good and bad: ``python -m tests.products.files.making_torch FOLDER NETWORK ...``."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch

from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs
from tests.products.files.hostile import ZOO, Bomb


def zoo(folder: Path, name: str, settings: dict[str, str]) -> None:
    """A zoo model exported, traced for TorchScript, and for ONNX."""
    module = loading.load_pair(loading.pair_path(name))
    params = pairs.Params(loading.resolve(module, settings))
    model = module.build_torch(params).eval()
    inputs = tuple(torch.ones(i.shape, dtype=getattr(torch, i.dtype)) for i in module.inputs(params))
    torch.export.save(torch.export.export(model, inputs), folder / f"{name}.pt2")
    torch.jit.trace(model, inputs).save(str(folder / f"{name}.pt"))
    torch.save(model.state_dict(), folder / f"{name}.pth")
    torch.onnx.export(model, inputs, folder / f"{name}.onnx", dynamo=False, input_names=["x"])


class Wide(torch.nn.Module):
    """Several inputs and outputs, an open batch."""

    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.a(x)
        return y * mask, y.sum()


def changed(source: Path, path: Path, change: Callable[[str, bytes], bytes]) -> None:
    """The same archive, its members changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))


def bad(folder: Path, mark: Path) -> None:
    """Programs that mean harm, out of a good one."""
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = {"x": {0: batch}, "mask": {0: batch}}
    program = torch.export.export(Wide().eval(), (torch.ones(3, 8), torch.ones(3, 4)), dynamic_shapes=shapes)
    good = folder / "wide.pt2"
    torch.export.save(program, good)
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"

    def swap(part: str, old: str, new: str) -> Callable[[str, bytes], bytes]:
        def change(name: str, data: bytes) -> bytes:
            if part not in name:
                return data
            text = data.decode()
            assert old in text
            return text.replace(old, new).encode()

        return change

    changed(
        good,
        folder / "sizes.pt2",
        swap("models/", '"expr_str": "S', f'"expr_str": {json.dumps(code)}, "as_string": "S'),
    )
    changed(good, folder / "calls.pt2", swap("models/", "torch.ops.aten.linear.default", "torch.hub.load"))
    changed(good, folder / "weights.pt2", swap("weights_config", '"use_pickle": false', '"use_pickle": true'))
    bomb = pickle.dumps(Bomb(mark), protocol=2)
    changed(good, folder / "samples.pt2", lambda n, data: bomb if "sample_inputs" in n else data)
    changed(good, folder / "json.pt2", lambda n, data: b"{" if "models/" in n else data)
    data = good.read_bytes()
    (folder / "cut.pt2").write_bytes(data[: len(data) // 2])
    scripts(folder, mark, bomb)


def scripts(folder: Path, mark: Path, bomb: bytes) -> None:
    """TorchScript that means harm."""

    class Few(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor, most: int = 5) -> torch.Tensor:
            steps = 0
            while bool(x.sum() > -1e30) and steps < most:
                x = self.a(x)
                steps += 1
            return x

    class Saves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.save(x, "exploded")
            return x

    torch.jit.script(Few()).save(str(folder / "few.pt"))
    torch.jit.script(Saves()).save(str(folder / "saves.pt"))
    changed(folder / "few.pt", folder / "pickle.pt", lambda n, data: bomb if n.endswith("/data.pkl") else data)
    changed(folder / "few.pt", folder / "code.pt", lambda n, data: b"# no code" if n.endswith(".py") else data)
    torch.jit.script(Sized()).save(str(folder / "sized.pt"))


class Sized(torch.nn.Module):
    """Takes something that is no tensor."""

    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        return x * times


def main(folder: str, *names: str) -> None:
    """Make everything, of these networks."""
    here = Path(folder)
    for name in names:
        zoo(here, name, ZOO[name])
    bad(here, here / "exploded")


if __name__ == "__main__":
    main(*sys.argv[1:])
