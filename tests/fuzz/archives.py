"""Archives: a kind or one sentence for any of them, and for PyTorch's, what was checked is what is loaded.

In what PyTorch is handed, its own reader has to find the members that Python's zipfile finds, of the same content, and nowhere
what the checks refuse: each archive holds, or hides, a member with a mark in it that is forbidden in the JSON of a program.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from . import mutate, zips
from .handed import CANNOT_BE_READ, handed, members_of, patched
from .harness import Target, Wrong, drawn

MARK = b"forbidden_by_every_check"


def _ready_torch() -> None:
    import torch
    import torch.export

    from reconcile.products.files.pytorch import load as load_torch  # noqa: F401

    torch.set_num_threads(1)


@cache
def _torch() -> dict[str, dict[str, bytes]]:
    """The members of a small program of each kind, without the places of the source that they were made of."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 2)).eval()
    exported, script = io.BytesIO(), io.BytesIO()
    torch.export.save(torch.export.export(model, (torch.ones(1, 3),)), exported)
    torch.jit.save(torch.jit.script(model), script)
    members = members_of(exported.getvalue())
    program = next(name for name in members if name.endswith("models/model.json"))
    members[program] = re.sub(rb'"stack_trace": "(\\.|[^"\\])*"', b'"stack_trace": ""', members[program])
    sources = {name: data for name, data in members_of(script.getvalue()).items() if not name.endswith(".debug_pkl")}
    return {"exported": members, "script": sources}


def _forbidden(members: dict[str, bytes]) -> dict[str, bytes]:
    """Members that the checks refuse, by the name under which they would be loaded, each with the mark."""
    found = {}
    for name, data in members.items():
        if name.endswith("models/model.json"):
            found[name] = data.replace(b"torch.ops.aten.linear.default", b"torch.hub." + MARK)
        elif name.endswith("_config.json"):
            entry = {"path_name": "custom_obj_0", "use_pickle": True, "is_param": False, "tensor_meta": None}
            found[name] = json.dumps({"config": {MARK.decode(): entry}}).encode()
        elif "/code/" in name and name.endswith(".py"):
            found[name] = b"def f(self):\n  return ops." + MARK + b".run()\n"
    root = next(iter(members)).partition("/")[0]
    if any("/code/" in name for name in members):
        found[f"{root}/code/__torch__.py"] = b"def f(self):\n  return ops." + MARK + b".run()\n"
    else:
        found[f"{root}/models/other.json"] = found[f"{root}/models/model.json"]
    assert [name for name, data in found.items() if MARK not in data] == []
    return found


PROGRAM = (
    "torch.hub.load", "torch.ops.aten.from_file.default", "torch.ops.aten.linear.default", "__import__('os').mkdir('escaped')",
    "expr_str", "target", "inputs", "math.floor", "torch.ops.higher_order.cond", "_operator.add", "Symbol('s0')", "use_pickle",
)  # fmt: skip


def _torch_archives() -> st.SearchStrategy[bytes]:
    _torch()  # torch.export takes seconds and starts things: before the first case
    return drawn(torch_archive)


def torch_archive(rng: Random) -> bytes:
    """A .pt2 or TorchScript archive with a forbidden member in it, or with bytes of it changed."""
    members = _torch()[rng.choice(("exported", "script"))]
    if rng.random() < 0.15:
        names = [name for name in members if name.endswith((".json", ".py"))]
        name = rng.choice(names)
        made = dict(members)
        if name.endswith(".json"):
            made[name] = mutate.tree(rng, json.loads(members[name]), PROGRAM).encode("utf-8", "surrogatepass")
        else:
            made[name] = mutate.blob(rng, members[name], (b"ops.aten.from_file(", b"__setstate__", b"\0", b"(" * 300))
        return zips.archive(zips.entries_of(made, rng))
    data = zips.mutated(rng, members, _forbidden(members))
    return mutate.blob(rng, data, (b"PK\x05\x06", b"PK\x06\x07", b"\xff\xff\xff\xff")) if rng.random() < 0.2 else data


def check_torch(data: bytes, folder: Path) -> None:
    """Raises Wrong where PyTorch would read what the checks have not."""
    from reconcile.products.files.pytorch import load as load_torch

    path = folder / "net.pt2"
    path.write_bytes(data)
    with patched("torch.export.load", "torch.jit.load"):
        found = handed("torch", path, lambda file: load_torch.load(file, None))
    if found is not None:
        same(found)


def same(data: bytes) -> None:
    """Raises Wrong where PyTorch's reader and Python's do not find the same in an archive, or the mark is in it."""
    import torch

    try:
        reader = torch._C.PyTorchFileReader(io.BytesIO(data))
        names = reader.get_all_records()
    except RuntimeError:
        return  # PyTorch will say so, too
    except UnicodeDecodeError as error:
        raise Wrong("PyTorch reads what the checks cannot have read") from error
    seen = {}
    for name in names:
        with contextlib.suppress(RuntimeError):  # a member that PyTorch cannot read either
            seen[name] = bytes(reader.get_record(name))
    if any(MARK in held for name, held in seen.items() if name.endswith(".json")):
        raise Wrong("PyTorch reads a member that is forbidden")
    try:
        ours = {name.partition("/")[2]: held for name, held in members_of(data).items()}
    except CANNOT_BE_READ as error:
        raise Wrong("PyTorch reads what the checks cannot have read") from error
    if set(ours) != set(names) or len(ours) != len(names):
        raise Wrong("PyTorch finds other members than were checked")
    if any(ours[name] != held for name, held in seen.items()):
        raise Wrong("PyTorch reads other bytes than were checked")


NAMES = mutate.words(
    "archive/data.pkl archive/constants.pkl archive/code/a.py archive/models/m.json config.json metadata.json saved_model.pb"
)


def any_archive(rng: Random) -> bytes:
    """A zip archive of names that mean something to some kind of model."""
    members = {name: rng.choice((b"{}", b"", b"x" * 40)) for name in NAMES if rng.random() < 0.5} or {"a": b""}
    data = zips.mutated(rng, members, {rng.choice(NAMES): MARK})
    return mutate.blob(rng, data, (b"PK\x05\x06", b"PK\x06\x06", b"\xff\xff\xff\xff")) if rng.random() < 0.7 else data


def check_any(data: bytes, folder: Path) -> None:
    """Whatever it is: a kind, or one sentence."""
    from reconcile.core.errors import UsageError
    from reconcile.products.files import kinds

    path = folder / "net.zip"
    path.write_bytes(data)
    for framework in ("torch", "tf", "onnx"):
        try:
            assert kinds.read_model_file(framework, str(path)).kind in kinds.KINDS
        except UsageError as error:
            if "\n" in str(error):
                raise Wrong("its sentence has several lines") from error


TARGETS = (
    Target("archives", lambda: drawn(any_archive), check_any),
    Target("torch", _torch_archives, check_torch, _ready_torch, needs="torch"),
)
