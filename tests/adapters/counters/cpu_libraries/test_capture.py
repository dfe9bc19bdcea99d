"""The log beside real layers: closed forms, random networks and lies about them, and convolutions as oneDNN understands them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from reconcile.adapters.counters.bridge import view
from reconcile.adapters.counters.cpu_libraries import bridge as bridging
from reconcile.adapters.counters.cpu_libraries.algorithm_notes import IN_BLOCKS, OTHER_ALGORITHM, notes_of
from reconcile.adapters.counters.cpu_libraries.capture import capture
from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.core.records import Op, Sighting, Tensor
from tests.adapters.counters.small_nets import attend, called

from .witnessed import both, gaps, macs, model_of, threaded, unwitnessed

FACTS = [
    (lambda: (nn.Conv2d(3, 16, 3, padding=1), torch.randn(1, 3, 32, 32)), 32 * 32 * 16 * 27),
    (lambda: (nn.Linear(64, 128), torch.randn(8, 64)), 8 * 64 * 128),
    (lambda: (called(lambda x: attend(x, x, x)), torch.randn(1, 2, 16, 8)), 2 * 2 * 16 * 16 * 8),
    (lambda: (nn.LSTM(10, 20), torch.randn(5, 3, 10)), 5 * 3 * 4 * 20 * (10 + 20)),
    (lambda: (nn.GRU(10, 20), torch.randn(5, 3, 10)), 5 * 3 * 3 * 20 * (10 + 20)),
    (lambda: (nn.Conv2d(64, 64, 3), torch.randn(1, 64, 56, 56)), 54 * 54 * 64 * 64 * 9),
    (lambda: (nn.Linear(64, 128).bfloat16(), torch.randn(8, 64).bfloat16()), 8 * 64 * 128),
    (lambda: (nn.Linear(64, 128).double(), torch.randn(8, 64).double()), 8 * 64 * 128),
    (lambda: (nn.Conv2d(16, 8, 3, groups=2).double(), torch.randn(2, 16, 10, 10).double()), 2 * 8 * 8 * 8 * 8 * 9),
    (
        lambda: (
            nn.Conv2d(16, 8, 3).to(memory_format=torch.channels_last),
            torch.randn(2, 16, 10, 10).to(memory_format=torch.channels_last),
        ),
        2 * 8 * 8 * 8 * 16 * 9,
    ),
    (lambda: (nn.Conv2d(16, 8, 3).bfloat16(), torch.randn(2, 16, 10, 10).bfloat16()), 2 * 8 * 8 * 8 * 16 * 9),
    (
        lambda: (
            nn.Conv2d(3, 8, 3).to(torch.bfloat16, memory_format=torch.channels_last),
            torch.randn(2, 3, 10, 10).to(torch.bfloat16, memory_format=torch.channels_last),
        ),
        2 * 8 * 8 * 8 * 3 * 9,
    ),
    (lambda: (nn.Conv3d(16, 8, 3, dilation=2), torch.randn(2, 16, 10, 10, 10)), 2 * 6**3 * 8 * 16 * 27),
]


@pytest.mark.parametrize(("fact", "threads"), [*((fact, 1) for fact in FACTS), *((fact, 2) for fact in FACTS[:4])])
def test_the_log_has_the_products_of_a_layer(fact, threads):
    make, products = fact
    with threaded(threads):
        ledger, trace = both(*make())
    assert ledger.total == products == macs(trace.ops)
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])


LAYERS = st.lists(
    st.tuples(
        st.sampled_from(["conv", "grouped", "depthwise", "linear", "norm"]), st.integers(1, 4), st.integers(1, 3)
    ),
    min_size=1,
    max_size=5,
)


class Net(nn.Module):
    """Convolutions and linear layers over (B, C, H, W); the linear ones run over the channels."""

    def __init__(self, layers: list[tuple[str, int, int]]) -> None:
        super().__init__()
        self.steps = nn.ModuleList()
        width = 4
        for kind, size, kernel in layers:
            out = 4 * size
            if kind == "linear":
                self.steps.append(
                    nn.Sequential(nn.Flatten(2), nn.AdaptiveAvgPool1d(81), nn.Linear(81, 81), nn.Unflatten(2, (9, 9)))
                )
            elif kind == "norm":
                self.steps.append(nn.BatchNorm2d(width))
            else:
                groups = {"grouped": 2, "depthwise": 4}.get(kind, 1)
                self.steps.append(nn.Conv2d(width, out, kernel, padding=kernel // 2, groups=groups))
                width = out

    def forward(self, x: Any) -> Any:
        for step in self.steps:
            x = step(x)
        return x


def lies(ops: tuple[Op, ...], at: int) -> list[tuple[Op, ...]]:
    """The trace with one op of a product on other tensors, without it, and with one more of it."""
    products = [op for op in ops if macs([op])]
    op = products[at % len(products)]
    others = tuple(o for o in ops if o is not op)
    first, *rest = op.inputs
    wider = Tensor((2 * (first.shape[0] or 1), *first.shape[1:]), first.dtype)
    return [
        (*others, op._replace(inputs=(wider, *rest))),
        others,
        (*others, op._replace(calls=op.calls + 1)),
        (*ops, op._replace(id="more", layer="elsewhere")),
    ]


@settings(max_examples=10)
@given(LAYERS, st.integers(1, 3), st.integers(0, 10))
def test_random_networks_are_witnessed_and_lies_are_caught(layers, batch, at):
    ledger, trace = both(Net(layers), torch.randn(batch, 4, 9, 9))
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])
    assert ledger.total == macs(trace.ops)
    assume(ledger.total)
    for number, ops in enumerate(lies(trace.ops, at)):
        assert gaps(ledger, trace._replace(ops=ops)) != [], number


@settings(max_examples=25)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.sampled_from([1, 2, 4]), st.integers(1, 3), st.integers(1, 2),
    st.integers(0, 2), st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_onednn_understands_a_convolution_as_its_formula_does(
    rank, ins, outs, groups, kernel, stride, padding, dilation, transposed
):
    """The descriptor is an oracle for reconcile/work: every size of it is the op's, and its products are the formula's."""
    kind = getattr(nn, f"Conv{'Transpose' if transposed else ''}{rank}d")
    net = kind(4 * ins, 4 * outs, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups)
    ledger, trace = both(net, torch.randn(2, 4 * ins, *[9, 8, 7][:rank]))
    assert gaps(ledger, trace) == []
    if not unwitnessed(ledger, trace):
        assert ledger.total == macs(trace.ops) > 0


def test_a_kernel_without_a_log_is_not_witnessed():
    """PyTorch multiplies small batches itself: those of M N K < 400 (native/LinearAlgebra.cpp, bmm_out_or_baddbmm_)."""
    ledger, trace = both(called(torch.bmm), torch.randn(3, 2, 2), torch.randn(3, 2, 2))
    assert ledger.total == 0
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], ["aten.bmm"])


@pytest.mark.parametrize(
    ("tokens", "width", "causal"), [(128, 64, False), (64, 64, False), (600, 32, False), (600, 32, True)]
)
def test_attention_in_blocks_by_two_threads(tokens, width, causal):
    """Threads write in any order. A causal kernel leaves out blocks above the diagonal, and the bridge says how much."""

    ledger, trace = both(called(lambda x: attend(x, x, x, is_causal=causal)), torch.randn(1, 3, tokens, width))
    whole = 2 * 3 * tokens * tokens * width
    assert gaps(ledger, trace) == []
    assert macs(trace.ops) == whole
    assert whole // 2 < ledger.total < whole if causal else ledger.total == whole


def test_a_line_of_another_size_is_a_residual(monkeypatch: pytest.MonkeyPatch):
    """The same sum by other sizes: 8 x 64 x 128 and 16 x 32 x 128 are equal."""
    ledger, trace = both(nn.Linear(64, 128), torch.randn(8, 64))
    (seen,) = [s for s in ledger.sightings if s.op.op == "aten.addmm"]
    ((routine, sizes, *rest),) = seen.op.attrs["tag:products"]
    other = seen.op._replace(attrs={**seen.op.attrs, "tag:products": [[routine, {"m": 128, "n": 16, "k": 32}, *rest]]})
    swapped = ledger._replace(sightings=tuple(s._replace(op=other) if s is seen else s for s in ledger.sightings))
    assert sizes == {"m": 128, "n": 8, "k": 64}
    assert [gap.partition(" at ")[0] for gap in gaps(swapped, trace)] == ["the log says other sizes"]
    assert bridging.bridge(view(ledger), trace).items


def test_nothing_is_multiplied_on_meta():
    model = model_of(nn.Linear(2, 2), torch.randn(1, 2))
    model.device = "meta"
    with pytest.raises(BeyondCounter, match="on meta nothing is multiplied"):
        capture("cpu_libraries", model)


@pytest.mark.slow
def test_what_a_model_prints_is_given_back():
    program = (
        "import torch\nfrom tests.adapters.counters.cpu_libraries.witnessed import both\n"
        "class N(torch.nn.Linear):\n    def forward(self, x):\n        print('mine')\n        return super().forward(x)\n"
        "both(N(8, 8), torch.randn(9, 8))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "mine\nmine\n"


def line(algorithm: str = "", padded: str = "") -> list[object]:
    return ["convolution:forward_inference", {"mb": 1}, algorithm, "f32", padded]


def seen(layer: str, *lines: list[object]) -> Sighting:
    return Sighting(Op("o", "aten.convolution", layer, (), (), {"tag:products": list(lines)}), layer)


def test_how_a_product_is_computed_is_named_with_its_layer():
    """Winograd's algorithm, and layouts that are padded, where the log says so."""
    winograd = [seen(f"conv{i}", line("convolution_winograd")) for i in range(5)]
    blocked = seen("head", line("convolution_direct", "wei ABcd16b16a"), line("convolution_direct", "src aBcd16b"))
    plain = seen("rest", line("convolution_direct"), line())
    assert notes_of([*winograd, blocked, plain]) == (
        OTHER_ALGORITHM % ("conv0, conv1, conv2 and 2 more", "convolution_winograd"),
        IN_BLOCKS % ("head", "wei ABcd16b16a, src aBcd16b"),
    )
    assert notes_of([plain]) == ()
