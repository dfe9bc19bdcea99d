"""A network on one device of JAX, and on several."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def mlp(up, down, x):
    return jax.nn.relu(x @ up) @ down


def arguments():
    return jnp.ones((64, 256)), jnp.ones((256, 64)), jnp.ones((8, 64))


def on_devices(*specs):
    mesh = jax.make_mesh((jax.device_count(),), ("i",), axis_types=(AxisType.Auto,))
    return jax.jit(mlp, in_shardings=tuple(NamedSharding(mesh, spec) for spec in specs)), arguments()


def whole():
    return mlp, arguments()


def tensor():
    return on_devices(P(None, "i"), P("i", None), P())


def data():
    return on_devices(P(), P(), P("i"))


def copies():
    return on_devices(P(), P(), P())
