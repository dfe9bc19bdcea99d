"""One step of a transformer of 12 layers: alone, in FlopCounterMode, and in reconcile.count. Prints processor seconds as JSON."""

from __future__ import annotations

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

import reconcile

LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, STEPS = 12, 64, 4, 1000, 2, 64
ROUNDS = 15


def model() -> nn.Module:
    """PyTorch's own encoder layers between an embedding and a head."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, batch_first=True)
    body = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), body, nn.Linear(WIDTH, VOCABULARY))


def main() -> None:
    torch.set_num_threads(1)
    net, ids = model(), torch.randint(0, VOCABULARY, (BATCH, STEPS))
    optimizer = torch.optim.AdamW(net.parameters())

    def bare() -> None:
        functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten()).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    def flop_counter() -> None:
        with FlopCounterMode(display=False):
            bare()

    def count() -> None:
        with reconcile.count(net):
            bare()

    seconds: dict[str, list[float]] = {"bare": [], "flop_counter": [], "count": []}
    for turn in range(ROUNDS + 1):
        for run in (bare, flop_counter, count):
            start = time.process_time()
            run()
            if turn:
                seconds[run.__name__].append(time.process_time() - start)
    json.dump(seconds, sys.stdout)


if __name__ == "__main__":
    main()
