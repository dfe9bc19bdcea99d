"""``python -m tests.networks FRAMEWORK [--seed N] [--count C]``: the networks of C seeds, and what is wrong with them."""

from __future__ import annotations

import argparse
import collections
import sys
import time
import warnings

from .net import Wrong, check, draw


def main(arguments: list[str]) -> int:
    """Print a finding per network and what the counters said; 1 where there was a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.networks", description=__doc__)
    parser.add_argument("framework", choices=("torch", "tf", "jax"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    said = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    reasons: collections.Counter[str] = collections.Counter()
    wrong: collections.Counter[str] = collections.Counter()
    began, steps = time.perf_counter(), 0
    for seed in range(said.seed, said.seed + said.count):
        net = draw(said.framework, seed)
        steps += net.training
        try:
            reasons.update(check(net))
            if said.count == 1:
                print("nothing is wrong:", net.story)
        except Wrong as error:
            wrong[str(error).partition("\n")[0]] += 1
            print(f"FOUND seed {seed}: {error}\n", flush=True)
    for counts, title in ((reasons, "no number"), (wrong, "wrong")):
        for line, times in counts.most_common():
            print(f"{title}: {times:,} times: {line}")
    print(
        f"{said.count:,} networks in {said.framework}, {steps:,} of them in a training step: {wrong.total():,} findings, "
        f"{time.perf_counter() - began:.0f} s"
    )
    return int(wrong.total() > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
