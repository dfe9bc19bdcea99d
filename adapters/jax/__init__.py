"""JAX: its record here, its models and traces in the modules beside it."""

from ...core.framework import Framework

FRAMEWORK = Framework(
    name="jax",
    title="JAX",
    package="jax",
    adapter=".adapters.jax.adapter",
    formulas=".work.lax",
    model="function of arrays, or a Flax, Haiku, Equinox or Keras model",
    help="JAX model: a function of arrays, such as your training step (--args), or one that returns a function or a model of "
    "Flax, Haiku, Equinox or Keras.",
    extra="jax",
    distributions=("jax", "jaxlib", "flax", "equinox", "dm-haiku"),
    trains=True,
    lends=False,
    backend="jax",
    watched=("jax", "JAX"),
    order=4,
)
