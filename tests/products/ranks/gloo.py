"""One of the processes of a real world: it runs a step on gloo and writes the products that it recorded.

python gloo.py NAME RANK WORLD STORE OUT
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

import reconcile


def products(trace: Any) -> list[list[Any]]:
    """Layer, phase, op and shapes of each product, in order."""
    return [
        [
            re.sub(r"^Decoder(#\d+)?\.", "", row.layer),
            row.phase,
            row.op,
            [t.shape for t in row.inputs],
            [t.shape for t in row.outputs],
            row.calls,
        ]
        for row in trace.rows
        if row.work.mac
    ]


def main(name: str, rank: int, world: int, store: str, out: str) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    module, _, function = name.partition(":")
    made = getattr(import_module(module), function)()
    if isinstance(made, tuple):
        model, x = made
        inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        optimizer = torch.optim.SGD(model.parameters(), foreach=False)
        with reconcile.count(inner) as step:
            torch.square(model(x)).mean().backward()
            optimizer.step()
    else:
        made()  # stages of a pipeline learn each other's shapes in their first step
        with reconcile.count() as step:
            made()
    Path(out).write_text(json.dumps(products(step.result.traces[0])))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
