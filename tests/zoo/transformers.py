"""Closed forms of the transformers' multiply-adds, from their dimensions alone."""

from __future__ import annotations


def transformer(rows, steps, width, inner, depth):
    """MACs of `depth` blocks: four square projections, scores and their sum over all steps, two dense layers."""
    return depth * rows * (4 * width**2 + 2 * steps * width + 2 * width * inner)


def vit(size, patch, depth, width, inner, classes):
    """MACs of a vision transformer: patches, blocks over them and the class token, head on the class token."""
    patches = (size // patch) ** 2
    tokens = patches + 1
    blocks = transformer(tokens, tokens, width, inner, depth)
    return patches * width * 3 * patch**2 + blocks + width * classes


def llama(steps, depth, width, heads, groups, inner, vocabulary):
    """MACs of a decoder whose keys and values are `groups` / `heads` as wide, with three dense layers per block."""
    narrow = width * groups // heads
    block = 2 * width**2 + 2 * width * narrow + 2 * steps * width + 3 * width * inner
    return steps * (depth * block + width * vocabulary)


def t5(source, target, depth, width, attention, inner, vocabulary):
    """MACs of an encoder and a decoder; `attention` is heads times width per head; the head reads the target alone."""
    dense, project = 2 * width * inner, width * attention
    encoder = source * (4 * project + 2 * source * attention + dense)
    own = target * (4 * project + 2 * target * attention)
    cross = target * (2 * project + 2 * source * attention) + source * 2 * project
    return depth * (encoder + own + cross + target * dense) + target * width * vocabulary


def whisper(frames, mels, steps, depth, width, vocabulary):
    """MACs of a Whisper: the stem, encoder blocks over half of the frames, decoder blocks with cross-attention, the head."""
    heard = (frames + 1) // 2
    total = 3 * width * (frames * mels + heard * width) + transformer(heard, heard, width, 4 * width, depth)
    total += transformer(steps, steps, width, 4 * width, depth) + steps * width * vocabulary
    return total + depth * (2 * steps * width**2 + 2 * heard * width**2 + 2 * steps * heard * width)


def swin(size, window, width, depths, classes):
    """MACs of shifted windows: patches of 4 x 4, per stage its blocks, each score within a window, merging before it."""
    side = size // 4
    total = side**2 * width * 3 * 4**2
    for stage, depth in enumerate(depths):
        if stage:
            side, width = side // 2, 2 * width
            total += side**2 * 2 * width * width
        total += transformer(side**2, window**2, width, 4 * width, depth)
    return total + width * classes


def moe(steps, width, inner, experts):
    """MACs of a router, every gated expert on every token, and their weighted sum."""
    return steps * experts * (width + 3 * width * inner + width)


FORMS = {
    "whisper": (whisper(10, 5, 4, 1, 12, 20),) * 2,
    "bert_base": (transformer(9, 9, 24, 40, 2) + 24**2,) * 2,
    "gpt2": (transformer(9, 9, 24, 96, 2) + 9 * 24 * 50,) * 2,
    "vit_b16": (vit(24, 8, 2, 24, 40, 7),) * 2,
    "llama": (llama(7, 2, 24, 6, 2, 40, 50),) * 2,
    "swin_t": (swin(32, 4, 12, (2, 2), 5),) * 2,
    "moe": (moe(7, 12, 20, 5),) * 2,
    "t5_small": (t5(9, 5, 2, 24, 30, 40, 50),) * 2,
}
"""MACs at the small settings: TensorFlow's side, PyTorch's side."""

WITHOUT_ARITHMETIC = {"t5_small": ("encoder_bias",)}
"""Rows that only look values up."""
