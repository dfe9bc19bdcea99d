"""Rules of W&B's get_flops: those of tf.profiler and no others (wandb/integration/keras/keras.py:1085 of 0.27.0)."""

from __future__ import annotations

from ..rulebook import RuleBook
from ..tf_profiler.rules import BOOK as PROFILER
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {}, base=PROFILER)
