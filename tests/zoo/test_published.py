"""Every figure in print for a pair: under which reading it holds within the digits printed, or that it does not.

Readings are closed forms. That a closed form is the work that runs is counted here at full size, on shapes alone.
"""

from __future__ import annotations

import pytest

from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import settle
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
from reconcile.model_zoo import loading
from reconcile.products.decode.printed_figure import figure
from reconcile.products.decode.search import search
from tests.products.decode import data
from tests.zoo import convolutional as conv
from tests.zoo import transformers
from tests.zoo.choice import chosen

ROUNDED, CUT, NOT = "rounded to the digits", "the rest cut off", "not met"

SIZE, CLASSES = 224, 1000

RESNET50 = conv.resnet50(SIZE, CLASSES)
RESNET50_V1_5 = conv.resnet50(SIZE, CLASSES, v1_5=True)
VGG16 = conv.vgg16(SIZE, CLASSES)
VGG16_DENSE = conv.mlp(7 * 7 * 512, 4096, 4096, CLASSES)
MOBILENET_V2 = conv.mobilenet_v2(SIZE, CLASSES)
MOBILENET_V3 = conv.mobilenet_v3_small(SIZE, CLASSES)
EFFICIENTNET = conv.efficientnet_b0(SIZE, CLASSES)
DENSENET = conv.densenet121(SIZE, CLASSES)
DENSENET_FVCORE = DENSENET + 2 * conv.densenet121_both(SIZE)[1] + 7 * 7 * 1024
CONVNEXT = conv.convnext_tiny(SIZE, CLASSES)
POINTNET = conv.pointnet(1024, 40, 1)
VIT = transformers.vit(SIZE, 16, 12, 768, 3072, CLASSES)
VIT_NORMED = VIT + 5 * 25 * (14**2 + 1) * 768
"""With two norms per block and one behind, over the class token and 14 x 14 patches."""
SWIN = transformers.swin(SIZE, 7, 96, (2, 2, 6, 2), CLASSES)

BERT = transformers.transformer(128, 128, 768, 3072, 12) + 768**2
BERT_ONE_HOT = 128 * 768 * (30522 + 128 + 2)
"""Words, positions and segments looked up by multiplying with a one-hot vector, at each of 128 tokens."""
BERT_CLASSIFIER = 128 * 768**2
"""The pooler at every token, not at the first alone."""
BERT_BY_SCRIPT = 2 * (BERT - 768**2 + BERT_ONE_HOT + BERT_CLASSIFIER)

GPT2_BLOCKS = transformers.transformer(1024, 1024, 768, 3072, 12)
GPT2 = GPT2_BLOCKS + 1024 * 768 * 50257
GPT2_OTHERS = 1024 * 768 + 25 * 768
"""Weights that do not: positions, and a norm's scale twice per block and once behind."""

READINGS = {
    ("resnet50", "3.8e9"): (RESNET50, CUT, "multiply-adds; rounded they would be 3.9e9"),
    ("resnet50_v1_5", "4.09e9"): (RESNET50_V1_5, ROUNDED, "multiply-adds, the stride in the 3x3"),
    ("vgg16", "15.5e9"): (VGG16, ROUNDED, "multiply-adds"),
    ("vgg16", "15.47e9"): (VGG16, ROUNDED, "multiply-adds"),
    ("vgg16", "15.3e9"): (VGG16 - VGG16_DENSE, ROUNDED, "multiply-adds of the convolutions alone"),
    ("mobilenet_v2", "300M"): (MOBILENET_V2, CUT, "multiply-adds; rounded they would be 301M"),
    ("mobilenet_v2", "0.301G"): (MOBILENET_V2, ROUNDED, "multiply-adds"),
    ("mobilenet_v3_small", "56M"): (MOBILENET_V3, CUT, "multiply-adds; rounded they would be 57M"),
    ("mobilenet_v3_small", "0.057G"): (MOBILENET_V3, ROUNDED, "multiply-adds"),
    ("mobilenet_v3_small", "66M"): (MOBILENET_V3, NOT, "the network of this name has 57M multiply-adds"),
    ("efficientnet_b0", "0.39B"): (EFFICIENTNET, ROUNDED, "multiply-adds"),
    ("efficientnet_b0", "0.386G"): (EFFICIENTNET, ROUNDED, "multiply-adds"),
    ("densenet121", "2.834G"): (DENSENET, ROUNDED, "multiply-adds"),
    ("densenet121", "2.87G"): (DENSENET_FVCORE, ROUNDED, "fvcore: multiply-adds, batch norms at 2, the last pool at 1"),
    ("densenet121", "5.724G"): (2 * DENSENET, NOT, "two per multiply-add is 5.668G; no reading of the decoder's list fits"),
    ("convnext_tiny", "4.5G"): (CONVNEXT, ROUNDED, "multiply-adds"),
    ("convnext_tiny", "4.456G"): (CONVNEXT, ROUNDED, "multiply-adds"),
    ("pointnet", "440M"): (POINTNET, NOT, "multiply-adds at 1024 points and 40 classes are 448M, at 1000 points 438M"),
    ("vit_b16", "17.56G"): (VIT, ROUNDED, "multiply-adds"),
    ("vit_b16", "17.58G"): (VIT_NORMED, ROUNDED, "multiply-adds, and 5 for each element of a norm, as fvcore counts them"),
    ("swin_t", "4.5G"): (SWIN, ROUNDED, "multiply-adds"),
    ("swin_t", "4.49G"): (SWIN, ROUNDED, "multiply-adds"),
    ("bert_base", "22.5B"): (2 * BERT, NOT, "two per multiply-add at 128 tokens is 22.3B; elementwise work makes it 22.4B"),
    ("bert_base", "2.9e10"): (BERT_BY_SCRIPT, ROUNDED, "at 128 tokens, look-ups as products, a pooler per token"),
    ("gpt2", "291648307200"): (2 * GPT2, ROUNDED, "two per multiply-add, the head included"),
    ("gpt2", "879894724608"): (6 * GPT2 + 6 * 1024 * GPT2_OTHERS, ROUNDED, "6N counts weights that multiply nothing"),
    ("matmul_init", "7,200"): (2 * 25 * 16 * 9, ROUNDED, "two per multiply-add"),
    ("matmul_init", "8,288"): (2 * 25 * 16 * 9 + 2 * (25 * 16 + 16 * 9), ROUNDED, "and initialisers: scale and shift"),
    ("conv1x1", "2"): (2, ROUNDED, "two per multiply-add, one of them"),
    ("conv_only", "13,061,089"): (
        2 * 97 * 127 * 32 * 16 + 97 * 127 * 32 + 2 * 512 + 2 * 25_600 + 1,
        ROUNDED,
        "products, biases, initialiser (a product and a sum each, one difference) and the random input",
    ),
    ("conv_only", "13,403,072"): (2 * (97 * 127 * 32 * 16 + 97 * 127 * 32), ROUNDED, "MACs and biases, doubled"),
}  # fmt: skip
"""(pair, figure): what is counted, how the figure meets it, in words."""

RECORDED = {
    ("gru_demo", "25,150,826"): "tf.profiler@session, as reported",
    ("gru_demo", "22,752,165"): "tf.profiler@session, as reported",
    ("gru_demo", "22,938,560"): "thop × 2 (it counts MACs)",
    ("resnet50", "51,112,224"): "tf.profiler@batch_none, as reported",
    ("resnet50", "102,224,449"): "the model built a second time in the same default graph",
    ("resnet50", "51,112,225"): '"backward" by subtraction',
}
"""Figures of old environments, which the saved baselines have."""


def published():
    """Every figure of the zoo: (pair, digits as printed)."""
    found = []
    for name in loading.zoo_names():
        found += [(name, said.figure) for said in loading.load_pair(loading.pair_path(name)).published]
    return found


def test_every_figure_has_a_reading_and_no_reading_is_stale():
    assert sorted(published()) == sorted([*READINGS, *RECORDED])


def test_every_reading_meets_its_figure_as_it_says():
    for which, (value, how, why) in READINGS.items():
        printed = figure(which[1])
        assert why
        assert printed.holds(value) == (how == ROUNDED), which
        assert (not printed.exact and printed.cuts(value) and not printed.holds(value)) == (how == CUT), which


@pytest.mark.parametrize("which", RECORDED, ids="-".join)
def test_recorded_figure(which):
    matches = search(which[0], figure(which[1]), data.saved(which[0])).matches
    assert [match for match in matches if RECORDED[which] in match.what], matches


FULL_SIZE = {
    "resnet50": RESNET50,
    "resnet50_v1_5": RESNET50_V1_5,
    "vgg16": VGG16,
    "mobilenet_v2": MOBILENET_V2,
    "mobilenet_v3_small": MOBILENET_V3,
    "efficientnet_b0": EFFICIENTNET,
    "densenet121": DENSENET,
    "convnext_tiny": CONVNEXT,
    "pointnet": POINTNET,
    "vit_b16": VIT,
    "swin_t": SWIN,
    "bert_base": BERT,
    "gpt2": GPT2,
}


@pytest.mark.frameworks
@pytest.mark.usefixtures("warmed")
@pytest.mark.parametrize("name", chosen(FULL_SIZE, ("resnet50",)))
def test_closed_form_is_what_runs_at_full_size(name):
    """PyTorch's side on meta: flop_counter alone, and the trace."""
    found = collect(RunRequest(name, {}, counters=("flop_counter",)))
    result = settle(found, Conventions(BUILT_IN["matmul"]))
    assert [t.totals["matmul"] for t in result.traces] == [2 * FULL_SIZE[name]]
