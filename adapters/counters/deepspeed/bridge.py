"""From a deepspeed ledger to the PyTorch trace: items for every call of a patched function, and for every op outside them."""

from __future__ import annotations

from functools import partial

from ..call_bridge import Calls, bridge_calls
from ..functional_table import why_not
from .rules import BOOK

bridge = partial(bridge_calls, calls=Calls("deepspeed", BOOK, partial(why_not, "deepspeed")))
