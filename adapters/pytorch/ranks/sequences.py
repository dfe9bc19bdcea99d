"""Context parallelism: ranks that share the tokens of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import distributed

PLACES = ("torch.distributed.tensor.experimental", "torch.distributed.tensor.experimental._attention")


def put(replace: Callable[[Any, str, Callable[[Any], Any]], None], asking: Callable[[], Any]) -> None:
    """Let each use of ``context_parallel`` tell its line of ranks."""

    def followed(held: Any) -> Any:
        def called(mesh: Any, *args: Any, **kwargs: Any) -> Any:
            line = distributed.get_process_group_ranks(mesh.get_group())
            if line not in asking().sequences:
                asking().sequences.append(line)
            return held(mesh, *args, **kwargs)

        return called

    for name in PLACES:
        try:
            replace(import_module(name), "context_parallel", followed)
        except ImportError:
            continue
