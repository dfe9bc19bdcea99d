"""What a table says of an input, so that its reader makes the same one (reconcile/products/sweep/small_models/table.py)."""

from __future__ import annotations

from typing import Any

import torch


def describe_input(value: Any) -> Any:
    """As ``table.make_input`` takes it."""
    if isinstance(value, (list, tuple)):
        return [describe_input(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    said: dict[str, Any] = {"shape": list(value.shape)}
    numbers = value.flatten().tolist()
    if len(set(numbers)) == 1:
        said["value"] = numbers[0]
    elif not value.is_floating_point():
        said["runs"] = find_runs([int(number) for number in numbers])
    usual = torch.bool if value.dtype == torch.bool and "value" in said else torch.int64
    if value.dtype != (torch.float32 if value.is_floating_point() else usual):
        said["dtype"] = str(value.dtype).removeprefix("torch.")
    return said


def find_runs(numbers: list[int]) -> list[list[int]]:
    """Numbers as (first, length, step), the longest runs first come."""
    runs: list[list[int]] = []
    at = 0
    while at < len(numbers):
        rest = numbers[at:]
        step = rest[1] - rest[0] if len(rest) > 1 else 0
        length = next((i for i, number in enumerate(rest) if number != rest[0] + i * step), len(rest))
        if length == 2 and step:  # no run: two numbers that are followed by another one
            length, step = 1, 0
        runs.append([rest[0], length, step])
        at += length
    return runs
