"""Ways to run a PyTorch model that compile it, or make a graph of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from tests.adapters.pytorch.way_parts import BATCH, LINEAR, NARROW, WIDE, Net, Way, into, x

WAYS: dict[str, Way] = {}
way = partial(into, WAYS)


@way("a plain module", 2 * LINEAR)
def plain() -> Any:
    return Net(), x()


# Compiled.


@way("torch.compile(module)", 2 * LINEAR)
def compiled_module() -> Any:
    return torch.compile(Net(), backend="eager"), x()


@way("module.compile()", 2 * LINEAR)
def compiled_in_place() -> Any:
    net = Net()
    net.compile(backend="eager")
    return net, x()


@way("a compiled module inside", 3 * LINEAR)
def compiled_inside() -> Any:
    return nn.Sequential(torch.compile(Net(), backend="eager"), nn.Linear(WIDE, NARROW)), x()


@way("a function compiled inside forward", LINEAR)
def compiled_function() -> Any:
    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WIDE, NARROW))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.compile(lambda a, b: torch.relu(a @ b), backend="eager")(x, self.weight)

    return Calls(), x()


class Decorated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDE, NARROW)

    @torch.compile(fullgraph=True, backend="eager")
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(x)


@way("forward decorated with torch.compile", LINEAR)
def decorated() -> Any:
    return Decorated(), x()


class Helped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDE, NARROW)

    @torch.compile(backend="eager")
    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.up(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.helper(x)


@way("a method decorated with torch.compile", LINEAR)
def helped() -> Any:
    return Helped(), x()


# Graphs.


@way("torch.jit.script(module)", 2 * LINEAR)
def scripted() -> Any:
    return torch.jit.script(Net()), x()


@way("torch.jit.trace(module)", 2 * LINEAR)
def traced() -> Any:
    return torch.jit.trace(Net(), torch.ones(BATCH, WIDE, device="cpu")), x()


@way("a ScriptModule inside", 3 * LINEAR)
def scripted_inside() -> Any:
    return nn.Sequential(torch.jit.script(Net()), nn.Linear(WIDE, NARROW)), x()


@way("an ExportedProgram", 2 * LINEAR)
def exported() -> Any:
    return torch.export.export(Net(), (x(),)), x()


@way("an ExportedProgram's module()", 2 * LINEAR)
def exported_module() -> Any:
    return torch.export.export(Net(), (x(),)).module(), x()


@way("a torch.fx GraphModule", 2 * LINEAR)
def fx_graph() -> Any:
    return torch.fx.symbolic_trace(Net()), x()
