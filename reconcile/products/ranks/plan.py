"""Choice of the ranks that run, so that the work of the whole world is known: some stand for others of equal work.

Ranks stand on a mesh.  Along a dimension in which the program asks for a rank's place, each place may do other work, and runs.
Along any other the program cannot tell its place, and ranks differ only where sizes do not divide: PyTorch gives the first ranks
full parts, then a smaller one, then none.  So if the first rank and the one at the end of all these lines do equal work, all
between them do; if not, the ends of the lines run, and then all places of a dimension whose end differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

MOST = 64
"""The most ranks that all run where the program asks for its number among all."""


class Mesh:
    """The dimensions along which the ranks of a world stand, by ``names`` and ``sizes``; ``ranks`` are their numbers, row by
    row."""

    def __init__(self, names: Sequence[str], sizes: Sequence[int], ranks: Sequence[int]) -> None:
        self.names, self.sizes = tuple(names), tuple(sizes)
        self.ranks = dict(zip(product(*map(range, sizes)), ranks, strict=True))
        self.places = {rank: place for place, rank in self.ranks.items()}

    @property
    def first(self) -> int:
        """The rank at the first place of every dimension."""
        return next(iter(self.places))

    def along(self, line: Sequence[int]) -> set[int]:
        """The dimensions along which these ranks stand."""
        places = [self.places[rank] for rank in line]
        return {dim for dim in range(len(self.sizes)) if len({place[dim] for place in places}) > 1}

    def label(self, line: Sequence[int]) -> str:
        """The same in words: ``tp``, ``dp x tp``."""
        return " x ".join(self.names[dim] for dim in sorted(self.along(line))) or "one rank"


class Plan:
    """``ran`` has, by rank, what is known after its run: its ``mesh``, the lines in which it ``asked`` for its place, ``where``
    it asked for its number among all, and a ``digest`` of its work."""

    def __init__(self, ran: Mapping[int, Mapping[str, Any]]) -> None:
        self.ran = ran
        self.mesh = Mesh(**next(iter(ran.values()))["mesh"])
        self._dims = range(len(self.mesh.sizes))

    def _at(self, place: Sequence[int]) -> int:
        return self.mesh.ranks[tuple(place)]

    def apart(self) -> set[int]:
        """The dimensions in which each place may do other work, as far as it is known."""
        dims: set[int] = set()
        for told in self.ran.values():
            if told["where"]:
                return set(self._dims)
            for line in told["asked"]:
                dims |= self.mesh.along(line)
        for rank, told in self.ran.items():
            for dim in self._dims:
                last = self.ran.get(self._last(rank, dim))
                if last is not None and last["digest"] != told["digest"]:
                    dims.add(dim)
        mixed = [
            rank
            for rank in self.ran
            if self._differs(rank, dims) and all(each in self.ran for each in self._ends(rank, dims))
        ]
        return set(self._dims) if mixed else dims

    def _differs(self, rank: int, apart: set[int]) -> bool:
        """Whether the rank farthest from this one ran, and does other work."""
        far = self.ran.get(self._far(rank, apart))
        return far is not None and bool(far["digest"] != self.ran[rank]["digest"])

    def _far(self, rank: int, apart: set[int]) -> int:
        """The rank at the end of all lines that begin at this rank, those of dimensions that are told apart left out."""
        place = self.mesh.places[rank]
        return self._at([at if dim in apart else self.mesh.sizes[dim] - 1 for dim, at in enumerate(place)])

    def _ends(self, rank: int, apart: set[int]) -> list[int]:
        """The ranks at the end of each such line."""
        return [self._last(rank, dim) for dim in self._dims if dim not in apart]

    def _last(self, rank: int, dim: int) -> int:
        """The rank at the end of the line along this dimension that begins at this rank."""
        place = list(self.mesh.places[rank])
        if place[dim]:
            return rank
        place[dim] = self.mesh.sizes[dim] - 1
        return self._at(place)

    def _first_of_lines(self, apart: set[int]) -> list[int]:
        """One rank for each combination of places in the dimensions that are told apart."""
        ranges = [range(size) if dim in apart else range(1) for dim, size in enumerate(self.mesh.sizes)]
        return [self._at(place) for place in product(*ranges)]

    def list_ranks_to_run(self) -> list[int]:
        """The ranks that have to run next; none if all is known."""
        apart = self.apart()
        first = self._first_of_lines(apart)
        need = [*first, *(self._far(rank, apart) for rank in first)]
        if not [rank for rank in need if rank not in self.ran]:
            need += [end for rank in first if self._differs(rank, apart) for end in self._ends(rank, apart)]
        return [rank for rank in dict.fromkeys(need) if rank not in self.ran]

    def all_run(self) -> str:
        """Where the program asks for its number among all, so that every rank has to run; '' if it does not."""
        return next((told["where"] for told in self.ran.values() if told["where"]), "")

    def fold_ranks(self) -> list[tuple[int, list[int]]]:
        """A rank that ran, and those with equal work, itself included: every rank of the world once."""
        apart = self.apart()
        found: dict[str, tuple[int, list[int]]] = {}
        for rank, place in sorted(self.mesh.places.items()):
            like = self._at([at if dim in apart else 0 for dim, at in enumerate(place)])
            found.setdefault(self.ran[like]["digest"], (like, []))[1].append(rank)
        return list(found.values())
