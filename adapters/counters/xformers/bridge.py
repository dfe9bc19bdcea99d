"""From a ledger of xformers' AnalyzedTrace to the PyTorch trace, as torch.profiler's."""

from functools import partial

from ..torch_profiler.bridge import Reader, bridge_events
from .rules import BOOK, counts

LACKS = "xformers adds up no {}: torch.profiler has no formula for it, or its numbers are not floating"
bridge = partial(bridge_events, reader=Reader(BOOK, counts, LACKS, outermost=True))
