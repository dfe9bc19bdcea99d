"""A training run by itself, and with the counts of reconcile's callbacks: seconds as JSON, by what was measured.

Processor seconds of one thread: what is looked for is a thousandth, and the clock on the wall shows who else works here.
"""

import json
import sys
import time
from statistics import median

import torch

from reconcile.products.steps.pytorch.calls import Calls
from reconcile.products.steps.training_run import TrainingRun

LAYERS, WIDTH, ROWS, TOKENS = 12, 512, 4, 128
STEPS = 4


def main() -> None:
    torch.set_num_threads(1)
    layers = [torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True) for _ in range(LAYERS)]
    net = torch.nn.Sequential(*layers)
    optimizer, batch = torch.optim.AdamW(net.parameters()), torch.randn(ROWS, TOKENS, WIDTH)

    def step() -> None:
        net(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    spent = 0.0
    inside = 0

    def timed(owner: type, name: str) -> None:
        """Add up what the outermost of our functions take."""
        function = getattr(owner, name)

        def measured(*args: object, **kwargs: object) -> object:
            nonlocal spent, inside
            start, inside = time.process_time(), inside + 1
            try:
                return function(*args, **kwargs)
            finally:
                inside -= 1
                spent += 0.0 if inside else time.process_time() - start

        setattr(owner, name, measured)

    for owner, name in (
        (TrainingRun, "begin"),
        (TrainingRun, "end"),
        *((Calls, f"_{n}") for n in ("before", "stepping", "done")),
    ):
        timed(owner, name)
    step()  # makes the optimizer's state, and warms
    running = TrainingRun()
    running.attach(net)
    found: dict[str, list[float]] = {"bare": [], "recorded": [], "ours": []}
    for _ in range(STEPS + 1):
        start = time.process_time()
        step()
        found["bare"].append(time.process_time() - start)
        start, spent = time.process_time(), 0.0
        running.begin()
        step()
        running.end()
        if running.last is not None and len(found["recorded"]) < 2:
            found["recorded"].append(time.process_time() - start)
        else:
            found["ours"].append(spent)
    assert running.flops, running.withheld
    sys.stdout.write(json.dumps({name: median(values) for name, values in found.items()}) + "\n")


if __name__ == "__main__":
    main()
