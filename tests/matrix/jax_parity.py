"""The JAX side of pairs beside their TensorFlow side: outputs and gradients of the same weights on the same input.

``python -m tests.matrix.jax_parity given FOLDER PAIR...`` writes a file per pair with TensorFlow's weights, inputs, outputs and
gradients, and ``compared`` reads them where JAX is, and prints a line of JSON per pair. Two processes: Keras has one backend.
The loss is that of a training step, the mean of squares of every floating output, summed; both run in train mode with every
dropout off, in 64 bits where TensorFlow can.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs

BATCH = 4
"""A batch norm over one position needs a few samples for its statistics."""


NARROW = ("family_recurrent",)
"""On JAX a recurrent layer of Keras begins with a state of 32 bits in a model of 64."""


def params_of(pair: pairs.Pair) -> Any:
    """The parameters at which the pair is proven, and a batch of some samples."""
    at = dict(pair.proof)
    if "batch" in pair.params:
        at.setdefault("batch", str(max(BATCH, pair.params["batch"])))
    return pairs.Params(loading.resolve(pair, at))


def given(folder: Path, name: str) -> None:
    """Write what TensorFlow computes."""
    import numpy

    from reconcile.adapters.tensorflow.model import quiet
    from reconcile.model_zoo.parity import Both
    from tests.zoo.gradient_parity import liven
    from tests.zoo.gradient_steps import double_precision, inactive, name_of, tensorflow_step, unavailable, variables_of

    quiet()
    pair = loading.load_pair(loading.pair_path(name))
    params = params_of(pair)

    def taken(double: bool) -> dict[str, Any]:
        both = Both(pair, params, double=double)
        liven(both)
        weights = {f"w {v.path}": v.numpy() for v in both.tf_model.weights}
        example = both.example()
        outputs = both.tf_model(example[0] if len(example) == 1 else example)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        inactive(both)
        step = tensorflow_step(both)
        names = [name_of(v) for v in variables_of(both)]
        return {
            **weights,
            **{f"x {i}": x for i, x in enumerate(example)},
            **{f"y {i}": numpy.asarray(y) for i, y in enumerate(outputs)},
            **{f"g {path}": g for path, g in zip(names, step.weights.values(), strict=True)},
            "loss": step.loss,
            "bits": 64 if double else 32,
        }

    found = None
    if name not in NARROW:
        with contextlib.suppress(TypeError, *unavailable()), double_precision():
            found = taken(True)
    found = found or taken(False)
    numpy.savez(folder / f"{name}.npz", **found)


def compared(folder: Path, name: str) -> dict[str, Any]:
    """How far JAX is from it: of outputs, of the loss, and of every weight's gradient, each against its own largest value."""
    import jax
    import numpy

    held = numpy.load(folder / f"{name}.npz")
    bits = int(held["bits"])
    jax.config.update("jax_enable_x64", bits == 64)
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    keras.config.set_floatx(f"float{bits}")
    keras.config.set_dtype_policy(f"float{bits}")
    real = keras.src.backend.result_type
    # Keras' norms compute in float32 in a model of 64 bits: on JAX it promotes float64 with float32 to that.
    keras.src.backend.result_type = lambda *dtypes: "float64" if "float64" in map(str, dtypes) else real(*dtypes)
    pair = loading.load_pair(loading.pair_path(name))
    params = params_of(pair)
    model = pair.builder("jax")(params)  # type: ignore[misc]
    part = {kind: {k[2:]: held[k] for k in held.files if k.startswith(kind + " ")} for kind in "wxyg"}
    example = list(part["x"].values())
    forward = _keras(model, part["w"]) if isinstance(model, keras.Model) else _flax(model, pair, params)
    trained = {path: jax.numpy.asarray(part["w"][path]) for path in part["g"]}
    ours = _several(jax.jit(lambda weights: forward(weights, example, False))(trained))

    def loss(weights: Any) -> Any:
        outputs = [
            y for y in _several(forward(weights, example, True)) if jax.numpy.issubdtype(y.dtype, jax.numpy.floating)
        ]
        return sum((y**2).mean() for y in outputs)

    value, gradients = jax.jit(jax.value_and_grad(loss))(trained)
    apart = {path: _apart(gradients[path], theirs) for path, theirs in part["g"].items()}
    return {
        "model": name,
        "bits": bits,
        "outputs": max(a / max(big, 1e-300) for a, big in map(_apart, ours, part["y"].values())),
        "several": [len(ours), len(part["y"])],
        "loss": [float(value), float(held["loss"])],
        "gradients": {path: [a, big] for path, (a, big) in apart.items()},
    }


def _several(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def _apart(ours: Any, theirs: Any) -> tuple[float, float]:
    """The largest difference, and the largest value of theirs."""
    import numpy

    ours, theirs = numpy.asarray(ours), numpy.asarray(theirs)
    if ours.shape != theirs.shape:
        return float("inf"), 1.0
    return float(numpy.abs(ours - theirs).max(initial=0)), float(numpy.abs(theirs).max(initial=0))


def _keras(model: Any, weights: dict[str, Any]) -> Any:
    """The model's call as a function of what it trains, by path."""
    from tests.zoo.gradient_steps import still

    for variable in model.weights:
        variable.assign(weights[variable.path])
    still(model)
    fixed = [v.value for v in model.non_trainable_variables]

    def forward(trained: Any, example: Any, training: bool) -> Any:
        own = [trained[v.path] for v in model.trainable_variables]
        return model.stateless_call(own, fixed, example[0] if len(example) == 1 else example, training=training)[0]

    return forward


def _flax(model: Any, pair: pairs.Pair, params: Any) -> Any:
    """The same of a Flax model, whose weights the pair makes of TensorFlow's. Each of its weights is made, and no other."""
    import jax
    from flax import linen, nnx

    graph: Any = None
    if isinstance(model, linen.Module):
        example = [jax.ShapeDtypeStruct(i.shape, i.dtype) for i in pair.inputs(params)]
        shapes = jax.eval_shape(model.init, jax.random.key(0), *example)
        flat = {
            ".".join(key.key for key in path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(shapes)[0]
        }
    else:
        graph, state, rest = nnx.split(model, nnx.Param, ...)
        flat = {".".join(map(str, path)): leaf.get_value() for path, leaf in nnx.to_flat_state(state)}

    def forward(trained: Any, example: Any, _training: bool) -> Any:
        arrays = pair.arrays_for(trained, params)
        off = [
            p
            for p in sorted({*flat, *arrays})
            if getattr(flat.get(p), "shape", 0) != getattr(arrays.get(p), "shape", 1)
        ]
        if off:
            raise ValueError(f"{pair.name}: weights that do not fit, or have no counterpart: {off}")
        if graph is None:
            return model.apply(_tree(arrays), *example)
        placed = [(path, leaf.replace(arrays[".".join(map(str, path))])) for path, leaf in nnx.to_flat_state(state)]
        return nnx.merge(graph, nnx.from_flat_state(placed), rest)(*example)

    return forward


def _tree(arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays by dotted paths as dicts in dicts."""
    tree: dict[str, Any] = {}
    for path, array in arrays.items():
        *outer, last = path.split(".")
        inner = tree
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[last] = array
    return tree


if __name__ == "__main__":
    task, where, *names = sys.argv[1:]
    for each in names:
        if task == "given":
            given(Path(where), each)
        else:
            print(json.dumps(compared(Path(where), each)), flush=True)
