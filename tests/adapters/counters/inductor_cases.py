"""inductor's formulas by hand: it runs a node's op under flop_counter, so these are flop_counter's cases."""

from __future__ import annotations

from tests.adapters.counters.torch_cases import FLOP_COUNTER, TORCH_RELEASES

FAMILIES = {"inductor": (TORCH_RELEASES, FLOP_COUNTER)}
