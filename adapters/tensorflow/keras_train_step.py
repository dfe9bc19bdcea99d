"""Traces one call of a compiled Keras model's ``train_step`` as a graph, and describes it for the report (loss, optimizer,
targets).

The targets are those of a batch that ``fit`` used, those that the model factory gives, or zeros in the shape that the compiled
loss takes (targets.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..shared import nested
from ..shared.keras_model import as_taken
from ..shared.refusal import CannotCount
from .gradients import Calls, noted_gradients
from .graphs.layer_scopes import recorded_scopes
from .model import _dtype_name, is_leaf
from .parts import Parts, noted_parts
from .step_graph import Step
from .targets import Batch, cast_floats, make_targets, name_of

RANDOM = ("Random", "Truncated", "Multinomial")
"""In the types of ops that draw numbers: what they draw depends on no variable, as an input does."""


class KerasTrainStep:
    """A compiled model's step: ``concrete`` is its function of ``specs``, ``step`` its parts, ``targets`` arrays of ``y``."""

    def __init__(self, model: Any, arguments: nested.Arguments, given: tuple[Any, ...] | Batch | None) -> None:
        self.model = model
        self.x = given.x if isinstance(given, Batch) else _single_input(model, arguments)
        self.given = given
        self.targets: list[Any] = []
        self.concrete: Any = None
        self._optimizers: list[Any] = []  # those that the step applied
        self._y: tuple[Any, ...] = ()

    def build(self, scopes: dict[str, str], owner: Callable[[Any], str], handles: Callable[[Any], Any]) -> Step:
        """The step's graph with its parts. ``owner`` gives a variable's layer, ``handles`` those of variables in a graph."""
        specs = self._specs()
        self.trace_unrecorded(
            specs
        )  # makes what the first step makes: variables of the optimizer, the metrics, the loss
        parts = Parts(owner)
        inputs: list[Any] = []

        def step(*tensors: Any) -> Any:
            import tensorflow as tf

            parts.begin(tf.compat.v1.get_default_graph())
            inputs[:] = tensors
            return self._call_train_step(tensors)

        with recorded_scopes(self.model, scopes), noted_gradients() as calls, noted_parts(self.model, parts):
            self.concrete = _function(step, specs)
        return self._assign_parts(parts, inputs, calls, handles)

    def trace_unrecorded(self, specs: Sequence[Any] | None = None) -> Any:
        """The step's function, traced without a record of its parts."""
        return _function(lambda *tensors: self._call_train_step(tensors), self._specs() if specs is None else specs)

    def _assign_parts(self, parts: Parts, inputs: list[Any], calls: Calls, handles: Callable[[Any], Any]) -> Step:
        graph, self._optimizers = self.concrete.graph, parts.stepped
        drawn = [t for op in graph.get_operations() if any(word in op.type for word in RANDOM) for t in op.outputs]
        return Step(
            graph=graph,
            inputs=(*inputs, *drawn),
            trained=handles(graph),
            parts=parts.of_ops(calls.calls),
            spans=parts.gradients(),
            updates=tuple(parts.updates),
            calls=tuple(calls.calls),
        )

    def _call_train_step(self, tensors: Sequence[Any]) -> Any:
        """One call of the model's train_step. Without targets ``x`` is all of the batch, as in ``fit(x)``."""
        count = len(nested.leaves(self.x, is_leaf))
        x = nested.fill_leaves(self.x, is_leaf, tensors[:count])
        if isinstance(self.given, Batch):
            return self.model.train_step(self.given.fill(x, nested.fill_leaves(self._y, is_leaf, tensors[count:])))
        if self._y:
            return self.model.train_step((x, nested.fill_leaves(self._y[0], is_leaf, tensors[count:])))
        return self.model.train_step((x,) if isinstance(x, (tuple, list)) else x)

    def _specs(self) -> list[Any]:
        """What the step's function takes: the leaves of x, then those of y."""
        specs = [_spec(leaf, f"input{i}") for i, leaf in enumerate(nested.leaves(self.x, is_leaf))]
        if isinstance(self.given, Batch):
            self._y = self.given.rest
        elif self.given is not None:
            self._y = () if self.given[0] is None else (cast_floats(self.given[0]),)
        elif self.model.loss is not None:
            call = _function(
                lambda *tensors: self.model(nested.fill_leaves(self.x, is_leaf, tensors), training=True), specs
            )
            self._y = (make_targets(self.model, call.structured_outputs),)
        self.targets = nested.leaves(self._y, is_leaf)
        return specs + [_spec(leaf, f"target{i}") for i, leaf in enumerate(self.targets)]

    def note(self) -> str:
        """The description of the step, for the report."""
        batch = self.given if isinstance(self.given, Batch) else None
        which, how = (f"step {batch.number} of {batch.by}", "") if batch else ("one training step", ", as fit makes it")
        return (
            f"{which}: a call of {_describe_train_step(self.model)} on one batch{how}; loss: {_describe_loss(self.model)}; "
            f"{_describe_optimizers(self._optimizers)}; metrics are counted with the loss; "
            + (f"batch: {self._describe_batch()}" if batch else f"targets: {self._describe_targets()}")
        )

    def _describe_batch(self) -> str:
        """The shapes of a batch that fit took."""
        x, *rest = (nested.describe_arguments(((value,), {}), is_leaf, _shape) for value in (self.x, *self._y))
        names = ["y", "sample_weight"] if len(rest) < 3 else [f"part {number}" for number in range(2, len(rest) + 2)]
        return ", ".join(
            [f"x {x}", *(f"{name} {told}" for name, told in zip(names, rest, strict=False) if told != "None")]
        )

    def describe_call(self) -> str:
        """The step and its targets, for a message."""
        return f"{_describe_train_step(self.model).rstrip(',')} with targets: {self._describe_targets()}"

    def _describe_targets(self) -> str:
        if not self._y:
            return "none"
        shapes = ", ".join(map(_shape, self.targets))
        if self.given is not None:
            return f"{shapes}, as given"
        return f"zeros of {shapes}, as the compiled loss takes them (a factory that returns model, x, y gives its own)"


def _function(step: Callable[..., Any], specs: Sequence[Any]) -> Any:
    import tensorflow as tf

    return tf.function(step, autograph=False).get_concrete_function(*specs)


def _shape(leaf: Any) -> str:
    return f"{_dtype_name(leaf)} {tuple(leaf.shape)}"


def _spec(leaf: Any, name: str) -> Any:
    import tensorflow as tf

    return tf.TensorSpec(tuple(leaf.shape), _dtype_name(leaf), name=getattr(leaf, "name", None) or name)


def _single_input(model: Any, arguments: nested.Arguments) -> Any:
    """The inputs as fit takes them: one tensor or one structure. Raises CannotCount."""
    positional, named = as_taken(model, *arguments)
    values = [*positional, *named.values()]
    if len(values) != 1:
        raise CannotCount(
            f"fit gives a model its inputs as one argument, and this one takes {len(values)}: add --optimizer sgd to count "
            "the standard step in place of its own train_step."
        )
    return values[0]


def _describe_train_step(model: Any) -> str:
    """``its own train_step``, with the class that has it if that is the user's."""
    made = next(base for base in type(model).__mro__ if "train_step" in vars(base))
    own = made.__module__.partition(".")[0] not in ("keras", "tf_keras", "tensorflow")
    return f"its own train_step, which {made.__name__} overrides," if own else "its own train_step"


def _describe_loss(model: Any) -> str:
    """The compiled loss in one line; the regularizers and add_loss come on top of it."""
    import tensorflow as tf

    names = [name_of(loss) for loss in tf.nest.flatten(model.loss) if loss is not None]
    return ", ".join(names) or "its own, none is compiled"


def _describe_optimizers(stepped: Sequence[Any]) -> str:
    """The optimizers that stepped: not one that ``compile`` made and that no step applies, such as a GAN's default."""
    told = list(dict.fromkeys(map(_describe_optimizer, stepped)))
    return "optimizer: " + (", ".join(told) or "none that Keras made")


def _describe_optimizer(optimizer: Any) -> str:
    """An optimizer with the settings that are not its class's own: ``keras.optimizers.SGD(momentum=0.9)``."""
    kind = type(optimizer)
    name = f"{kind.__module__.partition('.')[0]}.optimizers.{kind.__name__}"
    try:
        usual = kind().get_config()
    except TypeError:  # one that needs arguments
        return name
    chosen = {key: value for key, value in optimizer.get_config().items() if key != "name" and value != usual.get(key)}
    return name + (f"({', '.join(f'{key}={_short(value)}' for key, value in chosen.items())})" if chosen else "")


def _short(value: Any) -> str:
    if isinstance(value, dict):  # a schedule
        return str(value.get("class_name", "..."))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
