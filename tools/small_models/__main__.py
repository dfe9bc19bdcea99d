"""``python -m tools.small_models LIBRARY --found FILE``: search every class of a library, then write its table.

Each class is searched in a child of this process, within time and memory, and what was found is appended to FILE, so that the
same command goes on where it was interrupted. To search a class again, remove its line from FILE.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import resource
import select
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from reconcile.adapters.pytorch import torchvision
from reconcile.products.sweep import small_models
from reconcile.products.sweep.small_models import diffusers, table, transformers
from reconcile.products.sweep.small_models.table import Row
from reconcile.products.sweep.small_models.transformers import quiet

from . import search, search_diffusers

LISTS = {"transformers": transformers, "diffusers": diffusers}
SEARCHES = {"transformers": search.Search, "diffusers": search_diffusers.Search}
FIRST = {"transformers": "BertForMaskedLM", "diffusers": "UNet2DConditionModel"}
"""A class that is imported before all others, so that no child imports again what all of them need."""
MEMORY = 9 << 30
"""Bytes that a child may hold, so that it ends no other process."""


def search_class(library: str, name: str) -> dict[str, Any]:
    """The line of a class in the table, or why there is none. Whoever reads the line gets a model that takes the inputs."""
    try:
        one = SEARCHES[library](getattr(importlib.import_module(library), name))
        with quiet():
            row = one.run()
        read = Row(**json.loads(json.dumps(dataclasses.asdict(row))))
        model = one.factory.build(one.factory.configure(read, {})).eval()
        inputs = {key: table.make_input(value) for key, value in read.inputs.items()}
        error = search.call(model, inputs)
        if error is not None:
            raise error
    except Exception as error:
        return {"class": name, "why": f"{type(error).__name__}: {error}"}
    return {"class": name, **dataclasses.asdict(read)}


def in_child(library: str, name: str, seconds: float) -> dict[str, Any]:
    """As ``search_class``, in a child that may take so long."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            with open(write, "w", encoding="utf-8") as file:
                file.write(json.dumps(search_class(library, name)))
        finally:
            os._exit(0)
    os.close(write)
    answer, end = b"", time.monotonic() + seconds
    with open(read, "rb", buffering=0) as file:
        while select.select([file], [], [], max(0, end - time.monotonic()))[0]:
            part = file.read(1 << 16)
            if not part:
                break
            answer += part
        else:
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if status == 0 and answer:
        return dict(json.loads(answer))
    return {
        "class": name,
        "why": f"its process ended with {os.waitstatus_to_exitcode(status)}, after at most {seconds:g} s",
    }


def format_table(library: str, release: str, found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The lines of a table."""
    yield json.dumps({"library": library, "release": release})
    for line in sorted(found, key=lambda line: str(line["class"])):
        if "why" not in line:
            yield json.dumps(line)


def main() -> None:
    """Search what FILE does not have, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.small_models", description=__doc__)
    parser.add_argument("library", choices=sorted(LISTS))
    parser.add_argument("--found", type=Path, required=True, metavar="FILE")
    parser.add_argument("--seconds", type=float, default=300, help="how long one class may take (default: 300)")
    parser.add_argument("--only", nargs="+", metavar="CLASS", help="search these, and write no table")
    asked = parser.parse_args()
    asked.found.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torchvision.watch()
    module = importlib.import_module(asked.library)
    logs = getattr(module, "logging", None) or module.utils.logging
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    search_class(asked.library, FIRST[asked.library])
    names = asked.only or LISTS[asked.library].names()
    lines = [json.loads(line) for line in asked.found.read_text().splitlines()] if asked.found.exists() else []
    for name in [name for name in names if name not in {line["class"] for line in lines}]:
        lines.append(in_child(asked.library, name, asked.seconds))
        with asked.found.open("a", encoding="utf-8") as file:
            file.write(json.dumps(lines[-1]) + "\n")
        print(name, lines[-1].get("why", "found"), flush=True)
    if not asked.only:
        path = Path(small_models.__file__).parent / f"{asked.library}.jsonl"
        path.write_text("".join(f"{line}\n" for line in format_table(asked.library, module.__version__, lines)))


if __name__ == "__main__":
    main()
