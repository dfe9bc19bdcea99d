"""Gradients: formulas against naive loops, whose values are torch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from reconcile.work import work_of  # noqa: E402
from tests.work import counting, oracle  # noqa: E402
from tests.work.beside_torch import RELAXED, SMALL, data  # noqa: E402
from tests.work.counting import Tally  # noqa: E402
from tests.work.records_by_hand import make  # noqa: E402

F = torch.nn.functional


@RELAXED
@given(batch=SMALL, channels=SMALL, spatial=st.integers(2, 4), training=st.booleans())
def test_batch_norm(batch, channels, spatial, training):
    x, dy = data(batch, channels, spatial), data(batch, channels, spatial)
    weight, mean, var = data(channels) + 3, data(channels), np.abs(data(channels)) + 0.1
    if training:
        mean, var = x.mean((0, 2)), x.var((0, 2))
    held = [torch.from_numpy(a.copy()).requires_grad_() for a in (x, weight, np.zeros(channels))]
    running = [torch.from_numpy(a.copy()) for a in (mean, var)]
    F.batch_norm(held[0], *running, *held[1:], training=training).backward(torch.from_numpy(dy))
    tally = Tally()
    rows = [tally.array(a.transpose(1, 0, 2).reshape(channels, -1)) for a in (x, dy)]
    loops = oracle.batch_norm_training_gradient if training else oracle.batch_norm_gradient
    found = loops(*rows, *[tally.array(a) for a in (mean, var, weight)], 1e-5)
    for c, (dx, scale, offset) in enumerate(found):
        np.testing.assert_allclose(counting.values(dx), held[0].grad[:, c].reshape(-1), atol=1e-9)
        np.testing.assert_allclose([scale.value, offset.value], [held[1].grad[c], held[2].grad[c]], atol=1e-9)
    shapes = [(batch, spatial, 1, channels)] * 2 + [(channels,)] * 4
    op = make("FusedBatchNormGradV3", shapes, [shapes[0], (channels,), (channels,)], is_training=training)
    assert work_of(op) == tally.work()
