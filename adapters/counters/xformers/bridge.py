"""Bridge from a ledger of xformers' AnalyzedTrace to the PyTorch trace, as for torch.profiler."""

from functools import partial

from ..torch_profiler.bridge import Reader, bridge_events
from .rules import BOOK, counts

ADDS_UP_NONE_OF_IT = "xformers adds up no {}: torch.profiler has no formula for it, or its numbers are not floating"
bridge = partial(bridge_events, reader=Reader(BOOK, counts, ADDS_UP_NONE_OF_IT, outermost=True))
