"""``python -m tests.fuzz TARGET [--seed N] [--seconds S]`` looks for trouble; ``--replay FILE`` tries one kept input again."""

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
    parser.add_argument("target", choices=sorted(known))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="inputs that were kept")
    parser.add_argument("--found", type=Path, default=FOUND, metavar="DIR", help="where inputs are kept")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where the cases' folders are")
    said = parser.parse_args(arguments)
    replayed = [(path, path.read_bytes()) for path in said.replay or ()]
    found_at = said.found.resolve()
    with tempfile.TemporaryDirectory(prefix="reconcile-fuzz-") as folder:
        bench = Bench(known[said.target], (said.work or Path(folder)).resolve())
        wrong = 0
        for path, data in replayed:
            found = bench.one(data)
            wrong += found is not None
            print(f"{path}: {found.where}\n  {found.why}" if found else f"{path}: nothing is wrong", flush=True)
        if not replayed:
            tried, findings = bench.fuzz(said.seed, said.seconds)
            wrong = len(findings)
            for finding in findings:
                print("FOUND", kept(finding, found_at), flush=True)
            print("TRIED", json.dumps({"target": said.target, "inputs": tried, "seed": said.seed, "found": wrong}), flush=True)
        sys.stdout.flush()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
