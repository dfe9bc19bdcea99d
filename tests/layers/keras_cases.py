"""Keras layers on whichever framework Keras runs on, one case each: (factory, (shape,) or (shape, dtype))."""

from __future__ import annotations

import keras

L = keras.layers


def K(*layers):
    def b(shape):
        x = i = L.Input(batch_shape=shape)
        for layer in layers:
            x = layer()(x)
        return keras.Model(i, x)

    return b


def itself(layer, **given):
    """Attention of a value to itself."""

    def b(shape):
        i = L.Input(batch_shape=shape)
        return keras.Model(i, layer()(i, i, **given))

    return b


ACTIVATIONS = (
    "relu relu6 leaky_relu elu selu celu sigmoid tanh softplus softsign silu gelu hard_sigmoid hard_silu "
    "mish exponential linear softmax log_softmax"
)
CASES = {
    "conv": (K(lambda: L.Conv2D(6, 3, strides=2, padding="same", activation="relu")), (2, 9, 7, 4)),
    "convg": (K(lambda: L.Conv2D(6, 3, groups=2)), (2, 9, 7, 4)),
    "convd": (K(lambda: L.Conv2D(6, 3, dilation_rate=2)), (2, 9, 7, 4)),
    "conv1": (K(lambda: L.Conv1D(6, 3)), (2, 9, 4)),
    "conv1causal": (K(lambda: L.Conv1D(6, 3, padding="causal")), (2, 9, 4)),
    "conv3": (K(lambda: L.Conv3D(6, 2)), (2, 5, 5, 5, 4)),
    "dw": (K(lambda: L.DepthwiseConv2D(3)), (2, 9, 7, 4)),
    "sep": (K(lambda: L.SeparableConv2D(6, 3)), (2, 9, 7, 4)),
    "sep1": (K(lambda: L.SeparableConv1D(6, 3)), (2, 9, 4)),
    "convT": (K(lambda: L.Conv2DTranspose(6, 3, strides=2)), (2, 5, 5, 4)),
    "convTs": (K(lambda: L.Conv2DTranspose(6, 3, strides=2, padding="same")), (2, 5, 5, 4)),
    "convT1": (K(lambda: L.Conv1DTranspose(6, 3, strides=2)), (2, 5, 4)),
    "convT3": (K(lambda: L.Conv3DTranspose(6, 3, strides=2)), (2, 3, 3, 3, 4)),
    "dense": (K(lambda: L.Dense(3, activation="softmax")), (2, 5)),
    "dense3": (K(lambda: L.Dense(3, activation="gelu")), (2, 4, 5)),
    **{a: (K(lambda a=a: L.Activation(a)), (2, 5)) for a in ACTIVATIONS.split()},
    "bn": (K(lambda: L.BatchNormalization()), (2, 5, 5, 4)),
    "ln": (K(lambda: L.LayerNormalization()), (2, 3, 5)),
    "gn": (K(lambda: L.GroupNormalization(2)), (2, 5, 5, 4)),
    "rms": (K(lambda: L.RMSNormalization()), (2, 3, 5)),
    "un": (K(lambda: L.UnitNormalization()), (2, 3, 5)),
    "mp": (K(lambda: L.MaxPooling2D(3, 2, "same")), (2, 9, 9, 4)),
    "ap": (K(lambda: L.AveragePooling2D(3, 2)), (2, 9, 9, 4)),
    "ap_s": (K(lambda: L.AveragePooling2D(3, 2, "same")), (2, 9, 9, 4)),
    "mp1": (K(lambda: L.MaxPooling1D(3)), (2, 9, 4)),
    "ap1": (K(lambda: L.AveragePooling1D(3)), (2, 9, 4)),
    "mp3": (K(lambda: L.MaxPooling3D(2)), (2, 4, 4, 4, 3)),
    "ap3": (K(lambda: L.AveragePooling3D(2)), (2, 4, 4, 4, 3)),
    "gap": (K(lambda: L.GlobalAveragePooling2D()), (2, 9, 9, 4)),
    "gmp": (K(lambda: L.GlobalMaxPooling2D()), (2, 9, 9, 4)),
    **(
        {"aap": (K(lambda: L.AdaptiveAveragePooling2D((3, 2))), (2, 9, 7, 4))}
        if hasattr(L, "AdaptiveAveragePooling2D")
        else {}
    ),
    "up": (K(lambda: L.UpSampling2D(2)), (2, 5, 5, 4)),
    "upb": (K(lambda: L.UpSampling2D(2, interpolation="bilinear")), (2, 5, 5, 4)),
    "rnn": (K(lambda: L.SimpleRNN(3)), (2, 5, 4)),
    "gru": (K(lambda: L.GRU(3)), (2, 5, 4)),
    "gru_ra": (K(lambda: L.GRU(3, reset_after=False, return_sequences=True)), (2, 5, 4)),
    "lstm": (K(lambda: L.LSTM(3, use_bias=False)), (2, 5, 4)),
    "bilstm": (K(lambda: L.Bidirectional(L.LSTM(3, return_sequences=True))), (2, 5, 4)),
    "gru_un": (K(lambda: L.GRU(3, unroll=True)), (2, 5, 4)),
    "convlstm": (K(lambda: L.ConvLSTM2D(3, 2)), (2, 4, 5, 5, 2)),
    "td": (K(lambda: L.TimeDistributed(L.Dense(3))), (2, 5, 4)),
    "emb": (
        lambda shape: (lambda i: keras.Model(i, L.Embedding(10, 4)(i)))(L.Input(batch_shape=shape, dtype="int32")),
        (2, 3),
        "int32",
    ),
    "mha": (itself(lambda: L.MultiHeadAttention(2, 4)), (2, 5, 8)),
    "mhac": (itself(lambda: L.MultiHeadAttention(2, 4), use_causal_mask=True), (2, 5, 8)),
    "gqa": (itself(lambda: L.GroupQueryAttention(4, 4, 2)), (2, 5, 8)),
    "drop": (K(lambda: L.Dropout(0.5)), (2, 5)),
    "prelu": (K(lambda: L.PReLU()), (2, 5)),
}
