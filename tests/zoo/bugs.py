"""The bugs on record, in closed form: what each counter reports of a layer of the zoo, and the work that ran, in its unit.

``HERE`` are those of counters that run in this environment, ``THERE`` those of counters that need one of their own. The third
entry is a line of source or a name that the program has to show. docs/bugs.md lists them all, and tests execute each command.
"""

from __future__ import annotations

from math import prod

LSTM = 2 * 5 * 4 * 3 * (4 + 3)
"""Multiply-adds of an LSTM of 3 units on 4 inputs, for 2 samples of 5 steps: 4 gates."""
GRU = 2 * 5 * 3 * 3 * (4 + 3)
"""The same of a GRU: 3 gates."""
SAME = 2 * 9 * 8 * 4 * 4 * 9
"""Multiply-adds of a convolution of 3 x 3 from 4 to 4 channels, for 2 samples of 9 x 8."""
TRANSPOSED_IN, TRANSPOSED_OUT = (2, 4, 5, 4), (2, 3, 11, 9)
"""A transposed convolution of 3 x 3: each element of the input meets 3 channels, each of the output would meet 4."""
SHARED = 2 * (2 * 5 * 6 * 6)
"""Multiply-adds of a layer of 6 x 6 weights that runs twice, on 2 samples of 5 rows."""
COLUMNS = 2 * (2 * 6 * 6)
"""Operations per row in x^T x, for 2 samples of 5 rows of 6."""
PROJECTIONS, ATTENTION = 2 * 5 * 8 * (8 + 4 + 4 + 8), 2 * 2 * 5 * 5 * 8
"""Multiply-adds of grouped attention, for 2 samples of 5 steps of 8: four queries' heads and two of keys and values; the output.
The attention is two products."""
CONV, DENSE = 4 * 3 * 32 * 32, 4 * 5
"""Multiply-adds of an image classifier for one patch of 32 x 32, and for an image; the image has 2 x 3 patches."""

HERE = {
    ("thop", "extra:two_parents"): (4 * SHARED, SHARED, "thop/profile.py:209"),
    ("thop", "family_transposed:transposed2d_stride"): (
        prod(TRANSPOSED_OUT) * 4 * 9, prod(TRANSPOSED_IN) * 3 * 9, "thop/vision/basic_hooks.py:22",
    ),
    ("fvcore", "family_convolution:conv2d_same"): (0, SAME, "aten._convolution_mode"),
    ("flop_counter", "extra:attention_of_heads"): (0, 2 * 2 * (2 * 2 * 5 * 5 * 8), "flash_attention_for_cpu"),
    ("flop_counter", "family_recurrent:lstm"): (0, 2 * LSTM, "aten.mkldnn_rnn_layer"),
    ("ptflops@pytorch", "family_dense:dense"): (7 * 5 + 5, 2 * 7 * 5, "ptflops/pytorch_engine.py:199"),
    ("torchinfo", "family_dense:dense_steps_no_bias"): (2 * 6 * 4, 2 * 5 * 6 * 4, "torchinfo/layer_info.py:242"),
    ("torch.profiler", "family_convolution:conv1d"): (0, 2 * (2 * 7 * 6 * 4 * 3), "aten::convolution"),
    ("tf.profiler@function", "extra:first_transposed"): (COLUMNS * 6, COLUMNS * 5, "flops_registry.py:465"),
}  # fmt: skip

CHEAP = {("thop", "extra:two_parents"), ("flop_counter", "extra:attention_of_heads")}
"""Two bugs for `make slow`; the others of HERE are for `make programs`."""

THERE = {
    ("calflops", "family_control:two_parents"): (
        3 * 2 * (2 * 2 * 4 * 5 * 5), 2 * (2 * 2 * 4 * 5 * 5), "calflops/utils.py:253",
    ),  # at its own path and below both parents
    ("calflops@macs", "family_recurrent:gru_cell"): (0, GRU, "calflops/pytorch_ops.py"),
    ("deepspeed@macs", "family_recurrent:gru_cell"): (0, GRU, "profiler.py"),
    ("torchprofile", "family_convolution:conv2d_same"): (0, SAME, "aten._convolution_mode"),
    ("torchstat@madd", "family_convolution:conv2d_same"): (
        4 * 9 * 8 * (2 * 4 * 9 - 1 + 1), 2 * SAME, "torchstat/compute_madd.py:8",
    ),  # one of both samples: 2K - 1, and the bias
    ("mmengine", "family_convolution:conv2d_same"): (0, SAME, "aten._convolution_mode"),
    ("mmengine", "family_attention:grouped_query"): (
        PROJECTIONS, PROJECTIONS + ATTENTION, "scaled_dot_product",
    ),
    ("pthflops", "family_block:functional"): (0, 2 * 5 * (6 * 7 + 7 * 6), "pthflops/ops_fx.py:158"),
    ("xformers", "family_attention:grouped_query"): (
        2 * PROJECTIONS + ATTENTION, 2 * (PROJECTIONS + ATTENTION), "xformers/profiler/profile_analyzer.py:24",
    ),  # four heads of queries, two of keys
    ("ultralytics-thop", "family_recurrent:lstm"): (
        LSTM + 2 * 5 * (8 * 3 + 8 * 3), LSTM, "thop/rnn_hooks.py:154",
    ),
    ("ultralytics-thop@get_flops", "extra:image_classifier"): (
        2 * 3 * (CONV + DENSE), 2 * 3 * CONV + DENSE, "ultralytics/utils/torch_utils.py",
    ),
    ("onnx_tool", "family_transposed:transposed2d_stride"): (
        prod(TRANSPOSED_OUT) * (3 * 9 + 1), prod(TRANSPOSED_IN) * 3 * 9, "onnx_tool/node.py:2565",
    ),
    ("onnx_opcounter", "family_transposed:transposed2d_stride"): (
        prod(TRANSPOSED_OUT) * 4 * 9, prod(TRANSPOSED_IN) * 3 * 9, "onnx_opcounter/onnx_opcounter.py:119",
    ),
    ("paddle", "family_recurrent:gru"): (0, GRU, "paddle/hapi/dynamic_flops.py:214"),
    ("keras_flops", "extra:first_transposed"): (COLUMNS * 6, COLUMNS * 5, "flops_registry.py:465"),
}  # fmt: skip
