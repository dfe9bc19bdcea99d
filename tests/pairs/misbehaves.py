"""A small torch model that raises, hangs or dies, but only while one counter looks at it; or lacks a framework."""

import os
import sys
import time
import traceback

from reconcile.model_zoo.pair import Input, Layer, Pair

PAIR = Pair(
    name="misbehaves",
    params={"how": "not", "under": "thop", "without": ""},
    layers=(Layer("linear", tf="linear", torch="linear"),),
)


def inputs(p):
    if p.without:
        sys.modules[p.without] = None  # as if it were not installed
    return [Input("x", (3, 5))]


def build_tf(p):
    import tensorflow as tf

    start = tf.keras.layers.Input(batch_shape=(3, 5))
    return tf.keras.Model(start, tf.keras.layers.Dense(2, name="linear")(start))


def build_torch(p):
    import torch

    class Misbehaves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(5, 2)

        def forward(self, x):
            if any(f"{os.sep}{p.under}{os.sep}" in f.filename for f in traceback.extract_stack()):
                misbehave(p.how)
            return self.linear(x)

    return Misbehaves()


def misbehave(how):
    if how == "raise":
        raise RuntimeError("this model does not like to be counted")
    if how == "hang":
        time.sleep(3600)
    if how == "die":
        os.kill(os.getpid(), 9)
    if how == "exit":
        sys.exit(4)
    if how == "end":
        os._exit(4)
