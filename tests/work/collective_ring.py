"""A ring of processes that pass parts of a tensor on, chunk by chunk, and records of collectives of such processes."""

from __future__ import annotations

from reconcile.core.records import GROUP, Op, Tensor


def chunks(count: int, processes: int) -> list[list[int]]:
    """Elements by chunk: the first chunks have one more where they do not divide."""
    return [list(range(count))[place::processes] for place in range(processes)]


class Ring:
    """Each process has a tensor of ones. Chunk by chunk they pass what they have to the next, which adds its own."""

    def __init__(self, count: int, processes: int) -> None:
        self.processes, self.parts = processes, chunks(count, processes)
        self.adds, self.sends = [0] * processes, [0] * processes
        self.have = [[[1] * len(part) for part in self.parts] for _ in range(processes)]

    def reduce_scatter(self) -> None:
        """Process p passes its own chunk p first, so that it adds all but that one."""
        for step in range(self.processes - 1):
            passed = {p: (p - step) % self.processes for p in range(self.processes)}
            for p, chunk in passed.items():
                after = (p + 1) % self.processes
                self.sends[p] += len(self.parts[chunk])
                for i, value in enumerate(list(self.have[p][chunk])):
                    self.have[after][chunk][i] += value
                    self.adds[after] += 1

    def all_gather(self) -> None:
        for step in range(self.processes - 1):
            for p in range(self.processes):
                chunk = (p + 1 - step) % self.processes
                self.sends[p] += len(self.parts[chunk])
                self.have[(p + 1) % self.processes][chunk] = list(self.have[p][chunk])


def call(name: str, count: int, processes: int, place: int, reduce: str = "sum", out: int | None = None) -> Op:
    given, made = Tensor((count,), "float32"), Tensor((count if out is None else out,), "float32")
    group = {"ranks": list(range(processes)), "place": place, "reduce": reduce}
    return Op("1", name, "", (given,), (made,), {GROUP: group}, 1, "forward")
