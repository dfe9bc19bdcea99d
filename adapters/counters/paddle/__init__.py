"""The counter paddle, paddle.flops of the layers that X2Paddle makes of a PyTorch model; a function of paddle counts nothing."""

from ....core.records import MAC
from .. import torch_counter

COUNTERS = (
    torch_counter(
        "paddle",
        __name__,
        MAC,
        "paddle.flops of PaddlePaddle, of a model that X2Paddle converts: products of its layers, norms and average pools",
        title="paddle.flops",
        distribution="paddlepaddle",
        versions_key="paddlepaddle",
        requirements=(
            "paddlepaddle==3.3.1",
            "x2paddle==1.6.0",
            "numpy<2.4",  # of 2.4 int() takes no array of one dimension: paddle.flops stops on every model
            "safetensors>=0.6",
            "httpx>=0.28",
            "httpcore>=1.0",
            "h11>=0.16",
            "anyio>=4",
        ),
        checked=("2.6.2", "3.3.1"),
    ),
)
