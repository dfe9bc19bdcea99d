"""PyTorch model files that run code as they are loaded.

``python -m tests.products.files.pytorch.attacks FOLDER NAME ...`` makes them all and loads these, or all if none is named.
Each would make the file or folder ``exploded``, and nothing else. Printed is a line of JSON: for each, what is said of it as a
confined process loads it, whether it exploded, and whether it does when it is trusted.
``FOREIGN`` lies beside them.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.products.files.hostile import Members, archive
from tests.products.files.loading import load
from tests.products.files.processes import found_by

MARK, FOREIGN = "exploded", "foreign.pt2"
CODE = f"x=__import__('pathlib').Path({MARK!r}).touch()"
"""Stands for the name of an argument."""
LEAF = {"type": None, "context": None, "children_spec": []}


class Tiny(torch.nn.Module):
    """A model that gives back a dictionary of two."""

    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.a(x)
        return {"y": y, "z": y + 1}


class Script(torch.nn.Module):
    """Multiplies twice, so that its code has a line to be changed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x


def members(path: Path) -> Members:
    """What is in an archive, below its folder."""
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def program(good: Members, change: Callable[[Any], None]) -> Members:
    """The same archive with its program changed."""
    found = json.loads(good["models/model.json"])
    change(found)
    return {**good, "models/model.json": json.dumps(found).encode()}


def named(found: Any) -> None:
    """The input's name is Python: fx writes it into the source of the graph's function."""
    text = json.dumps(found["graph_module"]).replace('"name": "x"', f'"name": {json.dumps(CODE)}')
    found["graph_module"] = json.loads(text.replace('"x": {"dtype"', f'{json.dumps(CODE)}: {{"dtype"'))


def tree(kind: str, context: Any) -> Callable[[Any], None]:
    """Results come back in another container."""

    def change(found: Any) -> None:
        spec = [1, {"type": kind, "context": context, "children_spec": [LEAF, LEAF]}]
        found["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json.dumps(spec)

    return change


def calls(target: str, **arguments: Any) -> Callable[[Any], None]:
    """The program calls one function more."""

    def change(found: Any) -> None:
        graph = found["graph_module"]["graph"]
        inputs = [
            {"name": n.partition("__")[0], "arg": {n.partition("__")[2]: a}, "kind": 1} for n, a in arguments.items()
        ]
        graph["nodes"].append(
            {
                "target": target,
                "inputs": inputs,
                "outputs": [{"as_tensor": {"name": "more"}}],
                "metadata": {"nn_module_stack": graph["nodes"][0]["metadata"]["nn_module_stack"].split(";")[0]},
                "name": "more",
                "is_hop_single_tensor_return": True,
            }
        )
        graph["tensor_values"]["more"] = graph["tensor_values"]["y" if "y" in graph["tensor_values"] else "x"]
        graph["outputs"][1] = {"as_tensor": {"name": "more"}}
        found["graph_module"]["signature"]["output_specs"][1]["user_output"]["arg"] = {"as_tensor": {"name": "more"}}

    return change


def programs(folder: Path) -> dict[str, bytes]:
    """Exported programs, by the names of their files."""
    saved = torch.export.export(Tiny().eval(), (torch.ones(2, 8),))
    torch.export.save(saved, folder / "good")
    good = members(folder / "good")
    factory = {"default_factory_module": "imported", "default_factory_name": "x", "dict_context": ["y", "z"]}
    enum = json.dumps([{"__enum__": 1, "fqn": "imported:x", "name": "y"}, "z"])
    filed = calls("torch.ops.aten.from_file.default", filename__as_string=MARK, shared__as_bool=True, size__as_int=16)
    return {
        "good.pt2": archive(good),
        "names.pt2": archive(program(good, named)),
        "factory.pt2": archive(program(good, tree("collections.defaultdict", factory))),
        "enum.pt2": archive(program(good, tree("builtins.dict", enum))),
        "filed.pt2": archive(program(good, filed)),
        FOREIGN: archive(program(good, tree("containers_of_mine.Output", "null"))),
    }


def scripts(folder: Path) -> dict[str, bytes]:
    """TorchScript, by the names of its files."""
    torch.jit.script(Script()).save(str(folder / "good"))
    good = members(folder / "good")
    line, code = b"torch.mul(x, x)", good["code/__torch__.py"]
    assert line in code
    filed = b'torch.from_file("%s", True, 16)' % MARK.encode()
    evil = code.replace(line, filed)
    return {"good.pt": archive(good), "filed.pt": archive({**good, "code/__torch__.py": evil})}


def exploded() -> bool:
    """Whether the mark is there; it is taken away."""
    mark = Path(MARK)
    there = mark.exists()
    if mark.is_dir():
        mark.rmdir()
    elif there:
        mark.unlink()
    sys.modules.pop("imported", None)
    return there


def main(folder: str, *wanted: str) -> None:
    """Make everything, and load what is wanted twice."""
    here = Path(folder)
    (here / "imported.py").write_text(f"open({MARK!r}, 'w').close()\nx = dict\n")
    sys.path.insert(0, folder)
    made = {**programs(here), **scripts(here)}
    for name, data in made.items():
        (here / name).write_bytes(data)
    names = [name for name in made if name != FOREIGN and (not wanted or name in wanted)]
    asked = {name: name + ("|2,8" if name.endswith(".pt") else "") for name in names}
    said, harmed = found_by("loading", Path.cwd(), "torch", *asked.values(), paths=[here.resolve()]), exploded()
    found = {}
    for name in names:
        load("torch", asked[name], trusted=True)
        found[name] = [said[asked[name]], harmed, exploded()]
    print("FOUND", json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
