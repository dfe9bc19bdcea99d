"""PyTorch models that do not fit into memory: counted on meta by themselves, or refused in one sentence; nothing is allocated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from reconcile.adapters.pytorch import memory_estimate
from reconcile.adapters.pytorch.module_tensors import parameter_bytes
from reconcile.adapters.shared.refusal import OutOfMemory
from reconcile.core.framework import adapter_of
from reconcile.core.registry import frameworks
from reconcile.model_zoo.pair import Input, Pair
from tests.own.conftest import Repository, repository  # noqa: F401

WIDTH = 1_000_000  # 4 TB of weights in one layer
BIG = f"""
    import torch
    from torch import nn

    def fits_nowhere():
        return nn.Linear({WIDTH}, {WIDTH}), torch.empty(1, {WIDTH}, device="meta")

    class Looks(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear({WIDTH}, {WIDTH})

        def forward(self, x):
            return self.part(x) if x.sum().item() > 0 else x

    def looks():
        return Looks(), torch.empty(1, {WIDTH}, device="meta")
"""


@pytest.mark.slow
@pytest.mark.usefixtures("warmed")
def test_it_is_counted_on_meta_where_it_does_not_fit(repository: Repository) -> None:  # noqa: F811
    repository.write(big=BIG)
    data = repository.report("big.fits_nowhere", "--torch", "big:fits_nowhere")
    products = WIDTH * WIDTH
    assert {x["counter"]: x["total"] for x in data["ledgers"]} == {
        "thop": products,
        "fvcore": products,
        "flop_counter": 2 * products,
    }
    note = memory_estimate.COUNTED_ON_META % ("weights", f"{4 * (products + WIDTH):,}")
    assert [(x["device"], x["notes"]) for x in data["ledgers"]] == [("meta", [note])] * 3
    assert data["traces"][0]["device"] == "meta"


@pytest.mark.slow
@pytest.mark.usefixtures("warmed")
def test_one_sentence_where_it_cannot_run_there(repository: Repository) -> None:  # noqa: F811
    repository.write(big=BIG)
    said = repository.refusal("--torch", "big:looks", "--counter", "flop_counter")
    assert said.startswith("the model big.looks does not fit into memory: it takes at least 3725.3 GiB and ")
    assert said.endswith(
        " of memory are free, and on meta, where nothing is allocated, it cannot run (RuntimeError: Tensor.item() cannot be "
        "called on meta tensors): mend that, or run it smaller."
    )


class Built(Pair):
    """A pair of one model, which this function builds, and on which devices it was made."""

    def __init__(self, build: Callable[[object], Any], size: int, made: list[str]) -> None:
        super().__init__("built")
        self.build_torch = build
        self.size = size
        self.made = made

    def inputs(self, p: object) -> list[Input]:
        return [Input("x", (1, self.size))]


def linear(size: int) -> Any:
    """A model of (size + 1) * size weights that says on which device it was made."""
    made: list[str] = []

    def build(_params: object) -> Any:
        module = torch.nn.Linear(size, size)
        made.append(module.weight.device.type)
        return module

    return Built(build, size, made)


def of(pair: Any, training: str = "") -> Any:
    from reconcile.adapters.pytorch.model import TorchModel

    model = TorchModel(pair, None, memory_need=memory_estimate.MemoryNeed())
    model.training = training
    return model


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> dict[str, int | None]:
    """What is free, to be set by the test."""
    held: dict[str, int | None] = {"bytes": None}
    monkeypatch.setattr(memory_estimate, "free_memory", lambda: held["bytes"])
    return held


@pytest.mark.parametrize(
    ("training", "copies", "kept"),
    [
        ("", 1, "weights"),
        ("sgd", 2, "weights and their gradients"),
        ("adam", 4, "weights, their gradients and Adam's two moments"),
    ],
)
def test_what_it_takes_is_its_weights_and_what_training_keeps(
    left: dict[str, int | None], training: str, copies: int, kept: str
) -> None:
    takes = copies * 4 * (50 * 50 + 50)
    for bytes_, device in ((takes, "cpu"), (takes - 1, "meta"), (None, "cpu")):
        left["bytes"] = bytes_
        pair = linear(50)
        model = of(pair, training)
        said = (memory_estimate.COUNTED_ON_META % (kept, f"{takes:,}"),) if device == "meta" else ()
        assert model.spare() == said
        assert model.device == device
        assert pair.made == [], "it is weighed in a process of its own"
        if device == "meta":
            with pytest.raises(OutOfMemory, match="takes at least"):
                model.build("cpu")
            assert pair.made == []


def test_it_is_weighed_without_first_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its random numbers, which change no size, would import PyTorch's compiler into the process that weighs."""
    from reconcile.adapters.pytorch.memory_guard import SkipInitOnMeta

    def made() -> Any:
        with torch.device("meta"):
            return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Embedding(7, 3))

    filled: list[str] = []
    fill = torch.nn.init._no_grad_normal_
    monkeypatch.setattr(
        torch.nn.init, "_no_grad_normal_", lambda t, *rest: filled.append(str(t.device)) or fill(t, *rest)
    )
    with SkipInitOnMeta():
        bare = made()
        torch.nn.init.normal_(torch.empty(2, device="cpu"))
    assert filled == ["cpu"]
    assert parameter_bytes(bare) == parameter_bytes(made()) == 4 * (3 * 5 + 5 + 7 * 3)
    assert filled == ["cpu", "meta"]


def test_tied_weights_take_their_room_once() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    module.append(module[0])
    # weight, bias; scale, shift, mean, variance, and the number of batches as int64
    assert parameter_bytes(module) == 4 * (16 + 4 + 4 * 4) + 8


def test_what_cannot_be_made_on_meta_is_watched(left: dict[str, int | None]) -> None:
    from reconcile.adapters.pytorch.trace import trace

    def build(_params: object) -> Any:
        scale = torch.ones(1).numpy()  # no values on meta
        return torch.nn.Linear(3000, 3000, bias=bool(scale))

    pair = linear(3000)
    pair.build_torch = build
    left["bytes"] = 4 * 3000 * 3000 + (1 << 28)
    assert trace(of(pair)).device == "cpu"
    left["bytes"] = 4 * 3000 * 3000 + (1 << 28) - 1
    with pytest.raises(OutOfMemory, match=r"it asks for 0\.0 GiB more .* cannot be made on meta.*TypeError"):
        trace(of(pair))


class Looked(torch.nn.Module):
    """Made of tensors of known values, as a detection head's strides and an attention's random features are."""

    def __init__(self) -> None:
        super().__init__()
        parts = [torch.zeros(3), torch.ones(2)]
        assert torch.cat(parts).tolist() == [0, 0, 0, 1, 1]
        assert torch.stack([torch.tensor(1e6), torch.tensor(1e6)]).numpy().tolist() == [1e6, 1e6]  # no values on meta
        assert torch.zeros(1).new_zeros([2, 3]).shape == (2, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit.trace itself
            self.part = torch.jit.trace(torch.nn.Conv1d(3, 4, 3), torch.zeros(2, 3, 8))

    def forward(self, x: Any) -> Any:
        return self.part(x)


def test_what_is_watched_is_made_as_elsewhere() -> None:
    from reconcile.adapters.pytorch.trace import trace

    pair = Pair("looked")
    pair.build_torch = lambda _params: Looked()
    pair.inputs = lambda _params: [Input("x", (2, 3, 8))]
    taken = trace(of(pair))
    assert taken.device == "cpu"
    assert [op.op for op in taken.ops if "convolution" in op.op] == ["aten._convolution"]  # as TorchScript calls it


@pytest.mark.parametrize(
    ("make", "takes"),
    [
        (lambda parts: torch.zeros(3).new_zeros([5000, 1000], dtype=torch.float64), 8 * 5000 * 1000),
        (lambda parts: torch.cat(parts), 2 * 4 * 3_000_000),
        (lambda parts: torch.stack(parts), 2 * 4 * 3_000_000),
    ],
)
def test_what_is_asked_for_is_by_sizes_or_by_what_goes_in(left: dict[str, int | None], make: Any, takes: int) -> None:
    from reconcile.adapters.pytorch.memory_guard import RESERVE, MemoryGuard

    parts = [torch.zeros(3_000_000), torch.zeros(3_000_000)]
    with MemoryGuard("it looks"):
        left["bytes"] = RESERVE + takes
        make(parts)
        left["bytes"] = RESERVE + takes - 1
        with pytest.raises(OutOfMemory, match="it asks for"):
            make(parts)


def test_the_least_of_what_system_group_and_limit_leave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outer, inner = tmp_path / "memory", tmp_path / "memory" / "job"
    inner.mkdir(parents=True)
    files = {
        outer / "memory.limit_in_bytes": "9000",
        outer / "memory.usage_in_bytes": "2000",
        inner / "memory.limit_in_bytes": "5000",
        inner / "memory.usage_in_bytes": "3000",
        inner / "memory.stat": "active_file 77\ninactive_file 500\n",
        tmp_path / "memory.max": "max\n",
        tmp_path / "memory.current": "1",
    }
    for path, text in files.items():
        path.write_text(text)
    texts = {
        "/proc/meminfo": ["MemTotal: 90 kB\n", "MemAvailable: 4 kB\n"],
        "/proc/self/cgroup": ["5:memory:/job\n", "3:cpu:/job\n", "0::/\n"],
    }
    real = memory_estimate._lines
    monkeypatch.setattr(memory_estimate, "GROUPS", str(tmp_path))
    monkeypatch.setattr(memory_estimate, "_lines", lambda path: texts.get(path) or real(path))
    assert memory_estimate._of_system() == 4096
    assert memory_estimate._of_group() == 5000 - 3000 + 500
    assert memory_estimate.free_memory() == 2500
    (inner / "memory.limit_in_bytes").write_text("100")
    assert memory_estimate.free_memory() == 0
    monkeypatch.setattr(memory_estimate, "_lines", lambda _path: [])
    assert memory_estimate.free_memory() is None


def test_a_copy_for_meta_copies_no_weights() -> None:
    copied = adapter_of(frameworks()["torch"]).copy
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    module.append(module[0])
    module[1].bias.requires_grad_(False)
    with torch.device("meta"):
        twin = copied(module)
    assert {t.device.type for t in (*twin.parameters(), *twin.buffers())} == {"meta"}
    assert twin[2] is twin[0]
    assert [p.requires_grad for p in twin.parameters()] == [p.requires_grad for p in module.parameters()]
    assert {t.device.type for t in (*module.parameters(), *copied(module).parameters())} == {"cpu"}
