"""Module paths are found without changing which path the modules take."""

from __future__ import annotations

import torch

from reconcile.adapters.counters.flop_counter import capture
from reconcile.adapters.pytorch.trace import trace
from reconcile.adapters.pytorch.tracing.module_path import ModulePath
from reconcile.adapters.pytorch.tracing.trace_notes import FAST_PATH
from tests.own.test_torch_models import model_of


def model(heads=2):
    return model_of(lambda: torch.nn.TransformerEncoderLayer(8, heads, 16, batch_first=True), (2, 5, 8))


def test_the_counter_sees_what_its_users_see():
    """With hooks on its modules an encoder layer takes the path that the counter counts; without, it is one op."""
    held = model()
    module = held.build("cpu")
    with torch.no_grad(), torch.utils.flop_counter.FlopCounterMode(display=False) as alone:
        module(*held.example("cpu"))
    ledger = capture.capture("flop_counter", held)
    assert ledger.total == alone.get_total_flops() == 0
    assert {s.op.op for s in ledger.sightings} == {"aten._transformer_encoder_layer_fwd"}
    for inner in module.modules():
        inner.register_forward_hook(lambda *_: None)
    with torch.no_grad(), torch.utils.flop_counter.FlopCounterMode(display=False) as hooked:
        module(*held.example("cpu"))
    assert hooked.get_total_flops() > 0


def test_the_trace_says_where_inference_may_take_another_path():
    assert FAST_PATH in trace(model()).notes
    assert FAST_PATH not in trace(model(heads=1)).notes


def test_paths():
    """A shared module has its first name; a module made in a forward belongs to its maker; nothing stays behind."""
    seen = []

    class Leaf(torch.nn.Module):
        def forward(self, x):
            seen.append(path.current)
            return x

    class Maker(torch.nn.Module):
        def forward(self, x):
            return Leaf()(x)

    leaf = Leaf()
    root = torch.nn.Sequential(leaf, torch.nn.Sequential(Leaf(), leaf), Maker())
    path = ModulePath(root)
    with path:
        root(torch.zeros(1))
    assert (seen, path.current) == (["0", "1.0", "0", "2"], "")
    root(torch.zeros(1))
    assert seen[4:] == [""] * 4
