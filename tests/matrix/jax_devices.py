"""Programs of JAX on four devices of the host; jax_devices_run.py writes what each device does."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

F32 = "float32"
UP, DOWN, X = (jax.ShapeDtypeStruct(shape, F32) for shape in ((64, 256), (256, 64), (8, 64)))
LAYERS = tuple(jax.ShapeDtypeStruct(shape, F32) for shape in ((6, 64, 256), (6, 256, 64)))
EXPERTS = tuple(jax.ShapeDtypeStruct(shape, F32) for shape in ((8, 64, 256), (8, 256, 64)))
OF_ROWS = jax.ShapeDtypeStruct((8,), "int32")
WIDE = jax.ShapeDtypeStruct((64, 50257), F32)
IMAGE, KERNEL = jax.ShapeDtypeStruct((4, 16, 16, 8), F32), jax.ShapeDtypeStruct((3, 3, 8, 16), F32)


def mesh(*sizes):
    sizes = sizes or (jax.device_count(),)
    return jax.make_mesh(sizes, ("dp", "tp")[-len(sizes) :], axis_types=(AxisType.Auto,) * len(sizes))


def placed(on, *specs):
    return tuple(NamedSharding(on, spec) for spec in specs)


def mlp(up, down, x):
    return jax.nn.relu(x @ up) @ down


def in_layers(up, down, x):
    with jax.named_scope("first"):
        hidden = jax.nn.relu(x @ up)
    with jax.named_scope("second"):
        return hidden @ down


def gradients(weights, x):
    return jax.grad(lambda weights, x: mlp(*weights, x).sum())(weights, x)


def stack(layers, x):
    return jax.lax.scan(lambda x, layer: (mlp(*layer, x), None), x, layers)[0]


def wide(table, x):
    return x @ table


def blurred(kernel, image):
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=numbers)


def running(up, x):
    return jnp.cumsum(x @ up, axis=1)


def experts(up, down, groups, x):
    return jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x, up, groups)), down, groups)


COLUMNS, ROWS = P(None, "tp"), P("tp", None)


def tensor():
    return jax.jit(mlp, in_shardings=placed(mesh(), COLUMNS, ROWS, P())), (UP, DOWN, X)


def data():
    return jax.jit(mlp, in_shardings=placed(mesh(4, 1), P(), P(), P("dp"))), (UP, DOWN, X)


def both():
    return jax.jit(mlp, in_shardings=placed(mesh(2, 2), COLUMNS, ROWS, P("dp"))), (UP, DOWN, X)


def on_each():
    return jax.jit(mlp, in_shardings=placed(mesh(), P(), P(), P())), (UP, DOWN, X)


def half():
    """The second product is on each device the whole."""
    on = mesh()

    def halved(up, down, x):
        hidden = jax.lax.with_sharding_constraint(jax.nn.relu(x @ up), NamedSharding(on, P()))
        return hidden @ down

    return jax.jit(halved, in_shardings=placed(on, COLUMNS, P(), P())), (UP, DOWN, X)


def pairs():
    """The second layer's product is on two devices each the same: they have one half of the batch."""
    on = mesh(2, 2)

    def layers(up, down, x):
        with jax.named_scope("first"):
            hidden = jax.nn.relu(x @ up)
        hidden = jax.lax.with_sharding_constraint(hidden, NamedSharding(on, P("dp")))
        with jax.named_scope("second"):
            return hidden @ down

    return jax.jit(layers, in_shardings=placed(on, COLUMNS, P(), P("dp"))), (UP, DOWN, X)


def put():
    """The arrays lie on the devices, and nothing else says so."""
    places = placed(mesh(), COLUMNS, ROWS, P())
    return mlp, tuple(jax.device_put(jnp.ones(a.shape), at) for a, at in zip((UP, DOWN, X), places, strict=True))


def mapped():
    def each(up, down, x):
        return jax.lax.psum(mlp(up, down, x), "tp")

    return jax.shard_map(each, mesh=mesh(), in_specs=(COLUMNS, ROWS, P()), out_specs=P()), (UP, DOWN, X)


def mapped_along_one():
    """Along the other dimension of the mesh, XLA cuts it by itself."""

    def each(up, down, x):
        return jax.lax.psum(mlp(up, down, x), "tp")

    on = mesh(2, 2)
    inner = jax.shard_map(each, mesh=on, in_specs=(COLUMNS, ROWS, P()), out_specs=P(), axis_names={"tp"})
    return jax.jit(inner, in_shardings=placed(on, COLUMNS, ROWS, P("dp"))), (UP, DOWN, X)


def tensor_gradients():
    on = mesh()
    return jax.jit(gradients, in_shardings=(placed(on, COLUMNS, ROWS), placed(on, P())[0])), ((UP, DOWN), X)


def data_gradients():
    on = mesh(4, 1)
    weights = placed(on, P(), P())
    return jax.jit(gradients, in_shardings=(weights, *placed(on, P("dp"))), out_shardings=weights), ((UP, DOWN), X)


def both_gradients():
    on = mesh(2, 2)
    weights = placed(on, COLUMNS, ROWS)
    return jax.jit(gradients, in_shardings=(weights, *placed(on, P("dp"))), out_shardings=weights), ((UP, DOWN), X)


def scanned():
    on = mesh()
    weights = placed(on, P(None, None, "tp"), P(None, "tp"))
    return jax.jit(stack, in_shardings=(weights, *placed(on, P()))), (LAYERS, X)


def uneven():
    on = mesh()
    return (
        lambda table, x: jax.lax.with_sharding_constraint(wide(table, x), NamedSharding(on, COLUMNS)),
        (WIDE, jax.ShapeDtypeStruct(X.shape, F32, sharding=NamedSharding(on, P()))),
    )


def rows_of_images():
    on = mesh()
    return jax.jit(blurred, in_shardings=placed(on, P(), P(None, "tp"))), (KERNEL, IMAGE)


def cumulative():
    """XLA adds up along the columns that it cut in a way of its own."""
    return jax.jit(running, in_shardings=placed(mesh(), COLUMNS, P())), (UP, X)


def merged():
    def squared(up, x):
        return (x @ up) * jnp.sin(x @ up)

    return jax.jit(squared, in_shardings=placed(mesh(), COLUMNS, P())), (UP, X)


def by_place():
    def each(up, x):
        first = jax.lax.axis_index("tp") == 0
        return jax.lax.cond(first, lambda: x @ up, lambda: jnp.zeros((x.shape[0], up.shape[1])))

    specs = {"in_specs": (COLUMNS, P()), "out_specs": COLUMNS, "check_vma": False}
    return jax.shard_map(each, mesh=mesh(), **specs), (UP, X)


def mapped_experts():
    """Each device has two experts, and the tokens that are theirs."""
    specs = {"in_specs": P("tp"), "out_specs": P("tp")}
    return jax.shard_map(experts, mesh=mesh(), **specs), (*EXPERTS, OF_ROWS, X)


def cut_experts():
    """XLA cuts what JAX makes of the groups."""
    return jax.jit(experts, in_shardings=placed(mesh(), P("tp"), P("tp"), P("tp"), P("tp"))), (*EXPERTS, OF_ROWS, X)


def no_shard():
    return mlp, (UP, DOWN, X)


ALONE = {
    gradients: ((UP, DOWN), X),
    mlp: (UP, DOWN, X),
    in_layers: (UP, DOWN, X),
    stack: (LAYERS, X),
    wide: (WIDE, X),
    blurred: (KERNEL, IMAGE),
    running: (UP, X),
    experts: (*EXPERTS, OF_ROWS, X),
}
PROGRAMS = {
    mlp: (tensor, data, both, on_each, half, put, mapped, mapped_along_one, merged, by_place, no_shard),
    in_layers: (pairs,),
    gradients: (tensor_gradients, data_gradients, both_gradients),
    stack: (scanned,),
    wide: (uneven,),
    blurred: (rows_of_images,),
    running: (cumulative,),
    experts: (mapped_experts, cut_experts),
}
"""By the function that one device runs."""
