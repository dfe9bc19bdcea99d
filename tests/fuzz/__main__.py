"""``python -m tests.fuzz TARGET [--seed N] [--seconds S]`` looks for trouble; ``--replay FILE`` tries kept inputs again.

A kept input begins with the name of its target, so that ``python -m tests.fuzz --replay FILE`` says enough.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
from pathlib import Path

from . import targets
from .harness import FOUND, Bench, kept


def main(arguments: list[str]) -> int:
    """Print a line per finding and one that counts; 1 where there was a finding."""
    known = targets.load()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="?", choices=sorted(known))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="inputs that were kept")
    parser.add_argument("--found", type=Path, default=FOUND, metavar="DIR", help="where inputs are kept")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where the cases' folders are")
    said = parser.parse_args(arguments)
    if not said.target and not said.replay:
        parser.error("name a target, or files with --replay")
    replayed = sorted((path.name.partition("-")[0], str(path), path.read_bytes()) for path in said.replay or ())
    found_at = said.found.resolve()
    with tempfile.TemporaryDirectory(prefix="reconcile-fuzz-") as folder:
        bench, wrong, ready = Bench((said.work or Path(folder)).resolve()), 0, ""
        for name, path, data in replayed:
            if (said.target or name) != ready:
                ready = said.target or name
                bench.take(known[ready])
            found = bench.one(data)
            wrong += found is not None
            print(f"{path}: {found.where}: {found.why}" if found else f"{path}: nothing is wrong", flush=True)
        if not replayed:
            bench.take(known[said.target])
            tried, findings = bench.fuzz(said.seed, said.seconds)
            wrong = len(findings)
            for finding in findings:
                print("FOUND", json.dumps(kept(finding, found_at)), flush=True)
            print("TRIED", json.dumps({"target": said.target, "inputs": tried, "seed": said.seed}), flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
