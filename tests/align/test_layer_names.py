"""What the ecosystem's conventions reduce to."""

from __future__ import annotations

import pytest

from reconcile.align.layer_names import Name, likeness, reduce_names, words

SAME = [
    ("bert.", "encoder.layer_._0.attention.self.query", "encoder.layer.0.attention.self.query"),
    ("tf_gpt2_model.transformer.", "h_._3.attn.c_attn", "h.3.attn.c_attn"),
    ("", "encoder.block_._1.layer_._0.SelfAttention.q", "encoder.block.1.layer.0.SelfAttention.q"),
    ("vit.", "encoder.layer_._0.layernorm_before", "encoder.layer.0.layernorm_before"),
    ("StatefulPartitionedCall.bert.", "pooler.dense.Tensordot", "pooler.dense"),
    ("", "embeddings.LayerNorm", "embeddings.layer_norm"),
    ("", "block1_conv1", "block1.conv1"),
    ("", "block_0_attention", "blocks.0.attention"),
]


@pytest.mark.parametrize(("around", "tf", "torch"), SAME)
def test_the_same_layer_has_the_same_name(around: str, tf: str, torch: str) -> None:
    names = reduce_names([around + tf, around + "another.layer_._7"], [torch, "another.layer.7"])
    assert names[0][around + tf].key == names[1][torch].key


def test_a_plural_without_a_number_is_a_word_of_its_own() -> None:
    names, _ = reduce_names(["embeddings.class", "class.1", "blocks.1", "pass1", "is.1"], [])
    assert [name.key for name in names.values()] == [
        ("embeddings", "class"),
        ("class", 1),
        ("block", 1),
        ("pass", 1),
        ("is", 1),
    ]


def test_words_and_numbers() -> None:
    assert words("DenseReluDense") == ["dense", "relu", "dense"]
    assert words("conv2_block1_1_conv") == ["conv", 2, "block", 1, 1, "conv"]
    assert words("MLPBlock") == ["mlp", "block"]
    assert words("_07") == [7]


def test_the_number_that_keras_gives_by_itself_says_nothing() -> None:
    names, _ = reduce_names(["conv2d", "conv2d_3", "batch_normalization_12", "block1_conv2"], [])
    assert names["conv2d"] == names["conv2d_3"]
    assert names["batch_normalization_12"].key == ("batch", "normalization")
    assert names["block1_conv2"].numbers == (1, 2)


def test_keras_leaves_out_the_number_of_the_first_of_a_series() -> None:
    tf, torch = reduce_names(
        ["residual_block.conv1", "residual_block_1.conv1"], ["residual_block.0.conv1", "residual_block.1.conv1"]
    )
    assert [tf[p] for p in tf] == [torch[p] for p in torch]
    alone, _ = reduce_names(["residual_block.conv1"], [])
    assert 0 not in alone["residual_block.conv1"].key


def test_one_side_counts_from_1_and_the_other_from_0() -> None:
    tf, torch = reduce_names([f"stage{i}.fc" for i in (1, 2, 3)], [f"stage.{i}.fc" for i in (0, 1, 2)])
    assert [tf[p] for p in tf] == [torch[p] for p in torch]


def test_a_part_of_the_other_sides_numbers_is_left_as_it_is() -> None:
    tf, torch = reduce_names([f"layer_._{i}" for i in range(6)], [f"layer.{i}" for i in range(12)])
    assert [tf[p] for p in tf] == [torch[f"layer.{i}"] for i in range(6)]


def test_what_stands_around_is_left_out_only_where_that_helps() -> None:
    both = ["encoder.fc1", "encoder.fc2"]
    tf, torch = reduce_names(both, [*both, "decoder.fc1"])
    assert tf["encoder.fc1"] == torch["encoder.fc1"] != torch["decoder.fc1"]
    tf, torch = reduce_names(["bert", "bert.pooler.dense", "bert.embeddings"], ["", "pooler.dense", "embeddings"])
    assert tf["bert"].key == torch[""].key == ()


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (("conv", 1), ("conv", 1), 3),
        (("conv", 1), ("conv", 2), 2),
        (("layer", "norm", 1), ("ln", 4), 2),
        (("batch", "normalization"), ("stage", 0, "block", "bn"), 1),
        (("conv", 1), ("features", 1), 0),
        ((3,), (3,), 0),
        ((), (), 0),
    ],
)
def test_numbers_alone_are_no_likeness(a: tuple[str | int, ...], b: tuple[str | int, ...], expected: int) -> None:
    assert likeness(Name(a), Name(b)) == likeness(Name(b), Name(a)) == expected
