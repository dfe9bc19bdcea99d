"""A product of two variables, (25, 16) x (16, 9), both initialised by random_normal: the documentation's own example.

How the frameworks differ here
* They do not: 25 x 16 x 9 multiply-accumulates, 7,200 FLOPs, in both.
* The post's 8,288 is the session graph before freezing: random_normal is a product and a sum for each of the
  400 + 144 = 544 elements of the two variables, 1,088 FLOPs that run once, when the variables are initialised, and are
  not part of the model.  After freezing the variables are constants and 7,200 remain.
"""

from typing import Any, List

from reconcile.model_zoo.pair import Input, Pair, Published

PAIR = Pair(
    name="matmul_init",
    params={"rows": 25, "inner": 16, "columns": 9},
    layers=(),
    notes=(
        "The model has no inputs: both factors are variables, initialised by random_normal. Initialising them costs a "
        "product and a sum per element, once; the session graph shows that beside the model's own work.",
    ),
    published=(
        Published("8,288", "tf.profiler, TF 1.x, session graph before freezing", "a question on a forum"),
        Published("7,200", "tf.profiler, TF 1.x, after freezing", "a question on a forum"),
    ),
)


def inputs(p: Any) -> List[Input]:
    """None: both factors are variables."""
    return []


def build_tf(p: Any) -> Any:
    """A function of no inputs that multiplies its two variables (TF 1.12 has no tf.Module)."""
    import tensorflow as tf

    class MatMulInit:
        """Both variables, initialised by random_normal."""

        def __init__(self) -> None:
            self.a = tf.Variable(tf.random.normal([p.rows, p.inner]), name="A")
            self.b = tf.Variable(tf.random.normal([p.inner, p.columns]), name="B")
            self.weights = [self.a, self.b]

        def __call__(self, *nothing: Any) -> Any:
            return tf.matmul(self.a, self.b, name="MatMul")

    return MatMulInit()


def build_torch(p: Any) -> Any:
    """A module that multiplies its two parameters."""
    import torch

    class MatMulInit(torch.nn.Module):
        """Both parameters, initialised by randn."""

        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Parameter(torch.randn(p.rows, p.inner))
            self.b = torch.nn.Parameter(torch.randn(p.inner, p.columns))

        def forward(self, *nothing: Any) -> Any:
            return self.a @ self.b

    return MatMulInit()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the TensorFlow module's variables."""
    import torch

    torch_model.a.data.copy_(torch.as_tensor(tf_model.a.numpy()))
    torch_model.b.data.copy_(torch.as_tensor(tf_model.b.numpy()))
