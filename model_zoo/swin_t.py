"""Swin-T: patches of 4 x 4, four stages of 2, 2, 6 and 2 blocks, attention in windows of 7 x 7, every second shifted.

Image (1, 3, 224, 224) in PyTorch, (1, 224, 224, 3) in TensorFlow -> (1, 56, 56, 96) -> 28 x 28 x 192 -> 14 x 14 x 384 ->
7 x 7 x 768 -> mean (1, 768) -> logits (1, 1000).

How the frameworks differ here
* The same image goes in as channels first; the TensorFlow side moves the channels last.  From the patches on, both keep
  them last.
* Attention is written out on both sides, as usual here: one projection for query, key and value, a scaled query, a
  learned bias by relative position, in shifted windows a mask.  TensorFlow multiplies windows with einsum, PyTorch with
  matmul.
* Cutting windows, shifting and merging patches moves values and computes nothing.
* The last stage is one window: nothing is shifted there.
* The bias of the key projection has no effect on the output, as softmax does not see what is added to a whole row; it
  is part of one bias for query, key and value here, which has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

EPSILON = 1e-5

PAIR = Pair(
    name="swin_t",
    params={
        "batch": 1,
        "size": 224,
        "patch": 4,
        "window": 7,
        "width": 96,
        "depths": "2,2,6,2",
        "heads": "3,6,12,24",
        "classes": 1000,
    },
    notes=("No weights are downloaded: both sides are initialised at random.",),
    published=(
        Published("4.5G", "FLOPs, that is multiply-adds", "Liu et al. 2021 (Swin), table 1a, arXiv:2103.14030"),
        Published("4.49G", "GFLOPS, that is 1e9 multiply-adds", "torchvision documentation, swin_t, IMAGENET1K_V1"),
    ),
)

PROOF = {"size": "32", "window": "4", "width": "12", "depths": "2,2", "heads": "2,3", "classes": "5"}
"""Equivalence is shown here, where it takes seconds to change every weight."""

ATTENTION = ("attention_norm", "attention", "attention_add")
MLP = ("mlp_norm", "mlp_inner", "mlp_outer", "mlp_add")


class Block(NamedTuple):
    """One block: its stage and its place there, the side of its square of patches, its width, heads and shift."""

    stage: int
    place: int
    side: int
    width: int
    heads: int
    shift: int


def blocks(p: Any) -> list[Block]:
    """All blocks, in order; every second one shifts its windows by half, unless there is only one window."""
    found = []
    heads = [int(count) for count in p.heads.split(",")]
    for stage, depth in enumerate(p.depths.split(",")):
        side, width = p.size // p.patch >> stage, p.width << stage
        for index in range(int(depth)):
            shift = p.window // 2 if index % 2 and side > p.window else 0
            found.append(Block(stage, index, side, width, heads[stage], shift))
    return found


def layers_for(p: Any) -> tuple[Layer, ...]:
    """The patches, per stage the merging before it and two rows per block, the head."""
    patches = ("patches", "patches_norm")
    found = [Layer("patches", ("channels_last", *patches), patches)]
    for block in blocks(p):
        if block.stage and not block.place:
            name = f"merge_{block.stage}"
            found.append(Layer(name, (name, name + "_norm", name + "_reduce"), f"merges.{block.stage - 1}"))
        ours, theirs = f"block_{block.stage}_{block.place}_", f"stages.{block.stage}.{block.place}."
        for row, parts, more in (("attention", ATTENTION, ()), ("mlp", MLP, ("gelu",))):
            tf, torch = tuple(ours + part for part in parts), tuple(theirs + part for part in (*parts, *more))
            found.append(Layer(ours + row, tf, torch))
    found.append(Layer("head", ("final_norm", "mean", "head"), ("final_norm", "mean", "head")))
    return tuple(found)


def inputs(p: Any) -> list[Input]:
    """One image: (batch, 3, size, size)."""
    return [Input("image", (p.batch, 3, p.size, p.size))]


def places(window: int) -> list[list[int]]:
    """Which entry of the bias table two positions of a window take: (window^2, window^2), by row and column distance."""
    spots = [(row, column) for row in range(window) for column in range(window)]
    wide = 2 * window - 1
    return [[(a - c + window - 1) * wide + b - d + window - 1 for c, d in spots] for a, b in spots]


def mask(side: int, window: int, shift: int) -> list[list[list[float]]]:
    """What a shifted window adds to scores of patches that were not neighbours: (windows, window^2, window^2)."""

    def region(place: int) -> int:
        return 0 if place < side - window else 1 if place < side - shift else 2

    found = []
    for top in range(0, side, window):
        for left in range(0, side, window):
            spots = [(region(top + r), region(left + c)) for r in range(window) for c in range(window)]
            found.append([[0.0 if a == b else -100.0 for b in spots] for a in spots])
    return found


def build_tf(p: Any) -> Any:
    """The stages with window attention written out."""
    import numpy
    import tensorflow as tf

    keras = tf.keras.layers
    area = p.window**2

    class Attention(tf.keras.layers.Layer):
        """Self-attention in windows: (batch, side, side, width) -> the same."""

        def __init__(self, block: Block, name: str) -> None:
            super().__init__(name=name)
            self.block = block
            self.project = keras.Dense(3 * block.width, name="project")
            self.out = keras.Dense(block.width, name="out")
            self.mask = None
            if block.shift:  # (1, windows, 1, area, area)
                self.mask = numpy.array(mask(block.side, p.window, block.shift), "float32")[None, :, None]
            self.places = numpy.array(places(p.window), "int32")

        def build(self, shape: Any) -> None:
            shape = ((2 * p.window - 1) ** 2, self.block.heads)
            self.table = self.add_weight(shape=shape, initializer="uniform", name="table")

        def call(self, x: Any) -> Any:
            _, _, side, width, heads, shift = self.block
            count, per_head = side // p.window, width // heads
            if shift:
                x = tf.roll(x, (-shift, -shift), axis=(1, 2))
            x = tf.reshape(x, (p.batch, count, p.window, count, p.window, width))
            x = tf.reshape(tf.transpose(x, (0, 1, 3, 2, 4, 5)), (p.batch * count**2, area, width))
            query, key, value = tf.unstack(tf.reshape(self.project(x), (-1, area, 3, heads, per_head)), axis=2)
            scores = tf.einsum("nqhd,nkhd->nhqk", query * per_head**-0.5, key)
            scores += tf.transpose(tf.gather(self.table, self.places), (2, 0, 1))
            if self.mask is not None:
                scores = tf.reshape(scores, (p.batch, count**2, heads, area, area)) + self.mask
                scores = tf.reshape(scores, (-1, heads, area, area))
            x = self.out(tf.reshape(tf.einsum("nhqk,nkhd->nqhd", tf.nn.softmax(scores), value), (-1, area, width)))
            x = tf.reshape(x, (p.batch, count, count, p.window, p.window, width))
            x = tf.reshape(tf.transpose(x, (0, 1, 3, 2, 4, 5)), (p.batch, side, side, width))
            return tf.roll(x, (shift, shift), axis=(1, 2)) if shift else x

    class Merge(tf.keras.layers.Layer):
        """Four neighbours side by side: (batch, side, side, width) -> (batch, side / 2, side / 2, 4 width)."""

        def call(self, x: Any) -> Any:
            return tf.concat([x[:, r::2, c::2] for c in (0, 1) for r in (0, 1)], axis=-1)

    def normal(name: str) -> Any:
        return keras.LayerNormalization(epsilon=EPSILON, name=name)

    image = keras.Input(batch_shape=(p.batch, 3, p.size, p.size), name="image")
    x = keras.Permute((2, 3, 1), name="channels_last")(image)
    x = normal("patches_norm")(keras.Conv2D(p.width, p.patch, strides=p.patch, name="patches")(x))
    for block in blocks(p):
        if block.stage and not block.place:
            name = f"merge_{block.stage}"
            x = normal(name + "_norm")(Merge(name=name)(x))
            x = keras.Dense(block.width, use_bias=False, name=name + "_reduce")(x)
        name = f"block_{block.stage}_{block.place}_"
        y = Attention(block, name=name + "attention")(normal(name + "attention_norm")(x))
        x = keras.Add(name=name + "attention_add")([x, y])
        y = keras.Dense(4 * block.width, activation="gelu", name=name + "mlp_inner")(normal(name + "mlp_norm")(x))
        y = keras.Dense(block.width, name=name + "mlp_outer")(y)
        x = keras.Add(name=name + "mlp_add")([x, y])
    x = keras.GlobalAveragePooling2D(name="mean")(normal("final_norm")(x))
    return tf.keras.Model(image, keras.Dense(p.classes, name="head")(x))


def build_torch(p: Any) -> Any:
    """The stages with window attention as torchvision writes it."""
    import torch
    from torch import nn

    area = p.window**2

    class Add(nn.Module):
        """A sum, as a layer of its own so that it has a name."""

        def forward(self, a: Any, b: Any) -> Any:
            return a + b

    class Mean(nn.Module):
        """The mean over the patches, as a layer of its own so that it has a name."""

        def forward(self, x: Any) -> Any:
            return x.mean(dim=(1, 2))

    class Attention(nn.Module):
        """Self-attention in windows: (batch, side, side, width) -> the same."""

        def __init__(self, block: Block) -> None:
            super().__init__()
            self.block = block
            self.project = nn.Linear(block.width, 3 * block.width)
            self.out = nn.Linear(block.width, block.width)
            self.table = nn.Parameter(torch.zeros((2 * p.window - 1) ** 2, block.heads))
            self.register_buffer("places", torch.tensor(places(p.window)), persistent=False)
            shifted = torch.tensor(mask(block.side, p.window, block.shift)) if block.shift else None
            self.register_buffer("mask", shifted, persistent=False)

        def forward(self, x: Any) -> Any:
            _, _, side, width, heads, shift = self.block
            count, per_head = side // p.window, width // heads
            if shift:
                x = torch.roll(x, (-shift, -shift), dims=(1, 2))
            x = x.view(p.batch, count, p.window, count, p.window, width)
            x = x.permute(0, 1, 3, 2, 4, 5).reshape(p.batch * count**2, area, width)
            query, key, value = self.project(x).view(-1, area, 3, heads, per_head).permute(2, 0, 3, 1, 4)
            scores = (query * per_head**-0.5).matmul(key.transpose(-2, -1))
            scores = scores + self.table[self.places].permute(2, 0, 1)
            if self.mask is not None:
                scores = scores.view(p.batch, count**2, heads, area, area) + self.mask[:, None]
                scores = scores.view(-1, heads, area, area)
            x = torch.softmax(scores, dim=-1).matmul(value).transpose(1, 2).reshape(-1, area, width)
            x = self.out(x).view(p.batch, count, count, p.window, p.window, width)
            x = x.permute(0, 1, 3, 2, 4, 5).reshape(p.batch, side, side, width)
            return torch.roll(x, (shift, shift), dims=(1, 2)) if shift else x

    class Merge(nn.Module):
        """Four neighbours side by side, a norm, half as wide: side x side x width -> side / 2 x side / 2 x 2 width."""

        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(4 * width, eps=EPSILON)
            self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

        def forward(self, x: Any) -> Any:
            return self.reduce(self.norm(torch.cat([x[:, r::2, c::2] for c in (0, 1) for r in (0, 1)], dim=-1)))

    class SwinBlock(nn.Module):
        """Attention in windows and two dense layers, each behind a norm and added to its input."""

        def __init__(self, block: Block) -> None:
            super().__init__()
            self.attention_norm = nn.LayerNorm(block.width, eps=EPSILON)
            self.attention = Attention(block)
            self.attention_add = Add()
            self.mlp_norm = nn.LayerNorm(block.width, eps=EPSILON)
            self.mlp_inner = nn.Linear(block.width, 4 * block.width)
            self.gelu = nn.GELU()
            self.mlp_outer = nn.Linear(4 * block.width, block.width)
            self.mlp_add = Add()

        def forward(self, x: Any) -> Any:
            x = self.attention_add(x, self.attention(self.attention_norm(x)))
            return self.mlp_add(x, self.mlp_outer(self.gelu(self.mlp_inner(self.mlp_norm(x)))))

    class Swin(nn.Module):
        """Patches, stages with merging between them, mean, head."""

        def __init__(self) -> None:
            super().__init__()
            every = blocks(p)
            self.patches = nn.Conv2d(3, p.width, p.patch, stride=p.patch)
            self.patches_norm = nn.LayerNorm(p.width, eps=EPSILON)
            count = every[-1].stage + 1
            self.stages = nn.ModuleList(
                nn.Sequential(*(SwinBlock(block) for block in every if block.stage == stage)) for stage in range(count)
            )
            self.merges = nn.ModuleList(Merge(p.width << stage) for stage in range(count - 1))
            self.final_norm = nn.LayerNorm(every[-1].width, eps=EPSILON)
            self.mean = Mean()
            self.head = nn.Linear(every[-1].width, p.classes)

        def forward(self, image: Any) -> Any:
            x = self.patches_norm(self.patches(image).permute(0, 2, 3, 1))
            for index, stage in enumerate(self.stages):
                x = stage(self.merges[index - 1](x) if index else x)
            return self.head(self.mean(self.final_norm(x)))

    return Swin()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import numpy
    import torch

    def put(parameter: Any, array: Any) -> None:
        parameter.data.copy_(torch.as_tensor(numpy.ascontiguousarray(array)))

    def both(module: Any, layer: Any) -> None:
        """Kernel and bias; a layer without a bias has only the first."""
        first, *second = layer.get_weights()
        put(module.weight, first.transpose(3, 2, 0, 1) if first.ndim == 4 else first.T)
        for bias in second:
            put(module.bias, bias)

    of = tf_model.get_layer
    for name in ("patches", "patches_norm", "final_norm", "head"):
        both(getattr(torch_model, name), of(name))
    for index, merge in enumerate(torch_model.merges):
        both(merge.norm, of(f"merge_{index + 1}_norm"))
        both(merge.reduce, of(f"merge_{index + 1}_reduce"))
    for stage, members in enumerate(torch_model.stages):
        for index, block in enumerate(members):
            name = f"block_{stage}_{index}_"
            attention = of(name + "attention")
            put(block.attention.table, attention.table.numpy())
            both(block.attention.project, attention.project)
            both(block.attention.out, attention.out)
            for part in ("attention_norm", "mlp_norm", "mlp_inner", "mlp_outer"):
                both(getattr(block, part), of(name + part))
