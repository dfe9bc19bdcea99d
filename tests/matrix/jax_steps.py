"""Training steps of JAX for test_jax_steps.py. ``python jax_steps.py FILE`` writes what reconcile and XLA say of each."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import nnx

ROWS, WIDTH, HIDDEN, OUT, DEPTH = 5, 6, 8, 3, 4


def weights():
    return {
        "first": {"w": jnp.ones((WIDTH, HIDDEN)), "b": jnp.zeros(HIDDEN)},
        "second": {"w": jnp.ones((HIDDEN, OUT)), "b": jnp.zeros(OUT)},
    }


def loss(params, x, y):
    with jax.named_scope("first"):
        h = jnp.tanh(x @ params["first"]["w"] + params["first"]["b"])
    with jax.named_scope("second"):
        logits = h @ params["second"]["w"] + params["second"]["b"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def batch():
    return jnp.ones((ROWS, WIDTH)), jnp.zeros(ROWS, "int32")


def with_optimizer(optimizer):
    """A step as people write it, with its own gradient and update, and its arguments."""

    def step(params, state, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return step, (weights(), optimizer.init(weights()), *batch())


sgd_step, sgd_args = with_optimizer(optax.sgd(0.1))
sgd_jitted = jax.jit(sgd_step)
adamw_step, adamw_args = with_optimizer(optax.adamw(0.1))


def accumulated(params, state, xs, ys):
    """The gradients of three batches in a loop, one step of the optimiser, and the model called once more."""

    def one(total, given):
        return jax.tree.map(jnp.add, total, jax.grad(loss)(params, *given)), None

    gradients, _ = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), (xs, ys))
    updates, state = optax.sgd(0.1).update(gradients, state, params)
    params = optax.apply_updates(params, updates)
    return params, state, loss(params, xs[0], ys[0])


def accumulated_args():
    x, y = batch()
    return weights(), optax.sgd(0.1).init(weights()), jnp.stack([x] * 3), jnp.stack([y] * 3)


def of_sgd():
    """The arguments of the steps with sgd, as ``--args`` takes them."""
    return sgd_args


class Block(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear(WIDTH, HIDDEN, rngs=rngs)
        self.down = nnx.Linear(HIDDEN, WIDTH, rngs=rngs)

    def __call__(self, x):
        return x + self.down(jnp.tanh(self.up(x)))


class Net(nnx.Module):
    """Blocks in a scan, each of which is computed again in the backward pass; batch norm and dropout write to themselves."""

    def __init__(self, rngs):
        self.blocks = nnx.split_rngs(splits=DEPTH)(nnx.vmap(Block, in_axes=(0,), out_axes=0))(rngs)
        self.norm = nnx.BatchNorm(WIDTH, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.head = nnx.Linear(WIDTH, OUT, rngs=rngs)

    def __call__(self, x):
        scan = nnx.scan(nnx.remat(lambda x, block: block(x)), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        return self.head(self.drop(self.norm(scan(x, self.blocks))))


@nnx.jit
def nnx_step(model, optimizer, x, y):
    def of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    value, gradients = nnx.value_and_grad(of)(model)
    optimizer.update(model, gradients)
    return value


def nnx_args():
    net = Net(nnx.Rngs(0))
    return (net, nnx.Optimizer(net, optax.adamw(0.1), wrt=nnx.Param)), {"x": batch()[0], "y": batch()[1]}


def closed_over():
    """A factory whose step closes over the model and its optimiser."""
    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adamw(0.1), wrt=nnx.Param)
    return (lambda x, y: nnx_step(net, optimizer, x, y)), batch()


TABLE = jnp.ones((11, WIDTH))


def look_up(ids):
    """A function of arrays, for ``--input``."""
    return TABLE[ids] @ jnp.ones((WIDTH, OUT))


if __name__ == "__main__":
    import json
    import sys
    from pathlib import Path

    import reconcile

    LOWERED, COMPILED = "xla@lowered", "xla@compiled"
    steps = {
        "sgd jitted": (sgd_jitted, sgd_args, (LOWERED, COMPILED)),
        "adamw": (adamw_step, adamw_args, (LOWERED,)),
        "accumulated": (accumulated, accumulated_args(), ()),
        "nnx": (nnx_step, nnx_args(), (LOWERED, COMPILED)),
        "closed over": (closed_over, None, ()),
    }
    found = {}
    for name, (step, given, counters) in steps.items():
        run = reconcile.run(jax=step, inputs=given, counters=counters, convention="all")
        phases: dict[str, dict[str, list[int]]] = {}
        for row in run.result.traces[0].rows:
            held = phases.setdefault(row.phase, {}).setdefault(row.layer, [0, 0])
            held[0] += row.work.mac
            held[1] += row.work.add + row.work.mul + row.work.div + row.work.special
        found[name] = {
            "phases": phases,
            "pass": run.result.pass_,
            "residuals": [statement.residual for statement in run.result.statements],
            "totals": {ledger.counter: ledger.total for ledger in run.result.ledgers},
        }
    for name, step, (positional, named) in (("sgd jitted", sgd_jitted, (sgd_args, {})), ("nnx", nnx_step, nnx_args())):
        stage = step.lower(*positional, **named)  # what a user calls
        flops = {LOWERED: stage.cost_analysis()["flops"], COMPILED: stage.compile().cost_analysis()["flops"]}
        found[name]["own"] = {counter: int(number) for counter, number in flops.items()}
    Path(sys.argv[1]).write_text(json.dumps(found))
