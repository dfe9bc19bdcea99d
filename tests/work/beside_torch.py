"""What the tests beside torch share: small random arrays, and one comparison of a loop, torch and a formula."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from reconcile.work import work_of
from tests.work.counting import values

SMALL = st.integers(1, 3)
RELAXED = settings(max_examples=8, deadline=None)


def data(*shape):
    return np.random.default_rng(0).normal(size=shape)


def agree(tally, result, expected, op):
    """The loops computed what torch computes, and the formula counts what the loops did."""
    np.testing.assert_allclose(values(result), np.asarray(expected), rtol=1e-7, atol=1e-9)
    assert work_of(op) == tally.work()


def tensors(*arrays):
    return [None if a is None else torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]
